"""The data sets to merge, as declared in `datasets.yml` files.

- name: person            # also the data set's name inside Prodigy
  path: person.jsonl      # relative to this file: a file, a folder, a pattern such as exports/person-*.jsonl, or a list
                          # of these, from the oldest export to the newest; a pattern's files are in natural order
  labels: [PERSON]        # what the annotators were shown: a complete task covers all of these, spans or none
  kind: auto              # auto | complete | binary
  split: auto             # auto | train | dev | test   (auto: by hash)
  absent: [PLACE]         # labels of other data sets that don't occur in these texts; none by default
  rename: {PER: PERSON}   # labels of its spans, and their names from here on, in `labels` and `absent`, too
  annotator: ann          # who answered, where answers don't say; or names by those they have: {1: ann, 2: bob}
  text: body              # of Label Studio's tasks: the key of their text among their data; by default text
  spans: sc               # of `.spacy` files: doc.spans["sc"]; `ents` for doc.ents; by default what a Doc has
- name: place
  db: prodigy.db          # instead of `path`: the data set of that name in a Prodigy database
  dataset: place-2        # its name inside the database, if that is another
  labels: [PLACE]
  skip: true              # leave it out of the merge; its files count as declared

What `path` may be: see `formats`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import yaml

from labelwise.base.errors import InputError
from labelwise.base.settings import decode_yaml
from labelwise.corpus.manifest import find_partitions, is_corpus, read_manifest
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.files import find_files, open_file, printable, read_file
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import labels_of

AnySplit = Literal["auto", "train", "dev", "test"]
AnyKind = Literal["auto", "complete", "binary"]

ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/")  # as a server's begins
NUMBERS = re.compile(r"([0-9]+)")

SYNTAX = (
    "write a list of `{name: person, path: person.jsonl, labels: [PERSON]}`, or `db: prodigy.db` instead of the path, "
    "optionally with `kind: auto | complete | binary`, `split: auto | train | dev | test`, `absent: [OTHER_LABEL]`, "
    "`rename: {OLD_LABEL: NEW_LABEL}`, `annotator: ann`, `skip: true`, for a database `dataset: its_name_there`, for "
    ".spacy files `spans: sc`, for Label Studio's `text: body`"
)


class SourceFile(NamedTuple):
    """A file of a data set, and its name in all that a merge writes: its path as declared, never an absolute one.

    path (Path): absolute; links aren't resolved, as a name's suffix tells the format, and DVC's cache has none.
    """

    path: Path
    name: str


class DataSet(msgspec.Struct, frozen=True):
    """One data set.

    files (tuple[SourceFile, ...]): the sources of its tasks, in order.
    database (str): its name in the Prodigy database, in SQLite, that holds it; empty if it is in files of its own.
    absent (tuple[str, ...]): labels of other data sets that don't occur in its texts, which are complete for them.
    rename (dict[str, str]): new names of labels, by those that its spans have.
    key (str): that of its `.spacy` files' spans, or of its Label Studio tasks' text, if it is declared; see `formats`.
    annotators (dict[str, str]): names of annotators by those that answers have; that of answers without one by "".
    """

    name: str
    files: tuple[SourceFile, ...]
    labels: tuple[str, ...]
    kind: AnyKind = "auto"
    split: AnySplit = "auto"
    database: str = ""
    absent: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    annotators: dict[str, str] = {}
    key: str = ""


class Declaration(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One entry of a `datasets.yml` file."""

    name: str
    path: str | list[str] | None = None
    db: str | None = None
    dataset: str = ""
    labels: tuple[str, ...] = ()
    kind: AnyKind = "auto"
    split: AnySplit = "auto"
    absent: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    annotator: str | dict[str | int, str] = ""
    spans: str = ""
    text: str = ""
    skip: bool = False

    @property
    def inside(self) -> str:
        """Its name in the database that holds it; empty if it is in files of its own."""
        return (self.dataset or self.name) if self.db else ""

    @property
    def paths(self) -> list[str]:
        """Its paths, of which it may have one, or a list; or its database."""
        return self.path if isinstance(self.path, list) else [self.path or self.db or ""]

    @property
    def annotators(self) -> dict[str, str]:
        """The names of annotators, by those that answers have; that of answers without one by ""."""
        if isinstance(self.annotator, str):
            return {"": self.annotator} if self.annotator else {}
        return {str(name): person for name, person in self.annotator.items()}


def write_entries(entries: Iterable[Declaration]) -> str:
    """Write entries as a `datasets.yml` has them."""
    return yaml.safe_dump(msgspec.to_builtins(list(entries)), sort_keys=False, allow_unicode=True)


def read_entries(file: Path) -> list[Declaration]:
    """Read the entries of a `datasets.yml`.

    RAISES (InputError): there is no such file, or it isn't a list of declarations.
    """
    try:
        content = read_file(file)
    except FileNotFoundError as error:
        raise InputError(f"{file}: there is no such file; it declares data sets, see docs/formats.md") from error
    return decode_yaml(content, list[Declaration], str(file), SYNTAX)


def read_all_entries(declarations: Sequence[Path]) -> Iterator[tuple[Path, Declaration]]:
    """Yield the entries of files, of folders that have a `datasets.yml`, and of what patterns match, with their files.

    Entries that are to be skipped aren't among them.

    RAISES (InputError): see `read_entries`.
    """
    for file in sorted(_expand(declarations)):
        yield from ((file, entry) for entry in read_entries(file) if not entry.skip)


def load_datasets(declarations: Sequence[Path]) -> list[DataSet]:
    """Read the declarations, in the order of the files' paths, so that the order they are given in doesn't matter.

    RAISES (InputError): a file isn't a list of declarations, a name or a file comes twice, labels are missing, data
        sets are on a server, or a declared file doesn't exist.
    """
    datasets = [_make_dataset(entry, find_sources(entry, file)) for file, entry in read_all_entries(declarations)]
    if not datasets:
        raise InputError(f"no data set is declared in {', '.join(map(str, declarations))}")
    names: set[str] = set()
    owners: dict[str, str] = {}
    labels = set(all_labels(datasets))
    for dataset in datasets:
        _check_labels(dataset, labels)
        if dataset.name in names:
            raise InputError(f"data set {dataset.name!r} is declared twice; give each its own name")
        names.add(dataset.name)
        for path, _ in dataset.files:
            if printable(path) != path.as_posix():
                raise InputError(f"data set {dataset.name!r}: {printable(path)}: its name isn't UTF-8; rename it")
            real = os.path.realpath(path)
            if not dataset.database and (owner := owners.setdefault(real, dataset.name)) != dataset.name:
                raise InputError(f"data sets {owner!r} and {dataset.name!r} are the same file, {real}")
    return datasets


def list_sources(declarations: Sequence[Path]) -> list[Path]:
    """List all files that declare data sets, and those of the data sets.

    RAISES (InputError): see `load_datasets`.
    """
    files = (file.path for dataset in load_datasets(declarations) for file in dataset.files)
    return [*dict.fromkeys(file for file, _ in read_all_entries(declarations)), *files]


def _check_labels(dataset: DataSet, known: set[str]) -> None:
    """Check the labels of a data set.

    known (set[str]): those of all data sets.
    RAISES (InputError): there is none, one is empty, or what `rename` and `absent` say can't be.
    """
    where = f"data set {dataset.name!r}"
    if not dataset.labels:
        raise InputError(f"{where}: no labels; list those that its annotators were shown")
    if not all(label.strip() for label in dataset.labels):
        raise InputError(f"{where}: an empty label; give it a name")
    check_renaming(dataset.rename, dataset.labels, where)
    for label in dataset.absent:
        if label in dataset.labels:
            raise InputError(f"{where}: {label!r} is both in `labels` and `absent`; it is one of them")
        if label not in known:
            listed = ", ".join(sorted(known))
            raise InputError(f"{where}: `absent` names {label!r}, which no data set has; the labels are {listed}")


def check_renaming(rename: Mapping[str, str], labels: Iterable[str], where: str) -> None:
    """Check new names of labels.

    labels (Iterable[str]): the labels, by their new names.
    where (str): the place of the renaming, for the error.
    RAISES (InputError): a new name is empty, or one of the labels is called by its old one.
    """
    for old, new in rename.items():
        if not new.strip():
            raise InputError(f"{where}: `rename` gives {old!r} an empty name; give it another")
        if old in labels and old not in rename.values():
            raise InputError(f"{where}: {old!r} is renamed to {new!r}, and listed as a label; list {new!r}")


def _expand(declarations: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that declare: those given, those that patterns match, and those of folders that have one."""
    for path in declarations:
        pattern = str(path)
        found = sorted(map(Path, glob(pattern, recursive=True))) if has_magic(pattern) and not path.exists() else [path]
        if not found:
            raise InputError(f"{path}: no file matches; name a datasets.yml, or a folder that has one")
        for file in found:
            if not file.is_dir():
                yield file
            elif (file / DATASETS).exists():
                yield file / DATASETS


def _make_dataset(entry: Declaration, files: tuple[SourceFile, ...]) -> DataSet:
    for key, suffix in (("spans", ".spacy"), ("text", ".json")):
        if getattr(entry, key) and not all(file.path.suffix == suffix for file in files):
            raise InputError(f"data set {entry.name!r}: `{key}` is for {suffix} files; leave it out")
    if entry.dataset and not entry.db:
        raise InputError(f"data set {entry.name!r}: `dataset` names one of a database, `db`; leave it out")
    return DataSet(
        entry.name,
        files,
        entry.labels,
        entry.kind,
        entry.split,
        database=entry.inside,
        absent=entry.absent,
        rename=entry.rename,
        annotators=entry.annotators,
        key=entry.spans or entry.text,
    )


class Content(NamedTuple):
    """The labels of a data set's spans, how many texts it has, and the first row that can't be used, and why."""

    labels: tuple[str, ...]
    texts: int
    problem: str


def look_into(entry: Declaration, files: Iterable[Path]) -> Content:
    """Read the sources of an entry.

    RAISES (InputError): one can't be read.
    """
    labels: set[str] = set()
    texts, problem = 0, ""
    for file in files:
        for item in read_items(file, entry.inside, key=entry.spans or entry.text):
            if item.task:
                texts += 1
                labels |= {entry.rename.get(label, label) for label in labels_of(item.task)}
            problem = problem or (item.problem and f"{file.name}, line {item.line}: {item.problem}")
    return Content(tuple(sorted(labels)), texts, problem)


def find_sources(entry: Declaration, file: Path) -> tuple[SourceFile, ...]:
    """List the sources of an entry, each once: files, those that patterns match, and the `.spacy` files of folders.

    file (Path): the `datasets.yml`.
    RAISES (InputError): it has both a path and a database, or neither, or one of its files doesn't exist.
    """
    where = f"data set {entry.name!r}"
    if bool(entry.path) == bool(entry.db):
        raise InputError(f"{file}: {where} needs either a path or a db; {SYNTAX}")
    folder = file.parent.absolute()
    found: dict[Path, Path] = {}
    for declared in entry.paths:
        if ADDRESS.match(declared):
            raise InputError(
                f"{file}: {where} is on a server, and a merge reads files: write it to one where Prodigy runs, and "
                f"declare that as its `path`: prodigy db-out {entry.name} > {entry.name}.jsonl"
            )
        if "\0" in declared:
            raise InputError(f"{file}: {where}: no path can have the character \\0; correct {declared!r}")
        for path in _find_named(folder, declared, where):
            found.setdefault(Path(os.path.realpath(path)), path)  # Path.resolve raises a RuntimeError where links loop
    files = list(found.values())
    return tuple(map(SourceFile, files, _name_files(files, folder)))


def _name_files(files: Sequence[Path], folder: Path) -> list[str]:
    """Name the files of an entry: relative to the folder of its `datasets.yml`, as they are declared.

    Absolute paths to elsewhere differ between machines: of each, the name has as few last parts as tell them apart.
    """
    inside = [file.relative_to(folder).as_posix() if file.is_relative_to(folder) else "" for file in files]
    names = inside
    for parts in range(1, max((len(file.parts) for file in files), default=0) + 1):
        names = [name or "/".join(file.parts[-parts:]) for name, file in zip(inside, files, strict=True)]
        if len({*names}) == len(names):
            break
    return names


def _find_named(folder: Path, declared: str, where: str) -> list[Path]:
    """List the sources that one path of an entry names, relative to a folder; those of a pattern in natural order.

    where (str): the data set, for errors.
    """
    path = folder / declared
    if path.is_dir():
        return _find_inside(path, where)
    matches = [path]
    if has_magic(declared) and not path.exists():
        matches = [Path(match) for match in glob(str(path), recursive=True) if not Path(match).is_dir()]
        matches.sort(key=_natural_order)
    if not matches:
        raise InputError(f"{where}: no file matches {path}; correct its path, or put a file there")
    for match in matches:
        if not match.exists():
            real = os.path.realpath(match)
            raise InputError(
                f"{where}: there is no file {real}; correct its path, or put the file there (`dvc pull`, if DVC tracks "
                "it)"
            )
        open_file(match).close()
    return matches


def _natural_order(path: Path) -> list[list[str | int]]:
    """Order paths as people do: org, org-9, org-10, whatever their suffixes."""
    parts = *path.parent.parts, path.name.partition(".")[0], path.name
    return [[int(piece) if piece.isdecimal() else piece for piece in NUMBERS.split(part)] for part in parts]


def _find_inside(folder: Path, where: str) -> list[Path]:
    """List the `.spacy` files in a folder, and below it.

    RAISES (InputError): it has none, or a merge has made others in it.
    """
    # Hidden folders, such as a merge's cache, aren't looked into.
    found = find_files(folder, (".spacy",), hidden=False)
    if not found:
        raise InputError(
            f"{where}: the folder {folder} has no .spacy file; convert a brat corpus with convert-brat, and for other "
            "files, write a pattern such as folder/*.jsonl"
        )
    splits = {file.parent for file in found}
    if is_corpus(folder):
        splits |= {folder / name.partition("/")[0] for name in read_manifest(folder).partitions}
    for split in sorted(splits):
        find_partitions(split)
    return found


def all_labels(datasets: Sequence[DataSet]) -> list[str]:
    """List the labels of all data sets, in the order of declaration: the order that breaks ties."""
    return list(dict.fromkeys(label for dataset in datasets for label in dataset.labels))
