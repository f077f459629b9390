"""Write the report of a pipeline: one HTML page with its scores, curves and mistakes."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.common.sections import read_section
from labelwise.common.wording import counted
from labelwise.compare.revisions import read_revision
from labelwise.evaluate.results import load_results
from labelwise.report.advice import summarize
from labelwise.report.page import write_report
from scripts.console import msg, run, user_errors

Option = typer.Option
Pipeline = Literal["cpu", "gpu"]


class ReportSection(msgspec.Struct, frozen=True):
    """The section `report` of project.yml.

    base (str): a git revision, such as main, to tell the difference to; empty for none.
    """

    base: str = ""


def report_cli(
    out: Annotated[Path, typer.Argument(metavar="OUT.html", help="HTML file to write")],
    pipeline: Annotated[Pipeline, Option(help="Which pipeline's results to report")],
    root: Annotated[
        Path, Option(help="Folder of the project; its project.yml, if there is one, has a section `report`")
    ] = Path(),
) -> None:
    """Write the report of a pipeline: one HTML page with its scores, curves and mistakes."""
    with user_errors("No report was written"):
        project = root / "project.yml"
        base = read_section(project if project.is_file() else None, "report", ReportSection).base
        write_report(root, pipeline, out, base=read_revision(base, pipeline, root) if base else None)
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
