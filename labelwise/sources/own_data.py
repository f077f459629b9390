"""Data of one's own, beside which the demo corpus isn't needed; looked for without spaCy, in a fraction of a second."""

import sqlite3
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.brat import find_documents

DATABASES = (".db", ".sqlite", ".sqlite3")
NOT_DATA = (".md", ".example", DATASETS)  # of names that are ignored without a message


def find_own_data(brat_dir: Path | None, prodigy: Path | None) -> Path | None:
    """Find a folder with data of one's own: brat documents, or data sets.

    RAISES (InputError): there is no such brat folder, or one in it can't be read.
    """
    if brat_dir and find_documents(brat_dir):
        return brat_dir
    return prodigy if prodigy and has_data(prodigy) else None


def has_data(folder: Path) -> bool:
    """Tell whether there is anything in a folder that may be a data set, or that declares some elsewhere."""
    return folder.is_dir() and any(file.name == DATASETS or is_data(file) for file in folder.iterdir())


def is_data(file: Path) -> bool:
    """Tell whether something in a folder is, or may be meant to be, a data set."""
    return not file.name.startswith(".") and not file.name.endswith(NOT_DATA)


def declarations_in(folder: Path) -> list[dict[str, Any]]:
    """Read the declarations in the datasets.yml of a folder; none if it is absent, or isn't a list of declarations."""
    try:
        return decode_yaml((folder / DATASETS).read_bytes(), list[dict[str, Any]], DATASETS, "")
    except (OSError, InputError):  # the merge says so
        return []


def paths_of(declaration: dict[str, Any]) -> list[str]:
    """List the paths of a declaration, which may be one, or a list."""
    path = declaration.get("path") or []
    return [str(one) for one in path] if isinstance(path, list) else [str(path)]


def find_undeclared(folder: Path, declared: list[dict[str, Any]]) -> list[Path]:
    """List the files of a folder that aren't declared and may be data sets, and databases of which not all is."""
    # The first part of a path: a folder that is declared in parts is known, too.
    names = [path.removeprefix("./").partition("/")[0] for one in declared for path in paths_of(one)]
    databases = {(str(one.get("db")), one.get("name")) for one in declared}
    found = []
    for file in filter(is_data, folder.iterdir()):
        if file.suffix in DATABASES and any(file.name == name for name, _ in databases):
            try:
                if all((file.name, name) in databases for name in names_in(file)):
                    continue
            except sqlite3.DatabaseError:  # the merge says so
                continue
        elif any(fnmatch(file.name, name) for name in names):
            continue
        found.append(file)
    return found


def names_in(file: Path, *, sessions: bool = False) -> list[str]:
    """List the data sets in a Prodigy database, or else those of sessions.

    RAISES (sqlite3.DatabaseError): it is something else.
    """
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        columns = [name for _, name, *_ in connection.execute("pragma table_info(dataset)")]
        kind = "coalesce(session, 0) <> 0" if "session" in columns else "0"
        found = connection.execute(f"select name from dataset where ({kind}) = ? order by name", [sessions])  # noqa: S608  constants
        return [str(name) for (name,) in found]
