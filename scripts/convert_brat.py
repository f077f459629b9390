"""Convert a brat folder to tasks, with all labels of a document in one."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, progress, run, user_errors
from labelwise.base.settings import read_section
from labelwise.base.text import counted
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
    prefix: Annotated[str, Option(help="Prefix of the datasets' names, if several corpora are merged")] = "",
) -> None:
    """Convert a brat folder to tasks, with all labels of a document in one."""
    with user_errors("Nothing was converted"):
        how = read_section(project, "brat", BratOptions)
        if project:
            check_project(project)
        if project and brat_dir.is_dir():
            check_tracked(find_files(brat_dir, READ_SUFFIXES), out, project, [brat_dir])
        converted = convert_brat(
            brat_dir,
            out,
            how,
            may_be_empty=project is not None,  # Prodigy's datasets may be all there is
            prefix=prefix,
            progress=progress,
            log=msg.info,
        )
    if not converted.files:  # as there are other datasets
        return
    print_counts("Converted, with a change", converted.notes)
    print_counts("Other lines, not converted", {kind: n for kind, n in converted.lines.items() if kind != "T"})
    print_counts("Not converted, and counted by the merge", converted.problems)
    msg.good(f"Converted {counted(converted.files.total(), 'annotated document')}: {out}")


if __name__ == "__main__":
    run(convert_brat_cli)
