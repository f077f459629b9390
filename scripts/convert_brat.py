"""Convert a brat folder to tasks, with all labels of a document in one."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from labelwise.console import AddressOption, msg, print_counts, progress, run, user_errors
from labelwise.errors import InputError
from labelwise.sources.brat import Discontinuous, MissingAnn, Shifted
from labelwise.sources.brat_tasks import PROBLEMS
from labelwise.sources.convert_brat import convert_brat
from labelwise.text import counted

Option = typer.Option
BratSplit = Literal["auto", "folder", "train", "dev", "test"]


def convert_brat_cli(
    brat_dir: Annotated[Path, typer.Argument(help="Folder with .txt and .ann (or .a1, .a2) files, at any depth")],
    out: Annotated[Path, typer.Argument(help="Folder for the tasks, a file a split; replaced as a whole")],
    fallback: Annotated[Path | None, Option(help="Folder to convert when BRAT_DIR has no documents")] = None,
    unless: Annotated[Path | None, Option(help="Folder of other data sets, beside which FALLBACK isn't needed")] = None,
    rename: Annotated[
        list[str] | None, Option(metavar="OLD=NEW", help="A label's new name; once for each label that gets one")
    ] = None,
    labels: Annotated[str, Option(help="Labels to convert, separated by commas; empty for all")] = "",
    missing_ann: Annotated[
        MissingAnn, Option(help="A text without an annotation file: leave it out, or no entities")
    ] = "skip",
    discontinuous: Annotated[
        Discontinuous, Option(help="A span in pieces: drop it, keep its first piece, or cover all of them")
    ] = "drop",
    shifted: Annotated[
        Shifted, Option(help="A mention that isn't at its offsets: drop it, or move it to the nearest place")
    ] = "drop",
    encoding: Annotated[str, Option(help="Encoding of texts and annotations")] = "utf-8",
    split: Annotated[
        BratSplit, Option(help="The split of all these texts; auto: by hash; folder: by folders train, dev and test")
    ] = "auto",
    prefix: Annotated[str, Option(help="What the data sets' names begin with; brat, or brat-SPLIT, follows")] = "",
    document_url: Annotated[
        str, Option(help="Where documents are shown, such as https://brat.example.org/#/{doc}; empty for nowhere")
    ] = "",
    workers: Annotated[int, Option(help="Processes that read documents")] = 1,
    address: AddressOption = "",
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any line can't be converted")] = False,
) -> None:
    """Convert a brat folder to tasks, with all labels of a document in one."""
    with user_errors("Nothing was converted"):
        wanted = [label.strip() for label in labels.split(",") if label.strip()]
        report = convert_brat(
            brat_dir,
            out,
            fallback=fallback,
            unless=unless,
            rename=parse_renaming(rename or []),
            labels=wanted,
            missing_ann=missing_ann,
            discontinuous=discontinuous,
            shifted=shifted,
            encoding=encoding,
            split=split,
            prefix=prefix,
            document_url=document_url,
            strict=strict,
            workers=workers,
            address=address,
            progress=progress,
            tell=msg.info,
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


def parse_renaming(rename: list[str]) -> dict[str, str]:
    """Read OLD=NEW.

    RAISES (InputError): it is something else, or a label gets two names.
    """
    pairs = [one.partition("=") for one in rename]
    for one, (old, equals, _) in zip(rename, pairs, strict=True):
        if not old or not equals:
            raise InputError(f"--rename {one!r}: write it as OLD=NEW, such as --rename PER=PERSON")
        if sum(old == other for other, *_ in pairs) > 1:
            raise InputError(f"--rename: {old!r} gets two names; give it one")
    return {old: new for old, _, new in pairs}


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
