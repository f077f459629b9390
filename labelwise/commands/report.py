"""Write the report of a pipeline: one HTML page with its scores, curves and mistakes."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.commands.console import msg, user_errors
from labelwise.common.sections import read_section
from labelwise.compare.revisions import read_revision
from labelwise.evaluate.ranking import SHIP_AT
from labelwise.evaluate.results import load_results
from labelwise.report.advice import summarize
from labelwise.report.page import write_report

Option = typer.Option
Pipeline = Literal["cpu", "gpu"]


class ReportSection(msgspec.Struct, frozen=True):
    """The section `report` of project.yml.

    base (str): a git revision, such as main, to tell the difference to; empty for none.
    ship_at (float): what the lower end of a label's interval of F must reach for it to be used.
    """

    base: str = ""
    ship_at: Annotated[float, msgspec.Meta(ge=0, le=1)] = SHIP_AT


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
        section = read_section(project if project.is_file() else None, "report", ReportSection)
        base = read_revision(section.base, pipeline, root) if section.base else None
        write_report(root, pipeline, out, base=base, ship_at=section.ship_at)
        digest = summarize(load_results(root, pipeline), pipeline)
    if digest:
        for doubt in digest.doubts:
            msg.warn(doubt.what, doubt.remedy)
        msg.info(f"Points of F to gain: {', '.join(digest.costliest) or 'none'}")
        msg.info(f"F {digest.f}")
        if digest.tasks:
            print(digest.tasks[0].line())  # in one line, as its command is copied
    print(out.resolve().as_uri())
