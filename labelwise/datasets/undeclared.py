"""Find the undeclared datasets of a folder, with entries for them."""

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from labelwise.annotations import Problem, Reason, Task
from labelwise.base.errors import InputError
from labelwise.base.settings import DATASETS
from labelwise.base.text import counted, place, text_key
from labelwise.datasets.declarations import find_sources
from labelwise.datasets.entries import Entry
from labelwise.sources.brat import SUFFIXES as BRAT_SUFFIXES
from labelwise.sources.files import NOT_DATA, SourceFile, data_in, find_files, open_file, printable
from labelwise.sources.foreign import HEAD, name_file
from labelwise.sources.formats import DATABASE, SUFFIXES, read_items
from labelwise.sources.prodigy import find_names
from labelwise.sources.tags import NO_LABEL

# Why tasks of some kinds have no labels.
UNREAD = {
    "about spans": (
        f"{Reason.UNSUPPORTED_INTERFACE}: it asks about something other than its spans, such as relations; if they are "
        "complete, add `kind: complete`"
    ),
    "other": f"{Reason.UNSUPPORTED_INTERFACE}: it asks about something other than spans, such as categories",
    "unanswered": f"{Reason.NOT_ANNOTATED}: no spans, labels, tags or answer",
    "tags in text": f"{Reason.UNSUPPORTED_FORMAT}: its text has tags: write it without them, with `spans`",
}
KEY = re.compile(r"`(text|spans): ([^`]+)`")  # of an entry, in a problem that it solves
MAX_FOLDERS = 5  # in a folder, that patterns name
MAX_READ = 50  # files of a folder, and rows of each, searched for labels
MAX_COMPARED = 10_000  # rows of a file, searched for texts of others
MIN_SHARED = 0.05  # share of texts in several files: more than chance, as little as teams annotate twice


class Undeclared(NamedTuple):
    """An undeclared file, or dataset of a Prodigy database; `readable` if it can be merged once declared."""

    entry: Entry
    texts: int = 0
    problem: str = ""
    readable: bool = True


def find_undeclared(folder: Path, entries: Sequence[Entry]) -> Iterator[Undeclared]:
    """Yield files and database datasets in a folder (not recursive) that no entry covers."""
    files = data_in(folder)  # raises if data that DVC tracks, and entries may name, aren't here
    names = {entry.name for entry in entries}
    sources = [(source.path, entry.database) for entry in entries for source in _sources_of(entry, folder / DATASETS)]
    sources_of_folders = [(Path(os.path.realpath(path)), inside) for path, inside in sources]
    declared = {path for path, inside in sources_of_folders if not inside}
    brats = sorted(file for file in files if file.suffix in BRAT_SUFFIXES)
    if brats:
        beside = {file.with_suffix(".txt") for file in brats}
        files = [file for file in files if file not in {*brats, *beside}]
        name = printable(Path(brats[0].name))
        problem = f"{counted(len(brats), 'file')} of brat's: put them, with their texts, into the folder brat beside"
        yield Undeclared(Entry(name=name, path=name), problem=problem)
    # The names of a database's datasets are given, so they come first.
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
            others = [dataset for dataset in inside if (real, dataset) not in sources_of_folders]
            new = [
                Entry(name=f"{file.stem}-{one}", db=name, dataset=one) if one in names else Entry(name=one, db=name)
                for one in others
            ]
        else:
            suffix = max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default="")
            stem = name.removesuffix(suffix)
            if file.is_dir() and (parts := share_texts(file)):
                problem = "the merge doesn't search folders; files of this one share texts: declare each"
                for part in parts:
                    entry = Entry(name=f"{name}-{part.stem}", path=printable(part.relative_to(folder)))
                    yield _look_into(entry, part)._replace(problem=problem)
                continue
            new = [Entry(name=name if stem in names else stem, path=name)]
        for entry in new:
            yield _describe(file, entry, names)
            names.add(entry.name)


def _find_beside(folder: Path, declared: Collection[Path]) -> Iterator[Undeclared]:
    """Yield the files of a folder that have no entry, although others there have one."""
    files = (file for file in find_files(folder, SUFFIXES, hidden=False) if not file.name.endswith(NOT_DATA))
    undeclared = [file for file in files if Path(os.path.realpath(file)) not in declared]
    if undeclared:
        path = printable(undeclared[0].relative_to(folder.parent))
        problem = f"entries name other files of its folder, and leave out {counted(len(undeclared), 'file')}"
        yield Undeclared(Entry(name=path, path=path), problem=problem)


def _sources_of(entry: Entry, file: Path) -> tuple[SourceFile, ...]:
    """List the sources of an entry; a skipped one may name missing files."""
    try:
        return find_sources(entry, file)
    except InputError:
        if entry.skip:
            return ()
        raise


def _describe(file: Path, entry: Entry, names: set[str]) -> Undeclared:
    """Add the labels in a file to its entry, or explain why it can't be declared."""
    if file.is_dir():
        entry = msgspec.structs.replace(entry, labels=labels_in(file))
        return Undeclared(entry, problem="the merge doesn't search folders; declare its files by a pattern")
    if entry.name in names:
        return Undeclared(entry, problem="another dataset has this name; rename that one")
    try:
        if file.name.endswith(SUFFIXES) and printable(file) == file.as_posix():
            return _look_into(entry, file)
        with open_file(file) as content:
            problem = name_file(content.read(HEAD), file.name)
    except (InputError, OSError) as error:
        problem = str(error).removeprefix(f"{printable(file)}: ")
    other = f"no format has such a name; they end with {', '.join(SUFFIXES)}"
    other = "its suffix has capitals; rename it" if file.name.lower().endswith(SUFFIXES) else other
    problem = problem or ("its name isn't UTF-8; rename it" if file.name.endswith(SUFFIXES) else other)
    return Undeclared(entry, problem=problem, readable=False)


def patterns_in(folder: Path) -> list[str]:
    """Return patterns for the files with a folder's most frequent suffix, such as `export/annotation/*/*.tsv`."""
    files = [file.relative_to(folder.parent).parts for file in find_files(folder, SUFFIXES, hidden=False)]
    suffixes = [max((suffix for suffix in SUFFIXES if parts[-1].endswith(suffix)), key=len) for parts in files]
    frequent = max(suffixes, key=suffixes.count, default="")
    paths = [parts for parts, suffix in zip(files, suffixes, strict=True) if suffix == frequent]
    depth = 2 if len({parts[1] for parts in paths if len(parts) > 2}) <= MAX_FOLDERS else 1
    patterns = ["/".join([*parts[:-1][:depth], *("*" * len(parts[depth:-1])), f"*{frequent}"]) for parts in paths]
    return [*dict.fromkeys(patterns)]


def labels_in(folder: Path) -> tuple[str, ...]:
    """List the labels in the first rows of a random sample of a folder's files: the first may be one annotator's."""
    files = find_files(folder, SUFFIXES, hidden=False)
    labels = {span.label for _, task in _first_tasks(files, MAX_READ) for span in task.spans}
    return tuple(sorted(labels - {NO_LABEL}))


def share_texts(folder: Path) -> list[Path]:
    """Return the files directly in a folder if they share texts: they are annotators' or labels'.

    Rows that name their annotator don't count.
    """
    files = [file for file in find_files(folder, SUFFIXES, hidden=False) if file.parent == folder]
    tasks = _first_tasks(files, MAX_COMPARED) if len(files) > 1 else ()
    texts = Counter(key for _, key in {(file, text_key(task.text)) for file, task in tasks if not task.who})
    return files if sum(n for n in texts.values() if n > 1) > MIN_SHARED * texts.total() else []


def _first_tasks(files: Sequence[Path], rows: int) -> Iterator[tuple[Path, Task]]:
    """Yield the first rows of a random sample of files, each with its file."""
    for file in Random(0).sample(files, min(len(files), MAX_READ)):
        with suppress(InputError, OSError):
            yield from ((file, item) for item in islice(read_items(file, ""), rows) if isinstance(item, Task))


def _look_into(entry: Entry, file: Path) -> Undeclared:
    """Add the labels used in a file to its entry; without any, explain why by the first bad row."""
    labels: set[str] = set()
    related: set[str] = set()  # the labels of spans that something else is asked about
    texts, problem, readable = 0, "", True
    for item in read_items(file, entry.database, entry.key):
        task = None if isinstance(item, Problem) or item.kind in UNREAD else item
        why = str(item) if isinstance(item, Problem) else UNREAD.get(item.kind, "")
        if isinstance(item, Task) and item.kind == "about spans":
            related.update(span.label for span in item.spans)
        if task:
            texts += 1
            labels.update(span.label for span in task.all_spans if span.fits or not span.problem)
            readable = readable and not task.unusable
            why = f"{Reason.INVALID}: {task.unusable[0].problem}" if task.unusable else ""
        elif why.startswith((Reason.UNSUPPORTED_FORMAT, Reason.INVALID, Reason.MALFORMED)):
            readable = False  # texts without spans among them may not be annotated, either
        problem = problem or (f" ({place(file.name, item.line)}: {why})" if why else "")
    if NO_LABEL in labels:
        why = "its tags, such as B and I, have no label; declare the one that they mean"
        return Undeclared(entry, texts, why)
    why = "" if labels else f"it has no span with a label{problem}" if texts or problem else "it has no rows"
    for key, value in KEY.findall(problem) if not labels and not entry.key else ():
        chosen = _look_into(msgspec.structs.replace(entry, **{key: value}), file)
        if chosen.entry.labels:
            return chosen._replace(problem=why)
    readable = bool(labels or related) or (readable and texts > 0)
    kind = "auto" if labels or not related else "complete"
    entry = msgspec.structs.replace(entry, labels=tuple(sorted(labels or related)), kind=kind)
    return Undeclared(entry, texts, why, readable)
