"""Find the data sets of a folder, so that a first model needs no declaration written by hand.

They are written as a `datasets.yml` to be checked: a label that nobody used can't be inferred, so the texts aren't
complete for it.
"""

import hashlib
import re
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.conll import SUFFIXES
from labelwise.sources.files import LINK_OUTSIDE, is_link_outside, open_file, printable
from labelwise.sources.formats import read_items
from labelwise.sources.own_data import DATABASES, declarations_in, find_undeclared, names_in, paths_of
from labelwise.sources.prodigy import annotator_of, kind_of, labels_of

FILES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".parquet", ".spacy", ".tsv", *SUFFIXES)
TEST, DEV, TRAIN = "test|eval|evaluation", "dev|devel|valid|validation|val", "train|training"
SPLITS = re.compile(rf"(?:^|[^a-z])(?:(?P<test>{TEST})|(?P<dev>{DEV})|(?P<train>{TRAIN}))(?=$|[^a-z])")
HEADER = """\
# Found in this folder, to be checked. `labels` has those that were used, as a label that never was can't be seen: list
# all that the annotators were shown. See docs/data.md for what else can be declared.
# As long as nobody edits this file, new files of the folder are added to it: {digest}
"""
WRITTEN = re.compile(rb"(?:#.*\n){2}#.*: ([0-9a-f]{16})\n")


class FoundDataSet(msgspec.Struct):
    """A data set that was found.

    file (str): its name in the folder.
    database (bool): it is a Prodigy database, which has the data set.
    split (str): "test" or "dev" if the name says so, and "train" if there are both of these besides, else "auto".
    texts, spans (int): tasks with a text, and their spans.
    problem (str): why nothing of it can be used, or the first row that can't be.
    kinds (list[str]): of its tasks: "complete", "binary" or "other".
    answers (set[int]): digests that tell its answers apart, in another export of the same data set, too.
    later_than (str): the data set that it is a later export of, by at least half of that one's answers; or empty.
    """

    name: str
    file: str
    labels: list[str]
    split: str
    texts: int
    spans: int
    database: bool = False
    problem: str = ""
    kinds: list[str] = []
    answers: set[int] = set()
    later_than: str = ""


def find_datasets(folder: Path) -> list[FoundDataSet]:
    """Read all that may be a data set in a folder, but not below it; some may have no labels, or be something else.

    Those that its datasets.yml declares are left out.

    RAISES (InputError): a file can't be read.
    """
    declared = declarations_in(folder)
    known = {one.get("name") for one in declared}
    found = [
        one
        for file in sorted(find_undeclared(folder, declared))
        for one in _find_in(file)
        if not one.database or one.name not in known
    ]
    if not {"dev", "test"} <= {one.split for one in found} | {one.get("split") for one in declared}:
        for one in found:
            one.split = "auto" if one.split == "train" else one.split
    _find_exports(found, declared, folder)
    names = [*known, *(one.name for one in found)]
    for one in found:
        if names.count(one.name) > 1 and not one.database:
            one.name += "-" + one.file.removeprefix(one.name).strip(".").replace(".", "-")
    return found


def _find_exports(found: list[FoundDataSet], declared: list[dict[str, Any]], folder: Path) -> None:
    """Find out which files are later exports of others: of the same labels, they have half of the answers, or more."""
    earlier: list[FoundDataSet] = []
    labels = [one.labels for one in found]
    if any(one.answers for one in found):
        for each in declared:
            for path in paths_of(each):
                if each.get("labels") in labels and (folder / path).is_file():
                    earlier.append(_read(folder / path, str(each.get("name")), is_database=False))
    for one in found:
        for other in earlier if one.answers else ():
            same = one.labels == other.labels and one.split == other.split and not other.database
            if same and 2 * len(one.answers & other.answers) >= len(other.answers) > 0:
                one.later_than = other.later_than or other.name
        earlier.append(one)


def _find_in(file: Path) -> list[FoundDataSet]:
    """Read the data sets of a file, or say why there are none."""
    is_database = file.suffix in DATABASES
    if is_link_outside(file, file.parent):
        return [_nothing(file, f"{LINK_OUTSIDE} of this folder and the project: declare the file that it leads to")]
    if problem := _why_not(file):
        return [_nothing(file, problem)]
    try:
        names = names_in(file) if is_database else [_name_of(file)]
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):  # another time, it can be read
            raise InputError(f"{file}: {error}; stop what is writing to it, or try again") from error
        return [_nothing(file, f"it can't be read as a Prodigy database: {error}")]
    found = [_read(file, name, is_database) for name in names]
    if is_database and not any(one.texts for one in found) and (sessions := names_in(file, sessions=True)):
        return [_nothing(file, f"all rows are in data sets of sessions, such as {sessions[0]}: declare them by name")]
    return found


def _nothing(file: Path, problem: str) -> FoundDataSet:
    name = printable(Path(file.name))
    return FoundDataSet(name, name, [], "auto", 0, 0, problem=problem)


def _read(file: Path, name: str, is_database: bool) -> FoundDataSet:
    """Read a data set for its labels."""
    one = FoundDataSet(name, file.name, [], split_of(name), 0, 0, is_database)
    labels: set[str] = set()
    kinds: set[str] = set()
    for item in read_items(file, name if is_database else ""):
        if item.task:
            one.texts += 1
            one.spans += len(item.task.spans or ())
            labels |= labels_of(item.task)
            kinds.add(kind_of(item.task))
            if item.task.task_hash is not None:
                one.answers.add(hash((str(item.task.task_hash), annotator_of(item.task))))
        one.problem = one.problem or (item.problem and f"line {item.line}: {item.problem}")
    one.labels, one.kinds = sorted(labels), sorted(kinds)
    return one


class Declared(NamedTuple):
    """The outcome of declaring a folder.

    found (list[FoundDataSet]): all that wasn't declared, with labels or without.
    lines (str): the declarations of it, as YAML; empty if nothing has labels.
    written (bool): they were written; else somebody has edited the file, which isn't touched.
    """

    found: list[FoundDataSet]
    lines: str
    written: bool


def declare_folder(folder: Path) -> Declared:
    """Write undeclared data sets into a folder's `datasets.yml`, unless somebody has edited that.

    RAISES (InputError): a file can't be read.
    """
    file = folder / DATASETS
    before = file.read_bytes() if file.is_file() else b""
    found = find_datasets(folder)
    new = [
        {"name": one.name, "db" if one.database else "path": one.file, "labels": one.labels, "kind": "auto"}
        | {"split": one.split}
        for one in found
        if one.labels and not one.later_than
    ]
    if before and not is_unedited(before):
        later = [{"name": one.later_than, "path": ["...", one.file]} for one in found if one.labels and one.later_than]
        return Declared(found, _as_yaml([*new, *later]), written=False)
    declared = [*declarations_in(folder), *new]
    for one in found:
        for each in declared:
            if one.labels and each["name"] == one.later_than:
                each["path"] = [*paths_of(each), one.file]
    content = _as_yaml(declared)
    if content and any(one.labels for one in found):
        with staged(file) as path:
            path.write_bytes(HEADER.format(digest=_digest(content.encode())).encode() + content.encode())
    return Declared(found, content, written=True)


def _as_yaml(declared: list[dict[str, Any]]) -> str:
    return yaml.safe_dump(declared, sort_keys=False, allow_unicode=True) if declared else ""


def is_unedited(content: bytes) -> bool:
    """Tell whether a datasets.yml is as `declare_folder` has written it."""
    header = WRITTEN.match(content)
    return header is not None and header[1].decode() == _digest(content[header.end() :])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def split_of(name: str) -> str:
    """Find the split that a data set's name tells.

    >>> split_of("brands_eval"), split_of("person-dev"), split_of("train"), split_of("latest")
    ('test', 'dev', 'train', 'auto')
    """
    match = SPLITS.search(name.lower())
    return next((split for split, there in match.groupdict().items() if there), "auto") if match else "auto"


def _why_not(file: Path) -> str:
    """Say why nothing is read from something in a folder; empty if it may be a source."""
    if file.is_dir():
        return "a folder isn't looked into; declare a pattern or a folder in datasets.yml"
    try:
        open_file(file).close()
    except InputError as error:
        return str(error).removeprefix(f"{printable(file)}: ")
    if printable(file) != file.as_posix():
        return "its name isn't UTF-8; rename it"
    if file.name.endswith((*FILES, *DATABASES)):
        return ""
    if file.name.lower().endswith((*FILES, *DATABASES)):
        return "its suffix isn't in small letters; rename it"
    return f"no format has such a name; they end with {', '.join((*FILES, *DATABASES))}"


def _name_of(file: Path) -> str:
    """Name a data set after its file, without the format's suffix."""
    suffix = max((suffix for suffix in FILES if file.name.endswith(suffix)), key=len)
    return file.name.removesuffix(suffix)
