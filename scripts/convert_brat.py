"""Convert a brat folder to tasks, with all labels of a document in one."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, progress, run, user_errors
from labelwise.base.settings import read_section
from labelwise.base.text import counted
from labelwise.datasets.brat_tasks import PROBLEMS
from labelwise.datasets.convert_brat import convert_brat
from labelwise.datasets.own_data import check_project
from labelwise.datasets.untracked import check_tracked
from labelwise.sources.brat import READ_SUFFIXES, BratOptions
from labelwise.sources.files import find_files

Option = typer.Option


def convert_brat_cli(
    brat_dir: Annotated[Path, typer.Argument(help="Folder with .txt and .ann (or .a1, .a2) files, at any depth")],
    out: Annotated[Path, typer.Argument(help="Folder for the tasks, one file per split; replaced as a whole")],
    project: Annotated[Path | None, Option(help="YAML file with a section `brat`")] = None,
    prefix: Annotated[str, Option(help="Prefix of the data sets' names, if several corpora are merged")] = "",
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any line can't be converted")] = False,
) -> None:
    """Convert a brat folder to tasks, with all labels of a document in one."""
    with user_errors("Nothing was converted"):
        how = read_section(project, "brat", BratOptions)
        if project:
            check_project(project)
        if project and brat_dir.is_dir():
            check_tracked(find_files(brat_dir, READ_SUFFIXES), out, project, [brat_dir])
        report = convert_brat(
            brat_dir,
            out,
            how,
            may_be_empty=project is not None,  # Prodigy's data sets may be all there is
            prefix=prefix,
            strict=strict,
            progress=progress,
            log=msg.info,
        )
    if not report.documents:  # as there are other data sets
        return
    print_counts("Documents", report.documents)
    print_counts("Annotations (T lines)", report.annotations)
    print_counts("Converted, with a change", report.notes)
    print_counts("Other lines, not converted", {kind: n for kind, n in report.lines.items() if kind != "T"})
    if lost := sum(n for reason, n in report.annotations.items() if reason not in ("converted", "other label")):
        msg.warn(f"{lost:,} can't be converted", f"{out / PROBLEMS} lists the file, line and reason of each")
    for split, kinds in report.lacking.items():
        msg.warn(
            f"No text of {split} has a file {', '.join(kinds)}, but texts of other splits do: gold may be missing",
            "Fetch these files; or, in the section brat of project.yml, list the `labels` that are in the other files, "
            "such as BioNLP's .a1, alone; or put the texts elsewhere",
        )
    if report.disjoint:
        named = "; ".join(f"{name or 'the top'}: {', '.join(labels)}" for name, labels in report.disjoint.items())
        msg.warn(
            "Folders have no label in common, and each text counts as annotated for all labels",
            "If each folder was annotated for its own labels, set in the section brat of project.yml: folders: labels",
        )
        msg.info(named)
    msg.good(f"{out / 'datasets.yml'} declares {counted(len(report.labels), 'label')}")


if __name__ == "__main__":
    run(convert_brat_cli)
