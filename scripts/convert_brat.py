"""Convert a brat folder to tasks, with all labels of a document in one."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.console import msg, print_counts, progress, run, user_errors
from labelwise.settings import read_section
from labelwise.sources.brat import Discontinuous, MissingAnn, Reading, Shifted
from labelwise.sources.convert_brat import PROBLEMS, convert_brat
from labelwise.text import counted

Option = typer.Option


class BratSection(msgspec.Struct, frozen=True):
    """The section `brat` of project.yml.

    split (str): of all its texts; "folder": folders train, dev and test are those splits, other texts go by hash.
    labels (list): those to convert; all if empty.
    rename (dict): other names of labels.
    missing_ann (str): a text without an annotation file is skipped, or has no entities.
    discontinuous (str): a span in pieces is dropped, has its first piece alone, or covers all of them.
    shifted (str): a mention that isn't at its offsets is dropped, or moved to the nearest place.
    encoding (str): of texts and annotations.
    prefix (str): what the data sets' names begin with; brat, or brat-SPLIT, follows.
    """

    split: Literal["folder", "auto", "train", "dev", "test"] = "folder"
    labels: list[str] = []
    rename: dict[str, str] = {}
    missing_ann: MissingAnn = "skip"
    discontinuous: Discontinuous = "drop"
    shifted: Shifted = "drop"
    encoding: str = "utf-8"
    prefix: str = ""


def convert_brat_cli(
    brat_dir: Annotated[Path, typer.Argument(help="Folder with .txt and .ann (or .a1, .a2) files, at any depth")],
    out: Annotated[Path, typer.Argument(help="Folder for the tasks, a file a split; replaced as a whole")],
    fallback: Annotated[Path | None, Option(help="Folder to convert when BRAT_DIR has no documents")] = None,
    project: Annotated[Path | None, Option(help="YAML file with a section `brat`")] = None,
    prefix: Annotated[str, Option(help="What the data sets' names begin with, if several corpora are merged")] = "",
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any line can't be converted")] = False,
) -> None:
    """Convert a brat folder to tasks, with all labels of a document in one."""
    with user_errors("Nothing was converted"):
        section = msgspec.structs.asdict(read_section(project, "brat", BratSection))
        section["labels"] = tuple(section["labels"])
        section["prefix"] = prefix or section["prefix"]
        how = Reading(**{name: section.pop(name) for name in Reading._fields if name in section})
        report = convert_brat(
            brat_dir,
            out,
            how,
            fallback=fallback,
            strict=strict,
            progress=progress,
            tell=msg.info,
            **section,
        )
    if not report.documents:  # as there are other data sets
        return
    print_counts("Documents", report.documents)
    print_counts("Annotations (T lines)", report.annotations)
    print_counts("Converted, with a change", report.notes)
    print_counts("Other lines, not converted", {LINES[kind]: n for kind, n in report.lines.items() if kind != "T"})
    total = sum(report.annotations.values())
    left_out = report.annotations.get("other label", 0)
    lost = total - left_out - report.annotations.get("converted", 0)
    labels = counted(len(report.labels), "label")
    done = f"{report.annotations.get('converted', 0):,} of {total:,} annotations, of {labels}"
    msg.good(f"{done}, are in {out / 'datasets.yml'}")
    if left_out:
        msg.info(f"{left_out:,} have a label that wasn't asked for")
    if lost:
        msg.warn(f"{lost:,} can't be converted", f"{out / PROBLEMS} lists the file, line and reason of each")


LINES = {
    "E": "events (E)",
    "R": "relations (R)",
    "A": "attributes (A)",
    "M": "attributes (M)",
    "N": "normalizations (N)",
    "#": "notes (#)",
    "*": "equivalences (*)",
    "blank": "blank",
    "stray": "stray",
}


if __name__ == "__main__":
    run(convert_brat_cli)
