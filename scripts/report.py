"""Write the report of a pipeline: one HTML page that says what to do next."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from labelwise.base.console import msg, print_warnings, run, user_errors
from labelwise.base.errors import InputError
from labelwise.base.sections import ReportSection
from labelwise.base.settings import read_section
from labelwise.compare.changed_spans import ChangedSpan, changed_spans
from labelwise.compare.comparison import compare
from labelwise.compare.revisions import WORKSPACE, find_earlier, read_before, read_revision
from labelwise.datasets.own_data import check_own_data
from labelwise.report.forecasts import FOLDER, Changes
from labelwise.report.page import Baseline, write_report
from labelwise.report.review_queue import DECISIONS, count_decided

Option = typer.Option


def report_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a config, such as cpu: report/cpu.html")],
    root: Annotated[Path, Option(help="Folder of the project; its project.yml may have a section `report`")] = Path(),
) -> None:
    """Write the report of a pipeline: one HTML page that says what to do next."""
    out = root / "report" / f"{pipeline}.html"
    with user_errors("No report was written"):
        check_own_data(root)
        project = root / "project.yml"
        section = read_section(project if project.is_file() else None, "report", ReportSection)
        baseline = read_baseline(section.baseline, pipeline, root)
        advice = write_report(
            root, pipeline, out, baseline=baseline, target_f1=section.target_f1, annotators=section.annotators
        )
    print_warnings(advice.warnings)
    msg.info(f"F1 {advice.f}. {advice.verdict}. {advice.why[:1].upper()}{advice.why[1:]}")
    print(f"Next: {advice.tasks[0]}")  # in one line, as its command is copied
    print(out.resolve().as_uri())


def read_baseline(name: str, pipeline: str, root: Path) -> Baseline | None:
    """Read the scores to compare with: a revision's, or else the last committed ones that differ.

    RAISES (InputError): if a named revision has no scores.
    """
    revision = name or find_earlier(pipeline, root)
    try:
        metrics, decisions = read_before(revision, pipeline, DECISIONS, root)
        baseline = Baseline(name or revision[:8], metrics, count_decided(root, decisions))
    except InputError:  # nothing was committed yet
        if name:
            raise
        return None
    try:
        changed, common = read_changed(revision, pipeline, root)
        return baseline._replace(changed=changed, common=common)
    except InputError as error:
        if name:
            msg.info(f"Fixed and new errors aren't listed: {error}")
        return baseline


def read_changed(revision: str, pipeline: str, root: Path) -> tuple[list[ChangedSpan], Changes]:
    """List the errors fixed or new since a revision, and the changes of F1 for forecasts.

    RAISES (InputError): if DVC lacks the tables of one of them.
    """
    with TemporaryDirectory() as folder:
        before = read_revision(revision, pipeline, Path(folder, "before"), root)
        now = read_revision(WORKSPACE, pipeline, Path(folder, "now"), root)
        if now.metrics.shows_dev and not before.metrics.dev:
            raise InputError(f"{revision}: dev wasn't evaluated there, and the page shows the errors on dev")
        common: Changes = {}
        if (root / FOLDER / f"{pipeline}.jsonl").is_file():
            with suppress(InputError):  # no text or label in common
                comparison, digest = compare([before, now]), before.metrics.pipeline_digest
                rows = {"": comparison.micro, **comparison.labels}
                common = {(digest, label): row.changes[WORKSPACE].difference for label, row in rows.items()}
        return changed_spans(before, now, dev=now.metrics.shows_dev), common


if __name__ == "__main__":
    run(report_cli)
