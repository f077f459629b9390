"""Write an entry into a folder's `datasets.yml` for each file in it that nobody has declared, and print what isn't.

An entry has a file's name and path, and the labels that are used in it, to be checked: labels nobody used can't be
inferred. From then on `datasets.yml` is the truth: entries are added to it, and never changed or taken out. Each file
is a data set of its own, until somebody lists two exports in one entry. `skip: true` leaves one out for good.

A file that is named after a split is declared for it: `dev.spacy`, `food_eval.jsonl`. `train` only counts beside both
of the others, as there would be no text in these, and the others only where something is left to learn from.
"""

import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise.annotations import Problem, Reason
from labelwise.base.console import msg, print_table
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.text import counted
from labelwise.corpus.manifest import Split
from labelwise.corpus.tasks import DATASETS
from labelwise.datasets.brat_splits import SPLIT_FOLDERS
from labelwise.datasets.declarations import SourceFile, find_sources
from labelwise.datasets.entries import Entry, decode_entries, read_entries, write_entries
from labelwise.sources.brat import SUFFIXES as BRAT_SUFFIXES
from labelwise.sources.files import data_in, find_files, printable, read_file
from labelwise.sources.formats import DATABASE, SUFFIXES, read_items
from labelwise.sources.prodigy import find_names
from labelwise.sources.tags import NO_LABEL

COMMENT = """\
# Found in this folder, to be checked: list all labels that annotators were shown, as those nobody used can't be
# inferred, and say `split: test` of a test set. docs/formats.md has all that can be declared.
"""
# What to do with files that can't be read, by the ends of their names.
REMEDIES = {
    (
        ".zip",
        ".tar",
        ".tgz",
        ".tar.gz",
        ".7z",
        ".rar",
        ".bz2",
        ".xz",
        ".zst",
    ): "unpack it (unzip, tar -x), and delete it",
    (".csv", ".xlsx", ".xls", ".ods"): "save the sheet as .tsv, a token and its tag in a line, or as .jsonl",
    (".txt",): "if its lines are tokens with tags, rename it to .conll",
}


# Words of a name that say which split a file is. Evaluation sets are for tests: nothing is chosen by them.
SPLIT_WORDS: Mapping[str, Split] = {
    **SPLIT_FOLDERS,
    "training": "train",
    **dict.fromkeys(("eval", "evaluation", "testing"), "test"),
}


class Undeclared(NamedTuple):
    """A file that nobody had declared, or a data set of a Prodigy database.

    entry (Entry): the one that it should have.
    texts (int): tasks with a text.
    problem (str): why it isn't declared; empty if it is now.
    """

    entry: Entry
    texts: int = 0
    problem: str = ""


def declare(folder: Path) -> list[Undeclared]:
    """Have the files of a folder declared that aren't, and print the entries that were added; return the others."""
    found = declare_folder(folder)
    new = [one for one in found if not one.problem]
    splits = ["split"] * any(one.entry.split != "auto" for one in new)
    rows = [
        [one.entry.name, ", ".join(one.entry.labels), f"{one.texts:,}", *(one.entry.split for _ in splits)]
        for one in new
    ]
    print_table([f"Added to {folder / DATASETS}", "labels", "texts", *splits], rows)
    if new:
        msg.warn(
            f"Check the {counted(len(new), 'data set')} added to {folder / DATASETS}",
            "The entries list the labels that occur: add labels that annotators saw, and never used",
        )
    return [one for one in found if one.problem]


def print_undeclared(folder: Path, left: Iterable[Undeclared]) -> None:
    """Print the files of a folder that aren't declared, each with the entry to add."""
    for one in left:
        file = folder / one.entry.paths[0]
        msg.warn(f"{file}: {one.entry.name!r} isn't declared", one.problem)
        if file.name.endswith(SUFFIXES):
            msg.info(f"To leave it out for good, add an entry with `skip: true` to {folder / DATASETS}.")
            if Reason.OTHER_FORMAT in one.problem:
                continue
            msg.info(f"To merge it, add to {folder / DATASETS}, with all labels that annotators were shown:")
            print(write_entries([msgspec.structs.replace(one.entry, labels=one.entry.labels or ("LABEL",))]))


def declare_folder(folder: Path) -> list[Undeclared]:
    """Add to a folder's `datasets.yml` an entry for each file that has none, with its name, path and used labels.

    What it has stays as it is, and counts from then on.

    RETURNS (list[Undeclared]): all that had no entry, also what isn't added: if it has no labels, can't be read, or if
        the `datasets.yml` isn't written in a way that entries can be put at its end.
    RAISES (InputError): it has an entry whose sources can't be found; see `declarations.find_sources`.
    """
    file = folder / DATASETS
    content = read_file(file).decode() if file.is_file() else ""
    entries = read_entries(file) if content else []
    found = name_splits([*_find_undeclared(folder, entries)], entries)
    new = [one.entry for one in found if not one.problem]
    if not new:
        return found
    content += ("" if content[-1:] in ("", "\n") else "\n") + COMMENT + write_entries(new)
    try:
        fits = decode_entries(content.encode(), file) == [*entries, *new]
    except InputError:
        fits = False
    if not fits:
        return [one if one.problem else one._replace(problem="its entry can't be added at the end") for one in found]
    with atomic(file) as path:
        path.write_text(content, encoding="utf8")
    return found


def name_splits(found: Sequence[Undeclared], entries: Sequence[Entry]) -> list[Undeclared]:
    """Assign to entries the splits that their files are named after.

    entries (Sequence[Entry]): those that are declared already.
    """
    named = [split_in(one.entry.paths[0]) if not one.entry.db else None for one in found]
    usable = [split for one, split in zip(found, named, strict=True) if not one.problem]
    splits = {*usable, *(entry.split for entry in entries if not entry.skip)}
    if not {"dev", "test"} <= splits:
        named = [None if split == "train" else split for split in named]
    if splits <= {"dev", "test"}:
        return [*found]
    return [
        one._replace(entry=msgspec.structs.replace(one.entry, split=split)) if split else one
        for one, split in zip(found, named, strict=True)
    ]


def split_in(name: str) -> Split | None:
    """Find the split that a file or folder is named after, in a whole word; None if there is none, or two.

    >>> split_in("food_eval.jsonl"), split_in("Train.conll"), split_in("contest.jsonl"), split_in("train-test.jsonl")
    ('test', 'train', None, None)
    """
    words = re.split(r"[^a-z]+", name.lower())
    found = {SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS}
    return found.pop() if len(found) == 1 else None


def _find_undeclared(folder: Path, entries: Sequence[Entry]) -> Iterator[Undeclared]:
    """Yield whatever may be a data set in a folder, not below it, and that no entry names, or finds a part of."""
    files = data_in(folder)  # raises where DVC tracks data that aren't here, which entries may name
    names = {entry.name for entry in entries}
    sources = [(source.path, entry.database) for entry in entries for source in _sources_of(entry, folder / DATASETS)]
    found = [(Path(os.path.realpath(path)), inside) for path, inside in sources]
    declared = {path for path, inside in found if not inside}
    brats = sorted(file for file in files if file.suffix in BRAT_SUFFIXES)
    if brats:
        beside = {file.with_suffix(".txt") for file in brats}
        files = [file for file in files if file not in {*brats, *beside}]
        name = printable(Path(brats[0].name))
        problem = f"{counted(len(brats), 'file')} of brat's: put them, with their texts, into brat_dir, assets/brat"
        yield Undeclared(Entry(name=name, path=name), problem=problem)
    # The names of a database's data sets are given, so they come first.
    for file in sorted(files, key=lambda file: (file.suffix not in DATABASE.suffixes, file)):
        name = printable(Path(file.name))
        real = Path(os.path.realpath(file))
        if any(path.is_relative_to(real) for path in declared):
            yield from _find_beside(file, declared) if file.is_dir() else ()
            continue
        if file.suffix in DATABASE.suffixes:
            try:
                inside = find_names(file)
            except (InputError, sqlite3.DatabaseError) as error:
                problem = f"it can't be read as a Prodigy database: {error}"
                yield Undeclared(Entry(name=name, db=name), problem=problem)
                continue
            new = [
                Entry(name=f"{file.stem}-{one}", db=name, dataset=one) if one in names else Entry(name=one, db=name)
                for one in inside
                if (real, one) not in found
            ]
        else:
            suffix = max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default="")
            stem = name.removesuffix(suffix)
            new = [Entry(name=name if stem in names else stem, path=name)]
        for entry in new:
            yield _describe(file, entry, names)
            names.add(entry.name)


def _find_beside(folder: Path, declared: Collection[Path]) -> Iterator[Undeclared]:
    """Report the files of a folder that entries leave out, though they name others there."""
    left = [file for file in find_files(folder, SUFFIXES, hidden=False) if Path(os.path.realpath(file)) not in declared]
    if left:
        path = printable(left[0].relative_to(folder.parent))
        problem = f"entries name other files of its folder, and leave out {counted(len(left), 'file')}"
        yield Undeclared(Entry(name=path, path=path), problem=problem)


def _sources_of(entry: Entry, file: Path) -> tuple[SourceFile, ...]:
    """List the sources of an entry; a skipped one may name files that are gone."""
    try:
        return find_sources(entry, file)
    except InputError:
        if entry.skip:
            return ()
        raise


def _describe(file: Path, entry: Entry, names: set[str]) -> Undeclared:
    """Complete an entry for a file by the labels in it, or say why it can't be declared.

    names (set[str]): those of other entries.
    """
    if file.is_dir():
        return Undeclared(entry, problem="a folder isn't looked into; declare a pattern or a folder")
    if entry.name in names:
        return Undeclared(entry, problem="another data set has this name; change that one's")
    if not file.name.endswith(SUFFIXES):
        remedies = (remedy for ends, remedy in REMEDIES.items() if file.name.lower().endswith(ends))
        remedy = next(remedies, f"they end with {', '.join(SUFFIXES)}")
        return Undeclared(entry, problem=f"no format has such a name; {remedy}")
    if printable(file) != file.as_posix():
        return Undeclared(entry, problem="its name isn't UTF-8; rename it")
    try:
        return _look_into(entry, file)
    except (InputError, OSError) as error:
        return Undeclared(entry, problem=str(error).removeprefix(f"{printable(file)}: "))


def _look_into(entry: Entry, file: Path) -> Undeclared:
    """List the labels that are used in a file, or say why there is none: by the first row that can't be used.

    RAISES (InputError): it can't be read.
    """
    labels: set[str] = set()
    texts, problem = 0, ""
    for found in read_items(file, entry.database):
        if isinstance(found, Problem):
            problem = problem or f" ({file.name}, line {found.line}: {found})"
            continue
        texts += 1
        labels.update(span.label for span in found.spans)
        if found.unusable:
            problem = problem or f" ({file.name}, line {found.line}: {Reason.INVALID}: {found.unusable[0].detail})"
    if NO_LABEL in labels:
        why = "its tags, such as B and I, have no label; declare the one that they mean"
        return Undeclared(entry, texts, why)
    labels = {label for label in labels if label.strip()}
    why = "" if labels else f"it has no span with a label{problem}"
    return Undeclared(msgspec.structs.replace(entry, labels=tuple(sorted(labels))), texts, why)
