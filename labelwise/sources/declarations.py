"""The data sets to merge, as declared in `datasets.yml` files.

- name: person            # also the data set's name inside Prodigy
  path: person.jsonl      # relative to this file: a file, a folder, a pattern such as exports/person-*.jsonl, or a list
  labels: [PERSON]        # what the annotators were shown: a complete task covers all of these, spans or none
  kind: auto              # auto | complete | binary
  split: auto             # auto | train | dev | test   (auto: by hash)
  absent: [PLACE]         # labels of other data sets that don't occur in these texts; none by default
  rename: {PER: PERSON}   # labels of its spans, and their names from here on, in `labels` and `absent`, too
  document_url: https://brat.example.org/#/{doc}   # where its documents are shown: meta.doc, without .txt, for {doc}
  annotator: ann          # who answered, where answers don't say; or names by those they have: {1: ann, 2: bob}
  text: body              # of Label Studio's tasks: the key of their text among their data; by default text
  spans: sc               # of `.spacy` files: doc.spans["sc"]; `ents` for doc.ents; by default what a Doc has
- name: company
  path: company.jsonl
  labels: auto            # those that were used; one that never was isn't known of, so better list them
- name: place
  db: prodigy.db          # instead of `path`: the data set of that name in a Prodigy database
  labels: [PLACE]

What `path` may be: see `formats`.
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from glob import has_magic
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from labelwise.common.code import command_line
from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError
from labelwise.corpus.manifest import find_partitions, is_corpus, read_manifest
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.brat import find_documents
from labelwise.sources.db_out import PASSWORD, WITHOUT
from labelwise.sources.files import find_files, is_folder, match_pattern, open_file, printable, read_file
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import labels_of

AnySplit = Literal["auto", "train", "dev", "test"]
AnyKind = Literal["auto", "complete", "binary"]

DOCUMENT_URL = re.compile(r"https?://[^\s<>\"\\]+")
ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/")  # as a server's begins

SYNTAX = (
    "write a list of `{name: person, path: person.jsonl, labels: [PERSON]}`, or `db: prodigy.db` instead of the path, "
    "optionally with `kind: auto | complete | binary`, `split: auto | train | dev | test`, `absent: [OTHER_LABEL]`, "
    "`rename: {OLD_LABEL: NEW_LABEL}`, `annotator: ann`, and for .spacy files `spans: sc`, for Label Studio's `text: "
    "body`"
)


class DataSet(msgspec.Struct, frozen=True):
    """One data set.

    files (tuple[Path, ...]): the sources of its tasks, in order.
    database (bool): the file is a Prodigy database, in SQLite, which holds the data set.
    absent (tuple[str, ...]): labels of other data sets that don't occur in its texts, which are complete for them.
    rename (dict[str, str]): new names of labels, by those that its spans have.
    document_url (str): where its documents are shown, if it is declared.
    key (str): that of its `.spacy` files' spans, or of its Label Studio tasks' text, if it is declared; see `formats`.
    annotators (dict[str, str]): names of annotators by those that answers have; that of answers without one by "".
    inferred (bool): its labels are those that were used; nobody has listed them.
    """

    name: str
    files: tuple[Path, ...]
    labels: tuple[str, ...]
    kind: AnyKind = "auto"
    split: AnySplit = "auto"
    database: bool = False
    absent: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    annotators: dict[str, str] = {}
    inferred: bool = False
    key: str = ""
    document_url: str = ""


class Declaration(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One entry of a `datasets.yml` file."""

    name: str
    path: str | list[str] | None = None
    db: str | None = None
    labels: tuple[str, ...] | Literal["auto"]
    kind: AnyKind = "auto"
    split: AnySplit = "auto"
    absent: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    annotator: str | dict[str | int, str] = ""
    spans: str = ""
    text: str = ""
    document_url: str = ""

    @property
    def paths(self) -> list[str]:
        """Its paths, of which it may have one, or a list."""
        return self.path if isinstance(self.path, list) else [self.path] if self.path else []

    @property
    def annotators(self) -> dict[str, str]:
        """The names of annotators, by those that answers have; that of answers without one by ""."""
        if isinstance(self.annotator, str):
            return {"": self.annotator} if self.annotator else {}
        return {str(name): person for name, person in self.annotator.items()}

    def rename_label(self, old: str, new: str) -> "Declaration":
        """Copy it with another name for one of its labels."""
        labels = (
            self.labels
            if self.labels == "auto"
            else tuple(dict.fromkeys(new if one == old else one for one in self.labels))
        )
        rename = {written: new if name == old else name for written, name in self.rename.items()}
        return msgspec.structs.replace(self, labels=labels, rename={**rename, old: new})


def write_entries(entries: Iterable[Declaration]) -> str:
    """Write entries as a `datasets.yml` has them."""
    return yaml.safe_dump(msgspec.to_builtins(list(entries)), sort_keys=False, allow_unicode=True)


def load_datasets(declarations: Sequence[Path]) -> list[DataSet]:
    """Read the declarations, in the order of the files' paths, so that the order they are given in doesn't matter.

    RAISES (InputError): a file isn't a list of declarations, a name or a file comes twice, labels are missing, or data
        sets are on a server.
    RAISES (FileNotFoundError): a declared file doesn't exist, or a pattern matches none.
    """
    datasets = [dataset for file in sorted(_expand(declarations)) for dataset in _load(file)]
    names: set[str] = set()
    owners: dict[Path, str] = {}
    for dataset in datasets:
        for file in dataset.files:
            if printable(file) != file.as_posix():
                raise InputError(f"data set {dataset.name!r}: {printable(file)}: its name isn't UTF-8; rename it")
        if not all(label.strip() for label in dataset.labels):
            raise InputError(f"data set {dataset.name!r}: an empty label; give it a name")
        check_renaming(dataset.rename, dataset.labels, f"data set {dataset.name!r}")
        if not dataset.labels:
            raise InputError(f"data set {dataset.name!r}: no labels; list those that its annotators were shown")
        if dataset.name in names:
            raise InputError(f"data set {dataset.name!r} is declared twice; give each its own name")
        names.add(dataset.name)
        for file in () if dataset.database else dataset.files:
            if owner := owners.get(file):
                raise InputError(f"data sets {owner!r} and {dataset.name!r} are the same file, {file}")
            owners[file] = dataset.name
    known = set(all_labels(datasets))
    for dataset in datasets:
        for label in dataset.absent:
            if label in dataset.labels:
                raise InputError(
                    f"data set {dataset.name!r}: {label!r} is both in `labels` and `absent`; it is one of them"
                )
            if label not in known:
                raise InputError(
                    f"data set {dataset.name!r}: `absent` names {label!r}, which no data set has; there are "
                    f"{', '.join(sorted(known))}"
                )
    if not datasets:
        raise InputError(f"no data set is declared in {', '.join(map(str, declarations))}")
    return datasets


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


def _expand(declarations: Sequence[Path]) -> list[Path]:
    """Replace patterns with the files that they match, as weasel and DVC don't, and folders with their declarations."""
    found = [file for path in declarations for file in _matches(path)]
    return [
        file / DATASETS if file.is_dir() else file for file in found if not file.is_dir() or (file / DATASETS).exists()
    ]


def _matches(path: Path) -> list[Path]:
    if not has_magic(str(path)) or path.exists():
        return [path]
    found = match_pattern(Path(), str(path))
    if not found:
        raise InputError(f"{path}: no file matches; it should name what declares data sets, see docs/data.md")
    return found


def _load(file: Path) -> list[DataSet]:
    declared = read_entries(file)
    _check_local(declared, file)
    return [_make_dataset(item, _find_files(item, file)) for item in declared]


def _check_local(declared: Sequence[Declaration], file: Path) -> None:
    """Check that no data set is on a server.

    RAISES (InputError): one is; below the message is the command that writes it to a file.
    """
    for item in declared:
        url = next(filter(ADDRESS.match, _sources(item)), "")
        if url:
            hidden = PASSWORD.search(url) is not None
            names = [other.name for other in declared if url in _sources(other)]
            command = ["URL" if hidden else url, *names, os.path.relpath(file.parent)]
            remark = f"; URL stands for the address, which has a password in it: {WITHOUT}" if hidden else ""
            raise InputError(
                f"{file}: data set {item.name!r} is on a server, and a merge reads files: write it to one, and declare "
                f"that as its `path`{remark}\n{command_line('db_out')} {shlex.join(command)}"
            )


def _sources(item: Declaration) -> list[str]:
    """List the paths of a declaration, or its database."""
    return item.path if isinstance(item.path, list) else [item.path or item.db or ""]


def read_all_entries(declarations: Sequence[Path]) -> dict[str, tuple[Path, Declaration]]:
    """Read the entries of `datasets.yml` files, and of folders that have one, by name; each with its folder."""
    return {entry.name: (file.parent, entry) for file in _expand(declarations) for entry in read_entries(file)}


def check_document_url(url: str, where: str) -> None:
    """Check the address at which documents are shown; empty for none.

    where (str): the place of the address, for the error.
    RAISES (InputError): it isn't one of http or https, or hasn't {doc}.
    """
    if url and not (DOCUMENT_URL.fullmatch(url) and "{doc}" in url):
        raise InputError(
            f"{where}: document_url {url!r} isn't an address of http:// or https:// with {{doc}} in it, such as "
            "https://brat.example.org/#/{doc}"
        )


def read_entries(file: Path) -> list[Declaration]:
    """Read the entries of a `datasets.yml`.

    RAISES (InputError): there is no such file, or it isn't a list of declarations.
    """
    try:
        content = read_file(file)
    except FileNotFoundError as error:
        raise InputError(f"{file}: there is no such file; it declares data sets, see docs/data.md") from error
    declared = decode_yaml(content, list[Declaration], str(file), SYNTAX)
    for item in declared:
        if item.document_url:
            check_document_url(item.document_url, _place(item, item.document_url, file))
    return declared


def _place(item: Declaration, value: str, file: Path) -> str:
    """Name the file and the data set for an error, and the line if the value stands there as it is."""
    before, written, _ = read_file(file).partition(value.encode("utf8", "surrogatepass"))
    line = 1 + before.count(b"\n")
    return f"{file}{f', line {line}' if written else ''}: data set {item.name!r}"


def _make_dataset(item: Declaration, files: tuple[Path, ...]) -> DataSet:
    for key, suffix in (("spans", ".spacy"), ("text", ".json")):
        if getattr(item, key) and not all(file.suffix == suffix for file in files):
            raise InputError(f"data set {item.name!r}: `{key}` is of {suffix} files; leave it out")
    labels = used_labels(item, files) if item.labels == "auto" else item.labels
    return DataSet(
        item.name,
        files,
        labels,
        item.kind,
        item.split,
        database=item.db is not None,
        absent=item.absent,
        rename=item.rename,
        annotators=item.annotators,
        inferred=item.labels == "auto",
        key=item.spans or item.text,
        document_url=item.document_url,
    )


def used_labels(item: Declaration, files: Sequence[Path]) -> tuple[str, ...]:
    """List the labels of a data set's spans: it is read for that.

    RAISES (InputError): a file can't be read, or no span has a label.
    """
    inside = item.name if item.db else ""
    labels: set[str] = set()
    because = ""
    for file in files:
        for row in read_items(file, inside, key=item.spans or item.text):
            labels |= {item.rename.get(label, label) for label in labels_of(row.task)} if row.task else set()
            because = because or (row.problem and f" ({file.name}, line {row.line}: {row.problem})")
    if not labels:
        raise InputError(f"data set {item.name!r}: `labels: auto`, but no span has a label{because}; list the labels")
    return tuple(sorted(labels))


def _find_files(item: Declaration, file: Path) -> tuple[Path, ...]:
    """List the sources of a declaration: the `.spacy` files of a folder, a folder of brat documents, files."""
    if bool(item.path) == bool(item.db):
        raise InputError(f"{file}: data set {item.name!r} needs either a path or a db; {SYNTAX}")
    found = (path for declared in _sources(item) for path in _find_named(item, file, declared))
    return tuple(dict.fromkeys(found))


def _find_named(item: Declaration, file: Path, declared: str) -> list[Path]:
    """List the sources that one path of a declaration names."""
    if "\0" in declared:
        raise InputError(f"{file}: data set {item.name!r}: no path can have the character \\0; correct {declared!r}")
    path = Path(os.path.realpath(file.parent / declared))  # Path.resolve raises a RuntimeError where links loop
    if has_magic(declared) and not path.exists():
        return _match_files(item, file.parent, declared)
    if not path.exists():
        link = f", where {declared} leads" if (file.parent / declared).is_symlink() else ""
        raise FileNotFoundError(f"data set {item.name!r}: there is no file {path}{link}")
    if not path.is_dir():
        open_file(path).close()
        return [path]
    # Hidden folders, such as a merge's cache, aren't looked into.
    found = find_files(path, (".spacy",), hidden=False)
    documents = find_documents(path)
    if found and documents:
        raise InputError(
            f"data set {item.name!r}: the folder {path} has .spacy files as well as brat documents, such as "
            f"{found[0].relative_to(path)} and {documents[0].relative_to(path)}; name the folder of one of them, "
            "or write a pattern such as folder/*.spacy"
        )
    if not found and not documents:
        raise InputError(
            f"data set {item.name!r}: the folder {path} has neither .spacy files nor brat documents; "
            "for JSONL files, write a pattern such as folder/*.jsonl"
        )
    check_corpora(path, found)
    return found or [path]


def _match_files(item: Declaration, folder: Path, pattern: str) -> list[Path]:
    """List the files that a pattern matches."""
    matches = [match for match in match_pattern(folder, pattern) if not is_folder(match)]
    if not matches:
        raise FileNotFoundError(f"data set {item.name!r}: no file matches {os.path.realpath(folder / pattern)}")
    for match in matches:
        open_file(match).close()
    return sorted({match.resolve() for match in matches})


def check_corpora(folder: Path, files: Sequence[Path]) -> None:
    """Check that `.spacy` files which merges have made are all that they have made.

    files (Sequence[Path]): those in the folder, and below it.
    RAISES (InputError): a partition is missing.
    """
    splits = {file.parent for file in files}
    if is_corpus(folder):
        splits |= {folder / name.partition("/")[0] for name in read_manifest(folder)["partitions"]}
    for split in sorted(splits):
        find_partitions(split)


def all_labels(datasets: Sequence[DataSet]) -> list[str]:
    """List the labels of all data sets, in the order of declaration: the order that breaks ties."""
    return list(dict.fromkeys(label for dataset in datasets for label in dataset.labels))
