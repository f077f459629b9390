"""Write an entry into a folder's `datasets.yml` for each file in it that nobody has declared.

An entry has a file's name and path, and the labels that are used in it, to be checked: labels nobody used can't be
inferred. From then on `datasets.yml` is the truth: entries are added to it, and never changed or taken out. Each file
is a data set of its own, until somebody lists two exports in one entry. `skip: true` leaves one out for good.
"""

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.settings import decode_yaml
from labelwise.base.text import counted
from labelwise.corpus.tasks import DATASETS
from labelwise.datasets.declarations import (
    SYNTAX,
    Declaration,
    SourceFile,
    find_sources,
    look_into,
    read_entries,
    write_entries,
)
from labelwise.sources.files import data_in, find_files, printable, read_file
from labelwise.sources.formats import DATABASE, SUFFIXES
from labelwise.sources.prodigy_tables import find_names

COMMENT = """\
# Found in this folder, to be checked: list all labels that annotators were shown, as those nobody used can't be
# inferred, and say `split: test` of a test set. docs/formats.md has all that can be declared.
"""


class Undeclared(NamedTuple):
    """A file that nobody had declared, or a data set of a Prodigy database.

    entry (Declaration): the one that it should have.
    texts (int): tasks with a text.
    problem (str): why it isn't declared; empty if it is now.
    """

    entry: Declaration
    texts: int = 0
    problem: str = ""


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
    found = list(_find_undeclared(folder, entries))
    new = [one.entry for one in found if not one.problem]
    if not new:
        return found
    content += "\n" * (content[-1:] not in ("", "\n")) + COMMENT + write_entries(new)
    try:
        fits = decode_yaml(content.encode(), list[Declaration], str(file), SYNTAX) == [*entries, *new]
    except InputError:
        fits = False
    if not fits:
        return [one if one.problem else one._replace(problem="its entry can't be added at the end") for one in found]
    with atomic(file) as path:
        path.write_text(content, encoding="utf8")
    return found


def _find_undeclared(folder: Path, entries: Sequence[Declaration]) -> Iterator[Undeclared]:
    """Read all that may be a data set in a folder, but not below it, and that no entry names, or finds a part of."""
    names = {entry.name for entry in entries}
    sources = [(source.path, entry.inside) for entry in entries for source in _sources_of(entry, folder / DATASETS)]
    found = [(Path(os.path.realpath(path)), inside) for path, inside in sources]
    declared = {path for path, inside in found if not inside}
    # The names of a database's data sets are given, so they come first.
    for file in sorted(data_in(folder), key=lambda file: (file.suffix not in DATABASE.suffixes, file)):
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
                yield Undeclared(Declaration(name=name, db=name), problem=problem)
                continue
            new = [
                Declaration(name=f"{file.stem}-{one}", db=name, dataset=one)
                if one in names
                else Declaration(name=one, db=name)
                for one in inside
                if (real, one) not in found
            ]
        else:
            suffix = max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default="")
            stem = name.removesuffix(suffix)
            new = [Declaration(name=name if stem in names else stem, path=name)]
        for entry in new:
            yield _describe(file, entry, names)
            names.add(entry.name)


def _find_beside(folder: Path, declared: Collection[Path]) -> Iterator[Undeclared]:
    """Say of a folder of which entries name a part which files they leave out."""
    left = [file for file in find_files(folder, SUFFIXES, hidden=False) if Path(os.path.realpath(file)) not in declared]
    if left:
        path = printable(left[0].relative_to(folder.parent))
        problem = f"entries name other files of its folder, and leave out {counted(len(left), 'file')}"
        yield Undeclared(Declaration(name=path, path=path), problem=problem)


def _sources_of(entry: Declaration, file: Path) -> tuple[SourceFile, ...]:
    """List the sources of an entry; of one that is skipped, those that there still are."""
    try:
        return find_sources(entry, file)
    except InputError:
        if entry.skip:
            return ()
        raise


def _describe(file: Path, entry: Declaration, names: set[str]) -> Undeclared:
    """Complete an entry for a file by the labels in it, or say why it can't be declared.

    names (set[str]): those of other entries.
    """
    if file.is_dir():
        return Undeclared(entry, problem="a folder isn't looked into; declare a pattern or a folder")
    if entry.name in names:
        return Undeclared(entry, problem="another data set has this name; change that one's")
    if not file.name.endswith(SUFFIXES):
        return Undeclared(entry, problem=f"no format has such a name; they end with {', '.join(SUFFIXES)}")
    if printable(file) != file.as_posix():
        return Undeclared(entry, problem="its name isn't UTF-8; rename it")
    try:
        labels, texts, problem = look_into(entry, [file])
    except (InputError, OSError) as error:
        return Undeclared(entry, problem=str(error).removeprefix(f"{printable(file)}: "))
    why = "" if labels else f"it has no span with a label{f' ({problem})' if problem else ''}"
    return Undeclared(msgspec.structs.replace(entry, labels=labels), texts, why)
