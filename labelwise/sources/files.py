"""Find and open the files of a source. Links are followed; a folder that can't be read is an error."""

import os
import shlex
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from labelwise.base.conflicts import find_marker
from labelwise.base.errors import InputError
from labelwise.base.settings import CONVERSION, DATASETS

DVC = ".dvc"  # suffix of the files by which DVC tracks the data beside them
PROJECT = "exportedproject.json"  # of INCEpTION's exports: the states of documents; see `webanno`
NOT_DATA = (".md", ".example", DVC, DATASETS, CONVERSION, PROJECT)  # suffixes of files that are ignored silently


class SourceFile(NamedTuple):
    """A file to be read, and its name in all that is written: never an absolute path.

    path (Path): absolute; links aren't resolved, as a name's suffix tells the format, and DVC's cache has none.
    """

    path: Path
    name: str


def find_files(root: Path, suffixes: tuple[str, ...], *, hidden: bool = True) -> list[Path]:
    """List the files in a folder, and below it, whose names end in a suffix, sorted by their paths.

    hidden (bool): include names that begin with a dot.
    RAISES (InputError): a folder can't be read, or DVC tracks data in it that aren't here.
    """
    found = []
    seen: set[tuple[int, int]] = set()
    for folder, folders, files in os.walk(root, onerror=_refuse, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:  # a link leads here, too
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        for tracking in (Path(folder, name) for name in files if name.endswith(DVC)):
            check_fetched(tracking.with_suffix(""), root)
        folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
        found += [Path(folder, name) for name in files if name.endswith(suffixes) and (hidden or name[0] != ".")]
    return sorted(found, key=lambda file: file.relative_to(root).parts)


def data_in(folder: Path) -> list[Path]:
    """List what is in a folder and may be a dataset; see `find_files`."""
    find_files(folder, (DVC,))  # raises if data below the folder, which entries may name, aren't here
    return [file for file in folder.iterdir() if not file.name.startswith(".") and not file.name.endswith(NOT_DATA)]


def has_data(folder: Path) -> bool:
    """Return whether a folder has, or declares, datasets: then nobody needs the demo corpus."""
    check_fetched(folder, folder.parent)
    return folder.is_dir() and (bool(data_in(folder)) or (folder / DATASETS).exists())


def open_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file.

    buffering (int): bytes that are read at once; -1 for the system's default.
    RAISES (FileNotFoundError): nothing is there, not even a link.
    RAISES (InputError): it can't be read: a broken link, a folder, a file without permission.
    """
    try:
        return path.open("rb", buffering)
    except FileNotFoundError as error:
        if not path.is_symlink():
            raise
        raise InputError(f"{printable(path)}: this is a broken link; fetch its target, or delete it") from error
    except OSError as error:
        raise InputError(f"{printable(path)}: this file can't be read: {error.strerror}") from error


def read_file(path: Path) -> bytes:
    """Read a file whole; it raises what `open_file` raises."""
    with open_file(path) as file:
        return file.read()


def printable(path: Path) -> str:
    r"""Write a path as text, with `/` on every machine; bytes that aren't UTF-8 become escapes, such as \\xe9."""
    return os.fsencode(path.as_posix()).decode("utf8", "backslashreplace")


def _refuse(error: OSError) -> NoReturn:
    raise InputError(
        f"{printable(Path(error.filename))}: this folder can't be read, so what is in it would be left out: "
        f"{error.strerror}; make it readable, or move it elsewhere"
    ) from error


def check_fetched(data: Path, root: Path) -> None:
    """Refuse a file or a folder that DVC tracks, and that isn't here, or of which git has two versions.

    root (Path): the folder to fetch.
    """
    tracking = data.with_name(data.name + DVC)
    if tracking.is_file() and (line := find_marker(tracking.read_bytes())):
        name = shlex.quote(printable(tracking))
        raise InputError(
            f"{printable(tracking)}: line {line}: a git conflict: two versions of the data; take one, or join both as "
            f"docs/compare.md says:\n  git checkout --ours {name} && dvc checkout {name}"
        )
    if tracking.exists() and not data.exists():
        raise InputError(
            f"{printable(tracking)}: DVC tracks data by this file, and they aren't here; fetch them: dvc pull "
            f"--recursive {shlex.quote(printable(root))}; or delete the file, if you deleted them"
        )


FileStat = tuple[str, int, int, int, int]


def stat_of(path: Path, suffixes: tuple[str, ...]) -> list[FileStat]:
    """List name, inode, size, and times of modification and change of a source's files, which show a change.

    Programs such as `cp -p` and `touch` can set the time of modification, but not that of change.

    suffixes (tuple[str, ...]): those of the files of a folder that count.
    """
    if path.is_dir():
        found = find_files(path, suffixes)
    else:
        wal = path.with_name(path.name + "-wal")  # SQLite hasn't written its content to the database yet
        found = [path, wal] if wal.exists() and wal.stat().st_size else [path]
    # A folder's files may be broken links.
    stats = [(file, file.stat() if file.exists() else file.lstat()) for file in found]
    return [
        (printable(file.relative_to(path.parent)), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        for file, stat in stats
    ]
