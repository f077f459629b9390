"""Write the report of a pipeline: one HTML page with its scores, curves and mistakes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from labelwise.common.wording import counted
from labelwise.evaluate.results import load_results
from labelwise.report.advice import summarize
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
        results = load_results(root, pipeline)
    if results.metrics:
        digest = summarize(results.merge, results.metrics, results.details)
        msg.info(
            f"F {digest.f} on {counted(results.metrics.texts, 'text')}; the weakest labels: {', '.join(digest.weakest)}"
        )
        for doubt in digest.doubts:
            msg.warn(doubt.what, doubt.remedy)
        if digest.next:
            msg.info(f"Next: {digest.next}")
    msg.good(f"{out} is the report of the {pipeline} pipeline; any browser shows it, even offline")


if __name__ == "__main__":
    run(report_cli)
