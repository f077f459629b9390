"""Convert a brat folder to Prodigy data sets, one a label."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from labelwise.assets import verify_assets
from labelwise.brat import Discontinuous, MissingAnn, Shifted, count_labels, find_documents, read_document
from labelwise.convert import PROBLEMS, REPORT, Report, write_datasets
from labelwise.datasets import AnySplit
from labelwise.errors import InputError
from labelwise.output import staged
from scripts.console import print_counts, progress, user_errors

Option = typer.Option
CHOSEN = ("other label", "no annotation file")  # reasons that an option asks for


def convert_brat_cli(
    brat_dir: Annotated[Path, typer.Argument(help="Folder with .txt and .ann (or .a1, .a2) files, at any depth")],
    out: Annotated[Path, typer.Argument(help="Folder for the data sets; replaced as a whole")],
    fallback: Annotated[Path | None, Option(help="Folder to convert when BRAT_DIR has no document")] = None,
    labels: Annotated[str, Option(help="Labels to convert, separated by commas; empty for all")] = "",
    missing_ann: Annotated[
        MissingAnn, Option(help="A text without annotation file: left out, or no entities")
    ] = "skip",
    discontinuous: Annotated[Discontinuous, Option(help="A span in pieces: no, its first, first to last")] = "drop",
    shifted: Annotated[Shifted, Option(help="A mention that isn't at its offsets: no, its nearest place")] = "drop",
    encoding: Annotated[str, Option(help="Encoding of texts and annotations")] = "utf-8",
    split: Annotated[AnySplit, Option(help="The split that all these texts belong to; auto: by hash")] = "auto",
    prefix: Annotated[str, Option(help="What the data sets' names begin with; the label follows")] = "",
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any line can't be converted")] = False,
) -> None:
    """Convert a brat folder to Prodigy data sets, one a label."""
    with user_errors("Nothing was converted"):
        wanted = [label.strip() for label in labels.split(",") if label.strip()]
        report = convert_brat(
            brat_dir,
            out,
            fallback=fallback,
            labels=wanted,
            missing_ann=missing_ann,
            discontinuous=discontinuous,
            shifted=shifted,
            encoding=encoding,
            split=split,
            prefix=prefix,
            strict=strict,
        )
    print_counts("Documents", report.documents)
    print_counts("Annotations (T lines)", report.annotations)
    print_counts("Converted, with a change", report.notes)
    print_counts("Other lines, not converted", {LINES[kind]: n for kind, n in report.lines.items() if kind != "T"})
    print_counts("Spans by label", report.labels)
    total = sum(report.annotations.values())
    left_out = report.annotations.get("other label", 0)
    lost = total - left_out - report.annotations.get("converted", 0)
    msg.good(f"{report.annotations.get('converted', 0):,} of {total:,} annotations are in {out / 'datasets.yml'}")
    if left_out:
        msg.info(f"{left_out:,} have another label than those asked for")
    if lost:
        msg.warn(f"{lost:,} can't be converted", f"{out / PROBLEMS} has file, line and reason of each")


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


def convert_brat(
    brat_dir: Path,
    out: Path,
    *,
    fallback: Path | None = None,
    labels: list[str] | None = None,
    missing_ann: MissingAnn = "skip",
    discontinuous: Discontinuous = "drop",
    shifted: Shifted = "drop",
    encoding: str = "utf-8",
    split: AnySplit = "auto",
    prefix: str = "",
    strict: bool = False,
) -> Report:
    """Convert a brat folder; see the command's options.

    RAISES (InputError): no document, no label, no such encoding, a folder that mustn't be replaced, a fetched corpus
        that isn't what project.yml says, or, with `strict`, a line that can't be converted.
    """
    check_out(out, [folder for folder in (brat_dir, fallback) if folder])
    check_encoding(encoding)
    stems = find_documents(brat_dir)
    if not stems and fallback:
        msg.info(f"{brat_dir} has no document: converting {fallback}")
        brat_dir, stems = fallback, find_documents(fallback)
    if not stems:
        raise InputError(f"{brat_dir}: no .txt or .ann file here or below; put a brat corpus there")
    verify_assets(brat_dir)
    chosen = choose_labels(labels, count_labels(progress(stems, "labels"), encoding), brat_dir)
    documents = (
        read_document(
            stem,
            brat_dir,
            labels=frozenset(chosen),
            missing_ann=missing_ann,
            discontinuous=discontinuous,
            shifted=shifted,
            encoding=encoding,
        )
        for stem in progress(stems, "convert")
    )
    with staged(out) as folder:
        report = write_datasets(documents, chosen, folder, split=split, prefix=prefix)
        if strict:
            check_strictly(folder / PROBLEMS)
    return report


def choose_labels(wanted: list[str] | None, found: Counter[str], brat_dir: Path) -> list[str]:
    """Choose the labels to convert: those wanted, once each, or all.

    RAISES (InputError): one that is wanted doesn't occur, or none does.
    """
    if not found:
        raise InputError(f"{brat_dir}: no annotation in any .ann, .a1 or .a2 file, so nothing to learn")
    unknown = [label for label in wanted or () if label not in found]
    if unknown:
        raise InputError(f"{brat_dir}: no span has the label {unknown[0]!r}; there are {', '.join(sorted(found))}")
    return list(dict.fromkeys(wanted or sorted(found)))


def check_out(out: Path, inputs: list[Path]) -> None:
    """Check that writing to a folder, which replaces it as a whole, takes nothing away but an earlier conversion.

    RAISES (InputError): it has to do with an input, or has other things in it.
    """
    target = out.resolve()
    for folder in (folder.resolve() for folder in inputs):
        if target.is_relative_to(folder) or folder.is_relative_to(target):
            raise InputError(f"{out} would be replaced, and {folder} is read; write elsewhere")
    if out.exists() and not (out / REPORT).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} would be replaced, and isn't an earlier conversion; write elsewhere, or delete it")


def check_encoding(encoding: str) -> None:
    """Check that there is such an encoding, and that its lines end as ASCII's do.

    RAISES (InputError): there isn't, or they don't.
    """
    try:
        usable = "a\n".encode(encoding).endswith(b"a\n")
    except LookupError as error:
        raise InputError(f"there is no encoding {encoding!r}; try utf-8 or latin-1") from error
    if not usable:
        raise InputError(f"files in {encoding!r} can't be read line by line; convert them to UTF-8 before")


def check_strictly(problems: Path) -> None:
    """Check that every file and line could be read and converted, but for what options leave out.

    RAISES (InputError): one couldn't.
    """
    with problems.open(encoding="utf8") as file:
        lines = [problem for problem in map(json.loads, file) if problem["reason"] not in CHOSEN]
    if lines:
        first = lines[0]
        raise InputError(
            f"{len(lines)} files or lines can't be converted, the first is {first['file']}:{first['line']} "
            f"({first['reason']}): {first['row']!r}; mend them, or leave out --strict"
        )


if __name__ == "__main__":
    typer.run(convert_brat_cli)
