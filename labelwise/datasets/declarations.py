"""Load the datasets of `datasets.yml` files, with their files, for a merge."""

import os
import re
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.corpus.manifest import find_partitions, is_corpus, read_manifest
from labelwise.datasets.entries import SYNTAX, Entry, check_renaming, read_all_entries
from labelwise.sources.files import SourceFile, find_files, open_file, printable
from labelwise.sources.formats import DATABASE, JSON

ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/")  # as a server's begins
NUMBERS = re.compile(r"([0-9]+)")


class DataSet(Entry, frozen=True):
    """An entry, with its files, and people by the names in answers; "" stands for unnamed answers."""

    declared: str = ""
    files: tuple[SourceFile, ...] = ()
    annotators: dict[str, str] = {}

    def to_entry(self, **changes: Any) -> Entry:
        """Return its entry with some changes."""
        return Entry(**{key: getattr(self, key) for key in Entry.__struct_fields__} | changes)


def load_datasets(declarations: Sequence[Path]) -> list[DataSet]:
    """Load the datasets, sorted by the declarations' paths.

    RAISES (InputError): if a file isn't a list of entries, a name or file is repeated, labels or files are missing, or
        datasets are on a server.
    """
    datasets = [_make_dataset(entry, file, find_sources(entry, file)) for file, entry in read_all_entries(declarations)]
    if not datasets:
        raise InputError(f"no dataset is declared in {', '.join(map(str, declarations))}")
    names: set[str] = set()
    owners: dict[str, str] = {}
    labels = set(all_labels(datasets))
    for dataset in datasets:
        _check_labels(dataset, labels)
        if dataset.name in names:
            raise InputError(f"dataset {dataset.name!r} is declared twice; give each its own name")
        names.add(dataset.name)
        for path, _ in dataset.files:
            if printable(path) != path.as_posix():
                raise InputError(f"dataset {dataset.name!r}: {printable(path)}: its name isn't UTF-8; rename it")
            real = os.path.realpath(path)
            if not dataset.database and (owner := owners.setdefault(real, dataset.name)) != dataset.name:
                raise InputError(f"datasets {owner!r} and {dataset.name!r} are the same file, {real}")
    return datasets


def list_sources(declarations: Sequence[Path]) -> list[Path]:
    """List the files that a merge reads: declarations and datasets; see `load_datasets`."""
    files = (file.path for dataset in load_datasets(declarations) for file in dataset.files)
    return [*dict.fromkeys(file for file, _ in read_all_entries(declarations)), *files]


def _check_labels(dataset: DataSet, known: set[str]) -> None:
    """Refuse a dataset without labels, with an empty label, or with a contradictory `rename` or `absent`."""
    where = f"dataset {dataset.name!r}"
    if not dataset.labels:
        raise InputError(f"{where}: no `labels`; list every label that its annotators were shown")
    if not all(label.strip() for label in dataset.labels):
        raise InputError(f"{where}: an empty label; give it a name")
    check_renaming(dataset.rename, dataset.labels, where)
    for label in dataset.absent:
        if label in dataset.labels:
            raise InputError(f"{where}: {label!r} is both in `labels` and `absent`; remove it from one of them")
        if label not in known:
            listed = ", ".join(sorted(known))
            raise InputError(f"{where}: `absent` names {label!r}, which no dataset has; the labels are {listed}")


def all_labels(datasets: Sequence[DataSet]) -> list[str]:
    """List the labels of all datasets, in order of declaration, which breaks ties."""
    return list(dict.fromkeys(label for dataset in datasets for label in dataset.labels))


def _make_dataset(entry: Entry, declared: Path, files: tuple[SourceFile, ...]) -> DataSet:
    for key, suffix in (("spans", ".spacy"), ("text", ".json")):
        if getattr(entry, key) and not all(file.path.suffix == suffix for file in files):
            raise InputError(f"dataset {entry.name!r}: `{key}` is for {suffix} files; leave it out")
    if entry.offsets and not all(file.path.suffix in (*JSON.suffixes, *DATABASE.suffixes, ".gz") for file in files):
        raise InputError(f"dataset {entry.name!r}: `offsets` is for JSON files and databases; leave it out")
    if entry.dataset and not entry.db:
        raise InputError(f"dataset {entry.name!r}: `dataset` is for a database (`db`); leave it out")
    people = {"": entry.annotator} if isinstance(entry.annotator, str) else entry.annotator
    annotators = {name: person for name, person in people.items() if person}
    return DataSet(**msgspec.structs.asdict(entry), declared=str(declared), files=files, annotators=annotators)


def find_sources(entry: Entry, file: Path) -> tuple[SourceFile, ...]:
    """List an entry's sources, each once: files, matches of patterns, and `.spacy` files of folders."""
    where = f"dataset {entry.name!r}"
    if bool(entry.path) == bool(entry.db):
        raise InputError(f"{file}: {where} needs either a path or a db; {SYNTAX}")
    folder = file.parent.absolute()
    paths: dict[Path, Path] = {}
    for declared in entry.paths:
        if ADDRESS.match(declared):
            raise InputError(
                f"{file}: {where} is on a server, but a merge reads files: export it where Prodigy runs, and "
                f"declare the file as its `path`: prodigy db-out {entry.name} > {entry.name}.jsonl"
            )
        if "\0" in declared:
            raise InputError(f"{file}: {where}: no path can have the character \\0; correct {declared!r}")
        for path in _find_named(folder, declared, where):
            paths.setdefault(Path(os.path.realpath(path)), path)  # Path.resolve raises a RuntimeError where links loop
    files = list(paths.values())
    return tuple(map(SourceFile, files, _name_files(files, folder)))


def _name_files(files: Sequence[Path], folder: Path) -> list[str]:
    """Name an entry's files relative to the folder of its `datasets.yml`.

    Other absolute paths differ between machines: they keep the fewest last parts that distinguish the files.
    """
    inside = [file.relative_to(folder).as_posix() if file.is_relative_to(folder) else "" for file in files]
    names = inside
    for parts in range(1, max((len(file.parts) for file in files), default=0) + 1):
        names = [name or "/".join(file.parts[-parts:]) for name, file in zip(inside, files, strict=True)]
        if len({*names}) == len(names):
            break
    return names


def _find_named(folder: Path, declared: str, where: str) -> list[Path]:
    """List the sources of one path of an entry; of a pattern, in natural order."""
    path = folder / declared
    if path.is_dir():
        return _find_inside(path, where)
    matches = [path]
    if has_magic(declared) and not path.exists():
        matches = [Path(match) for match in glob(str(path), recursive=True) if not Path(match).is_dir()]
        matches.sort(key=natural_order)
    if not matches:
        raise InputError(f"{where}: no file matches {path}; correct its path, put a file there, or delete the entry")
    for match in matches:
        if not match.exists():
            real = os.path.realpath(match)
            if twin := find_twin(Path(real)):
                raise InputError(
                    f"{where}: there is no file {real}, but {twin!a}, which differs from {Path(real).name!a} in "
                    "capitals or in how accents are written; rename it"
                )
            raise InputError(
                f"{where}: there is no file {real}; correct its path, put the file there (`dvc pull`, if DVC tracks "
                "it), or delete the entry"
            )
        open_file(match).close()
    return matches


def find_twin(path: Path) -> str:
    """Return the name of a file that differs from a missing one in case or composition alone; or ""."""
    beside = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    return next((file.name for file in beside if file.name != path.name and caseless(file) == caseless(path)), "")


def natural_order(path: Path) -> list[list[str | int]]:
    """Return a natural sort key of a path, without suffixes: org, org-9, org-10."""
    parts = *path.parent.parts, path.name.partition(".")[0], path.name
    return [[int(piece) if piece.isdecimal() else piece for piece in NUMBERS.split(part)] for part in parts]


def _find_inside(folder: Path, where: str) -> list[Path]:
    """List the `.spacy` files in a folder, recursively; refuse an empty folder, or an incomplete corpus."""
    # Hidden folders, such as a merge's cache, are left out.
    files = find_files(folder, (".spacy",), hidden=False)
    if not files:
        raise InputError(
            f"{where}: the folder {folder} has no .spacy file; convert a brat corpus with convert-brat, and for other "
            "files, write a pattern such as folder/*.jsonl"
        )
    splits = {file.parent for file in files}
    if is_corpus(folder):
        splits |= {folder / name.partition("/")[0] for name in read_manifest(folder).partitions}
    for split in sorted(splits):
        find_partitions(split)
    return files
