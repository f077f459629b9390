"""Convert a brat folder to tasks, one by one, replacing an earlier conversion: `convert-brat`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path

import msgspec

from labelwise.annotations import Problem, Reason
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_replaceable
from labelwise.base.parallel import Progress, no_progress
from labelwise.base.settings import CONVERSION, DATASETS
from labelwise.base.text import counted, decode_json, encode_json, place
from labelwise.datasets.brat_folders import Folders, Log, split_folders, split_others
from labelwise.datasets.brat_tasks import Converted, TaskFile, write_tasks
from labelwise.datasets.declarations import natural_order
from labelwise.datasets.entries import AnySplit, Entry, check_renaming, write_entries
from labelwise.sources.brat import (
    DEFAULTS,
    READ_SUFFIXES,
    SUFFIXES,
    BratOptions,
    Document,
    find_documents,
    find_predicted,
    read_document,
)
from labelwise.sources.files import printable, stat_of

OLD_MARKS = ("report.json", "problems.jsonl", DATASETS)  # releases up to 0.2


class Conversion(msgspec.Struct, frozen=True, omit_defaults=True):
    """The mark of a folder of tasks, which a conversion may replace.

    disjoint (dict): labels by folder, if folders share no label and aren't declared.
    empty, documents (int): documents with empty annotation files, and all annotated ones.
    """

    how: BratOptions = DEFAULTS
    lacking: dict[str, dict[str, int]] = {}
    disjoint: dict[str, list[str]] = {}
    empty: int = 0
    documents: int = 0


def convert_brat(
    brat_dir: Path,
    out: Path,
    how: BratOptions = DEFAULTS,
    *,
    may_be_empty: bool = False,
    prefix: str = "",
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> Converted:
    """Convert a brat folder, one document at a time, to tasks with all its labels.

    out (Path): folder for the tasks; replaced as a whole.
    may_be_empty (bool): accept a folder without documents.

    RAISES (InputError): if there is no document, label or such encoding, the folder can't be replaced, or the corpus
        has changed meanwhile.
    """
    check_out(out, [brat_dir])
    try:
        "".encode(how.encoding)
    except (LookupError, ValueError) as error:
        raise InputError(f"there is no encoding {how.encoding!r}; try utf-8 or latin-1") from error
    check_renaming(how.rename, how.labels, "section brat")
    with atomic(out, folders=[out]) as [folder]:
        stems = find_documents(brat_dir)
        if not stems and not may_be_empty:
            raise InputError(f"{brat_dir}: no .txt or .ann file here or below; put a brat corpus there")
        before = stat_of(brat_dir, READ_SUFFIXES)
        predicted = find_predicted(brat_dir)
        folders = split_folders(stems, brat_dir, log) if how.split == "folder" else {}
        others = "auto" if how.split == "folder" else how.split
        if how.folders == "versions":
            stems.sort(key=natural_order)
        texts = Folders(stems, brat_dir)
        apart = how.folders in ("annotators", "labels")

        def file_of(path: str) -> TaskFile:
            split = next((split for folder, split in folders.items() if path.startswith(folder)), others)
            return TaskFile(texts.name_of(path) if apart else "", split)

        def read() -> Iterator[Document]:
            for stem in progress(stems, "convert"):
                document = read_document(stem, brat_dir, how, predicted)
                if document.task and not document.task.predicted:
                    texts.add(document.path, document.task)
                yield document

        converted = write_tasks(read(), folder, file_of)
        # A document's text and annotations are two files.
        if stat_of(brat_dir, READ_SUFFIXES) != before:
            raise InputError(f"{brat_dir}: a file changed while it was read; convert again")
        labels = choose_labels(how, converted.labels, brat_dir, log, converted.first) if stems else []
        if how.folders == "ask":
            texts.check()
        declare_tasks(folder, sorted(converted.files), labels, texts, how, prefix, split_others(folders.values()))
        disjoint = texts.disjoint() if how.folders == "ask" else {}
        mark = Conversion(how, converted.lacking(), disjoint, converted.empty, converted.files.total())
        (folder / CONVERSION).write_bytes(encode_json(mark))
    return converted


def check_out(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output folder that overlaps with an input, or has more than a conversion."""
    target = out.resolve()
    for folder in (folder.resolve() for folder in inputs):
        if target.is_relative_to(folder) or folder.is_relative_to(target):
            raise InputError(f"{out} would be replaced, and {folder} is an input; write elsewhere")
    if not _is_old(out):
        check_replaceable(out, (CONVERSION,), "conversion")


def _is_old(folder: Path) -> bool:
    return all((folder / name).is_file() for name in OLD_MARKS)


def read_conversion(folder: Path) -> Conversion | None:
    """Read the mark of a folder of tasks; None without a conversion. Refuse a malformed mark."""
    file = folder / CONVERSION
    if not file.is_file():
        return Conversion() if _is_old(folder) else None
    problem = f"{file}: not the mark of a conversion"
    return decode_json(file.read_bytes(), Conversion, problem, "convert the corpus again")


def choose_labels(
    how: BratOptions, written: Counter[str], brat_dir: Path, log: Log, bad: Problem | None = None
) -> list[str]:
    """Return the labels to declare: those in the options, or all; refuse none, and unknown ones."""
    for old, new in how.rename.items():
        log(f"{old} renamed to {new}: {counted(written[old], 'span')}")
    labels = {how.rename.get(label, label) for label in written}
    if not labels:
        why = "; " + "; ".join([f"{place(bad.file, bad.line)}: {bad}", *_other_folder(brat_dir, bad)]) if bad else ""
        raise InputError(
            f"{brat_dir}: no annotation in any .ann, .a1 or .a2 file whose text can be read: nothing to learn{why}"
        )
    unknown = [label for label in how.labels if label not in labels]
    if unknown:
        raise InputError(
            f"{brat_dir}: no span has the label {unknown[0]!r}; the labels are {', '.join(sorted(labels))}"
        )
    return list(dict.fromkeys(how.labels or sorted(labels)))


def _other_folder(brat_dir: Path, bad: Problem) -> Iterator[str]:
    """Yield a remedy if a document's missing file is in another folder, or is named after the text's file."""
    suffixes = {Reason.NO_TEXT: (".txt",), Reason.NOT_ANNOTATED: (*SUFFIXES, ".txt.ann")}.get(bad.reason, ())
    file = brat_dir / (bad.file or "")
    beside = (path for suffix in suffixes for path in sorted(brat_dir.rglob(escape(file.stem) + suffix)))
    for path in [path for path in beside if (path.parent, path.stem) != (file.parent, file.stem)][:1]:
        other, there = "in another folder; put both into one", f"there; rename it to {file.stem}.ann"
        yield f"{printable(path.relative_to(brat_dir))} is {other if path.stem == file.stem else there}"


def declare_tasks(
    out: Path,
    files: Iterable[TaskFile],
    labels: list[str],
    folders: Folders,
    how: BratOptions,
    prefix: str,
    others: AnySplit,
) -> None:
    """Write `datasets.yml`: each file is a dataset, brat-FOLDER-SPLIT, complete for all labels."""
    entries = [
        Entry(
            name=prefix + "-".join(filter(None, ("brat", file.folder, file.split if file.split != "auto" else ""))),
            path=file.name,
            labels=tuple(folders.shown(file.folder, labels, how.rename, own=how.folders == "labels")),
            kind="complete",
            split=others if file.split == "auto" else file.split,
            annotator=file.folder if how.folders == "annotators" else "",
            duplicates=how.duplicates,
            expect_losses=how.expect_losses,
        )
        for file in files
    ]
    entries = [entry for entry in entries if entry.labels]
    (out / DATASETS).write_text(write_entries(entries), encoding="utf8")
