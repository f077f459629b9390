"""Find out what data sets a folder has, so that a first model needs no declaration written by hand.

What is found is written as a `datasets.yml` to be checked: a label that was never used can't be seen, and so the texts
aren't complete for it.
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import yaml

from labelwise.common.errors import InputError
from labelwise.common.outputs import write_among_data
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.conll import SUFFIXES
from labelwise.sources.files import LINK_OUTSIDE, is_link_outside
from labelwise.sources.formats import read_items
from labelwise.sources.own_data import is_data
from labelwise.sources.prodigy import kind_of, labels_of

FILES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".parquet", ".spacy", ".tsv", *SUFFIXES)
DATABASES = (".db", ".sqlite", ".sqlite3")
TEST, DEV, TRAIN = "test|eval|evaluation", "dev|devel|valid|validation|val", "train|training"
SPLITS = re.compile(rf"(?:^|[^a-z])(?:(?P<test>{TEST})|(?P<dev>{DEV})|(?P<train>{TRAIN}))(?=$|[^a-z])")
HEADER = """\
# Found in this folder, to be checked. `labels` has those that were used, as a label that never was can't be seen: list
# all that the annotators were shown. See docs/data.md for what else can be declared.
"""


class FoundDataSet(msgspec.Struct):
    """A data set that was found.

    file (str): its name in the folder.
    database (bool): it is a Prodigy database, which has the data set.
    split (str): "test" or "dev" if the name says so, and "train" if there are both of these besides, else "auto".
    texts, spans (int): tasks with a text, and their spans.
    problem (str): why nothing of it can be used, or the first row that can't be.
    kinds (list[str]): what its tasks asked: "complete", "binary" or "other".
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


def find_datasets(folder: Path) -> list[FoundDataSet]:
    """Read all that may be a data set in a folder, but not below it; some may have no labels, or be something else.

    RAISES (InputError): a file can't be read.
    """
    found = [one for file in sorted(filter(is_data, folder.iterdir())) for one in _find_in(file)]
    if not {"dev", "test"} <= {one.split for one in found}:
        for one in found:
            one.split = "auto" if one.split == "train" else one.split
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) > 1 and not one.database:
            one.name += "-" + one.file.removeprefix(one.name).strip(".").replace(".", "-")
    return found


def _find_in(file: Path) -> list[FoundDataSet]:
    """Read the data sets of a file, or say why there are none."""
    is_database = file.suffix in DATABASES
    if is_link_outside(file, file.parent):
        return [_nothing(file, f"{LINK_OUTSIDE} of this folder and the project: declare the file that it leads to")]
    if not _is_source(file):
        return [_nothing(file, _why_not(file))]
    try:
        names = _names_in(file) if is_database else [_name_of(file)]
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):  # another time, it can be read
            raise InputError(f"{file}: {error}; stop what is writing to it, or try again") from error
        return [_nothing(file, f"it can't be read as a Prodigy database: {error}")]
    return [_read(file, name, is_database) for name in names]


def _nothing(file: Path, problem: str) -> FoundDataSet:
    return FoundDataSet(file.name, file.name, [], "auto", 0, 0, problem=problem)


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
        one.problem = one.problem or (item.problem and f"line {item.line}: {item.problem}")
    one.labels, one.kinds = sorted(labels), sorted(kinds)
    return one


def declare_folder(folder: Path) -> list[FoundDataSet]:
    """Write `datasets.yml` for a folder that has none, of what has labels; nothing is written if nothing has any.

    RETURNS (list[FoundDataSet]): all that was found, with labels or without.
    RAISES (InputError): a file can't be read.
    """
    found = find_datasets(folder)
    declared = [
        {"name": one.name, "db" if one.database else "path": one.file, "labels": one.labels, "kind": "auto"}
        | {"split": one.split}
        for one in found
        if one.labels
    ]
    if declared:
        content = yaml.safe_dump(declared, sort_keys=False, allow_unicode=True)
        write_among_data(folder / DATASETS, (HEADER + content).encode())
    return found


def split_of(name: str) -> str:
    """Find the split that a data set's name tells.

    >>> split_of("brands_eval"), split_of("person-dev"), split_of("train"), split_of("latest")
    ('test', 'dev', 'train', 'auto')
    """
    match = SPLITS.search(name.lower())
    return next((split for split, there in match.groupdict().items() if there), "auto") if match else "auto"


def _is_source(file: Path) -> bool:
    return file.is_file() and file.name.endswith((*FILES, *DATABASES))


def _why_not(file: Path) -> str:
    """Say why nothing is read from something in a folder."""
    if file.is_dir():
        return "a folder isn't looked into; declare a pattern or a folder in datasets.yml"
    if file.name.lower().endswith((*FILES, *DATABASES)):
        return "its suffix isn't in small letters; rename it"
    return f"no format has such a name; they end with {', '.join((*FILES, *DATABASES))}"


def _name_of(file: Path) -> str:
    """Name a data set after its file, without what tells the format."""
    suffix = max((suffix for suffix in FILES if file.name.endswith(suffix)), key=len)
    return file.name.removesuffix(suffix)


def _names_in(file: Path) -> list[str]:
    """List the data sets in a Prodigy database, but for those of sessions.

    RAISES (sqlite3.DatabaseError): it is something else.
    """
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        columns = [name for _, name, *_ in connection.execute("pragma table_info(dataset)")]
        own = "where not coalesce(session, 0)" if "session" in columns else ""
        return [str(name) for (name,) in connection.execute(f"select name from dataset {own} order by name")]  # noqa: S608  constants
