"""Write the report of a pipeline: one HTML page with its scores, curves and mistakes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from labelwise.report.page import write_report
from scripts.console import msg, run, user_errors

Option = typer.Option
Pipeline = Literal["cpu", "gpu"]


def report_cli(
    out: Annotated[Path, typer.Argument(metavar="OUT.html", help="HTML file to write")],
    pipeline: Annotated[Pipeline, Option(help="Which pipeline's results to report")],
    root: Annotated[Path, Option(help="Folder of the project")] = Path(),
) -> None:
    """Write the report of a pipeline: one HTML page with its scores, curves and mistakes."""
    with user_errors("No report was written"):
        write_report(root, pipeline, out)
    msg.good(f"{out} is the report of the {pipeline} pipeline; any browser shows it, even offline")


if __name__ == "__main__":
    run(report_cli)
