"""Write an entry into a folder's `datasets.yml` for each file in it that nobody has declared.

An entry has a file's name and path, and the labels that are used in it, to be checked: labels nobody used can't be
inferred. From then on `datasets.yml` is the truth: entries are added to it, and never changed or taken out.

Each file is a data set of its own, also where it may be a later export of another (see `later_exports`).
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from fnmatch import fnmatch
from os.path import normpath
from pathlib import Path
from textwrap import indent

import msgspec

from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.declarations import SYNTAX, Declaration, read_entries, write_entries
from labelwise.sources.files import data_in, open_file, printable
from labelwise.sources.formats import DATABASE, SUFFIXES, read_items
from labelwise.sources.label_studio import find_longest
from labelwise.sources.later_exports import digest_spans, join_entries, may_be_later, spans_of
from labelwise.sources.prodigy import labels_of

COMMENT = """\
# Found in this folder, to be checked: list all labels that annotators were shown, as those nobody used can't be
# inferred, and say `split: test` of a test set. docs/data.md has all that can be declared.
"""


class Undeclared(msgspec.Struct):
    """A file that nobody has declared, or a data set of a Prodigy database.

    entry (Declaration): the one that was written, unless no label was found.
    texts (int): tasks with a text.
    spans (list[int]): digests of the spans with their texts and annotators, but without labels.
    problem (str): why nothing of it can be used, or the first row that can't be.
    like (str): the data set of which at least half of the spans are in this one, too; empty if there is none.
    paste (Declaration | None): the entry that makes one data set of both; or, of one without labels, that may be right.
    """

    entry: Declaration
    texts: int = 0
    spans: list[int] = []
    problem: str = ""
    like: str = ""
    paste: Declaration | None = None


def declare_folder(folder: Path) -> list[Undeclared]:
    """Write the entries that a folder's `datasets.yml` lacks, and list all files that had none.

    RAISES (InputError): a file can't be read, or the `datasets.yml` can't be added to.
    """
    file = folder / DATASETS
    entries = read_entries(file) if file.is_file() and file.stat().st_size else []
    found = list(_find(folder, entries))
    new = [one for one in found if one.entry.labels]
    if new:
        _compare(new, entries, folder)
        _add(file, entries, new)
    return found


def _find(folder: Path, entries: Sequence[Declaration]) -> Iterator[Undeclared]:
    """Read all that may be a data set in a folder, but not below it, and that no entry names."""
    names = {entry.name for entry in entries}
    paths = [normpath(path).partition("/")[0] for entry in entries for path in entry.paths]
    stored = {(normpath(entry.db), entry.name) for entry in entries if entry.db}
    # The names of a database's data sets are given.
    for file in sorted(data_in(folder), key=lambda file: (file.suffix not in DATABASE.suffixes, file)):
        if file.name in paths or any(fnmatch(file.name, path) for path in paths):
            continue
        name = printable(Path(file.name))
        if problem := _why_not(file):
            yield Undeclared(Declaration(name=name, path=name, labels=()), problem=problem)
        elif file.suffix in DATABASE.suffixes:
            for one in _find_stored(file, {own for db, own in stored if db == name}, names):
                names.add(one.entry.name)
                yield one
        else:
            stem = name.removesuffix(max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len))
            one = _read(file, Declaration(name=name if stem in names else stem, path=name, labels=()))
            if file.suffix == ".json" and not one.entry.labels and (key := find_longest(file)):
                one.paste = _read(file, msgspec.structs.replace(one.entry, text=key)).entry
            names.add(one.entry.name)
            yield one


def _find_stored(file: Path, declared: Set[str], names: Set[str]) -> Iterator[Undeclared]:
    """Read the data sets of a Prodigy database that aren't declared.

    names (Set[str]): those of all entries.
    RAISES (InputError): it can't be read now.
    """
    try:
        entries = _entries_of(file)
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):  # another time, it can be read
            raise InputError(f"{file}: {error}; stop what is writing to it, or try again") from error
        problem = f"it can't be read as a Prodigy database: {error}"
        yield Undeclared(Declaration(name=file.name, db=file.name, labels=()), problem=problem)
        return
    for entry in entries:
        if entry.name not in declared:
            taken = f"another data set has this name in {DATASETS}; change that one's"
            yield Undeclared(entry, problem=taken) if entry.name in names else _read(file, entry)


def _entries_of(file: Path) -> list[Declaration]:
    """List the data sets of a Prodigy database, but for those of sessions, as entries without labels.

    RAISES (sqlite3.DatabaseError): it is something else, or can't be read now.
    """
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        columns = [name for _, name, *_ in connection.execute("pragma table_info(dataset)")]
        kind = "coalesce(session, 0) = 0" if "session" in columns else "1"
        found = connection.execute(f"select name from dataset where {kind} order by name")  # noqa: S608  constants
        return [Declaration(name=str(name), db=file.name, labels=()) for (name,) in found]


def _read(file: Path, entry: Declaration) -> Undeclared:
    """Read the data set of a file for its labels, texts and spans."""
    found = Undeclared(entry, spans=[])
    labels: set[str] = set()
    for item in read_items(file, entry.name if entry.db else "", key=entry.text):
        if item.task:
            found.texts += 1
            found.spans += digest_spans(item.task)
            labels |= labels_of(item.task)
        found.problem = found.problem or (item.problem and f"line {item.line}: {item.problem}")
    if not labels:
        found.problem = f"it has no span with a label{f' ({found.problem})' if found.problem else ''}"
    found.entry = msgspec.structs.replace(entry, labels=tuple(sorted(labels)))
    return found


def _compare(new: Sequence[Undeclared], entries: Sequence[Declaration], folder: Path) -> None:
    """Find out which of the new files may be later exports of others."""
    earlier = [(entry, spans_of(entry, folder)) for entry in entries if entry.path]
    for one in new:
        if one.entry.path:
            spans = {*one.spans}
            like = next((entry for entry, others in earlier if may_be_later(spans, others)), None)
            if like:
                one.like, one.paste = like.name, join_entries(like, one.entry)
            earlier.append((one.entry, spans))


def _why_not(file: Path) -> str:
    """Say why nothing is read from something in a folder; empty if it may be a source."""
    if file.is_dir():
        return f"a folder isn't looked into; declare a pattern or a folder in {DATASETS}"
    try:
        open_file(file).close()
    except InputError as error:
        return str(error).removeprefix(f"{printable(file)}: ")
    if printable(file) != file.as_posix():
        return "its name isn't UTF-8; rename it"
    if file.name.endswith(SUFFIXES):
        return ""
    if file.name.lower().endswith(SUFFIXES):
        return "its suffix isn't in small letters; rename it"
    return f"no format has such a name; they end with {', '.join(SUFFIXES)}"


def _add(file: Path, entries: list[Declaration], new: list[Undeclared]) -> None:
    """Add entries at the end of a `datasets.yml`, of which everything else stays as it is.

    RAISES (InputError): it isn't written in a way that this is possible.
    """
    before = file.read_text(encoding="utf8") if entries else ""
    margin = re.search("^ *(?=- )", before, re.MULTILINE)
    lines = indent(COMMENT + "".join(map(_write, new)), margin[0] if margin else "")
    content = (before + "\n" * (before[-1:] not in ("", "\n")) + lines).encode()
    try:
        added = decode_yaml(content, list[Declaration], str(file), SYNTAX) == [*entries, *(one.entry for one in new)]
    except InputError:
        added = False
    if not added:
        raise InputError(f"{file}: begin each data set with `- ` on a line of its own, and add at the end:\n{lines}")
    with staged(file) as path:
        path.write_bytes(content)


def _write(one: Undeclared) -> str:
    like = f"# Most spans of {one.like} are in this one, too: a later export belongs into its entry, last in `path`.\n"
    return like * bool(one.like) + write_entries([one.entry])
