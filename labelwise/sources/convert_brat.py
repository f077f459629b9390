"""Convert a brat folder to tasks: check the request, read, write, and replace the earlier conversion."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from labelwise.corpus.manifest import Split
from labelwise.corpus.tasks import DATASETS
from labelwise.errors import InputError
from labelwise.files import check_replaceable, staged
from labelwise.parallel import Progress, no_progress, open_workers
from labelwise.sources.assets import verify_assets
from labelwise.sources.brat import (
    READ_SUFFIXES,
    Discontinuous,
    Document,
    MissingAnn,
    Shifted,
    find_documents,
    read_document,
)
from labelwise.sources.brat_predicted import find_predicted
from labelwise.sources.brat_tasks import (
    PROBLEMS,
    REPORT,
    Converted,
    Report,
    convert_documents,
    declare_tasks,
    read_problems,
    write_report,
    write_tasks,
)
from labelwise.sources.declarations import AnySplit, check_document_url, check_renaming
from labelwise.sources.files import has_data, stat_of
from labelwise.text import counted

SPLIT_FOLDERS: Mapping[str, Split] = {
    "train": "train",
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    "test": "test",
}
TOGETHER = 50  # documents that a worker reads at a time, and sends back
CHOSEN = ("other label", "no annotation file")  # reasons that an option asks for


def convert_brat(
    brat_dir: Path,
    out: Path,
    *,
    fallback: Path | None = None,
    unless: Path | None = None,
    rename: Mapping[str, str] = {},
    labels: list[str] | None = None,
    missing_ann: MissingAnn = "skip",
    discontinuous: Discontinuous = "drop",
    shifted: Shifted = "drop",
    encoding: str = "utf-8",
    split: AnySplit | Literal["folder"] = "auto",
    prefix: str = "",
    document_url: str = "",
    strict: bool = False,
    workers: int = 1,
    address: str = "",
    progress: Progress = no_progress,
    tell: Callable[[str], Any] = lambda message: None,
) -> Report:
    """Convert a brat folder: each document is read once, and becomes a task with all its labels.

    out (Path): the folder for the tasks; replaced as a whole.
    fallback (Path | None): the folder to convert when `brat_dir` has no documents.
    unless (Path | None): a folder of other data sets; if there are some, there is no need for the fallback, nor for
        any document.
    rename (Mapping[str, str]): new names of labels.
    labels (list[str] | None): those to convert, by their new names; all if there are none.
    missing_ann, discontinuous, shifted, encoding (str): see `brat.read_document`.
    split (str): that of all texts; "auto" by hash; "folder" by the folders that they are in, see `split_folders`.
    prefix, document_url (str): see `brat_tasks.declare_tasks`.
    strict (bool): it is an error if any line can't be converted; nothing is written then.
    workers, address: see `parallel.open_workers`.
    progress (Callable): shows progress; takes an iterable, and a name for it.
    tell (Callable): is told that `fallback` is converted, and how many spans are renamed.

    RAISES (InputError): no document, no label, no such encoding, a folder that mustn't be replaced, or that another
        process is writing, a corpus with another checksum than in project.yml, or that changes meanwhile, a wrong
        address, or, with `strict`, a line that can't be converted.
    """
    check_out(out, [folder for folder in (brat_dir, fallback) if folder])
    check_encoding(encoding)
    check_document_url(document_url, "section brat")
    check_renaming(rename, labels or (), "section brat")
    with ExitStack() as stack:
        folder = stack.enter_context(staged(out, folder=True))
        if unless and has_data(unless) and brat_dir.is_dir() and not find_documents(brat_dir):
            tell(f"{brat_dir} has no documents, and {unless} has data sets: nothing to convert")
            counts = write_tasks([], folder)
            declare_tasks(folder, [], prefix, document_url)
            return write_report(counts, folder)
        brat_dir, stems = choose_folder(brat_dir, fallback, tell)
        before = stat_of(brat_dir, READ_SUFFIXES)
        verify_assets(brat_dir)
        root = brat_dir.absolute()  # a cluster's workers are elsewhere
        read = partial(
            read_document,
            root=root,
            rename=rename,
            labels=frozenset(labels) if labels else None,
            missing_ann=missing_ann,
            discontinuous=discontinuous,
            shifted=shifted,
            encoding=encoding,
            predicted=find_predicted(root),
        )
        folders = split_folders(stems, brat_dir, tell) if split == "folder" else {}
        convert = partial(convert_some, read=read, split="auto" if split == "folder" else split, folders=folders)
        jobs = [
            Documents([stem.absolute() for stem in stems[start : start + TOGETHER]])
            for start in range(0, len(stems), TOGETHER)
        ]
        map_jobs = stack.enter_context(open_workers(min(workers, len(jobs)), address, out.absolute()))
        counts = write_tasks(map_jobs(convert, progress(jobs, "convert")), folder)
        # A document's text and annotations are two files.
        if stat_of(brat_dir, READ_SUFFIXES) != before:
            raise InputError(f"{brat_dir}: a file changed while it was read; convert again")
        chosen = choose_labels(labels, rename_counts(counts["written"], rename, tell), brat_dir, folder)
        counts["labels"].update(dict.fromkeys(chosen, 0))
        declare_tasks(folder, chosen, prefix, document_url)
        if strict:
            check_strictly(folder)
        return write_report(counts, folder)


class Documents(NamedTuple):
    """Some documents to convert, by their paths without suffix."""

    stems: list[Path]

    def __str__(self) -> str:
        """Name the first document."""
        return f"{self.stems[0]} and {len(self.stems) - 1} documents after it"


def convert_some(
    job: Documents, *, read: Callable[[Path], Document], split: str, folders: Mapping[str, str]
) -> Converted:
    """Read documents, and make tasks of them."""
    return convert_documents(map(read, job.stems), split, folders)


def split_folders(stems: Sequence[Path], brat_dir: Path, tell: Callable[[str], Any]) -> dict[str, Split]:
    """Find the splits that the folders of a corpus are named after: train, dev (or valid, validation, val), and test.

    Where dev or test has no folder, the texts of train are split by hash, so that there is one.

    tell (Callable): is told the splits.
    """
    names = {stem.relative_to(brat_dir).parts[0] for stem in stems if len(stem.relative_to(brat_dir).parts) > 1}
    found = {name: SPLIT_FOLDERS[name.lower()] for name in sorted(names) if name.lower() in SPLIT_FOLDERS}
    lacking = [split for split in ("dev", "test") if split not in found.values()]
    kept = {name: split for name, split in found.items() if split != "train" or not lacking}
    inner = sorted({"/".join(parts) for parts in _folders(stems, brat_dir) if parts[-1].lower() in SPLIT_FOLDERS})
    if inner and not found:
        tell(f"Folders such as {inner[0]} are no splits, as they aren't in {brat_dir} itself; move them there")
    if found:
        tell("Splits by folder: " + ", ".join(f"{name} is {split}" for name, split in kept.items()))
    if found and lacking:
        without = " and ".join(lacking)
        tell(f"No folder for {without}: other texts are split by hash, by dev_ratio and test_ratio in project.yml")
    return kept


def _folders(stems: Sequence[Path], brat_dir: Path) -> Iterator[tuple[str, ...]]:
    """Yield the folders of documents, and all that they are in."""
    for parts in {stem.relative_to(brat_dir).parts[:-1] for stem in stems}:
        yield from (parts[:end] for end in range(1, len(parts) + 1))


def choose_folder(brat_dir: Path, fallback: Path | None, tell: Callable[[str], Any]) -> tuple[Path, list[Path]]:
    """Return the folder to convert, with its documents: `fallback`, if there are none in `brat_dir`.

    RAISES (InputError): there is no document.
    """
    stems = find_documents(brat_dir)
    if not stems and fallback and (stems := find_documents(fallback)):
        tell(f"{brat_dir} has no documents: converting {fallback}")
        return fallback, stems
    if not stems:
        other = ", or run make-demo" if fallback else ""
        raise InputError(f"{brat_dir}: no .txt or .ann file here or below; put a brat corpus there{other}")
    return brat_dir, stems


def rename_counts(found: Counter[str], rename: Mapping[str, str], tell: Callable[[str], Any]) -> Counter[str]:
    """Count labels by their new names.

    tell (Callable): is told of each renamed label how many spans there are.
    """
    for old, new in rename.items():
        tell(f"{old} renamed to {new}: {counted(found[old], 'span')}")
    renamed: Counter[str] = Counter()
    for label, spans in found.items():
        renamed[rename.get(label, label)] += spans
    return renamed


def choose_labels(wanted: list[str] | None, found: Counter[str], brat_dir: Path, out: Path) -> list[str]:
    """Choose the labels to declare: those wanted, once each, or all.

    out (Path): the conversion.
    RAISES (InputError): one that is wanted doesn't occur, or none does.
    """
    if not found:
        utf16 = next((problem["file"] for problem in read_problems(out) if problem["reason"] == "UTF-16"), "")
        if utf16:
            raise InputError(f"{brat_dir / utf16}: this is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8")
        raise InputError(
            f"{brat_dir}: no annotation in any .ann, .a1 or .a2 file whose text can be read: nothing to learn"
        )
    unknown = [label for label in wanted or () if label not in found]
    if unknown:
        raise InputError(f"{brat_dir}: no span has the label {unknown[0]!r}; the labels are {', '.join(sorted(found))}")
    return list(dict.fromkeys(wanted or sorted(found)))


def check_out(out: Path, inputs: list[Path]) -> None:
    """Check that writing to a folder, which replaces it as a whole, destroys nothing but an earlier conversion.

    RAISES (InputError): it overlaps with an input, or has other things in it.
    """
    target = out.resolve()
    for folder in (folder.resolve() for folder in inputs):
        if target.is_relative_to(folder) or folder.is_relative_to(target):
            raise InputError(f"{out} would be replaced, and {folder} is an input; write elsewhere")
    check_replaceable(out, (REPORT, PROBLEMS, DATASETS), "conversion")


def check_encoding(encoding: str) -> None:
    """Check that there is such an encoding, and that ASCII is the same in it, line ends above all.

    RAISES (InputError): there isn't, or they don't.
    """
    try:
        # First a seeming escape, then all characters.
        usable = all(sample.decode(encoding) == sample.decode("ascii") for sample in (b"\\u0041", bytes(range(128))))
    except UnicodeError:
        usable = False
    except (LookupError, ValueError) as error:
        raise InputError(f"there is no encoding {encoding!r}; try utf-8 or latin-1") from error
    if not usable:
        raise InputError(f"files in {encoding!r} can't be read line by line; convert them to UTF-8 first")


def check_strictly(out: Path) -> None:
    """Check that every file and line could be read and converted, except for the lines that options leave out.

    out (Path): the conversion.
    RAISES (InputError): one couldn't.
    """
    lines = [problem for problem in read_problems(out) if problem["reason"] not in CHOSEN]
    if lines:
        first, count = lines[0], counted(len(lines), "file or line", "files or lines")
        raise InputError(
            f"{count} can't be converted, the first is {first['file']}:{first['line']} "
            f"({first['reason']}): {first['row']!r}; fix them, or leave out --strict"
        )
