"""Find and open a source's files. Links are followed; an unreadable folder is an error."""

import os
import shlex
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from labelwise.base.conflicts import find_marker
from labelwise.base.errors import InputError
from labelwise.base.settings import CONVERSION, DATASETS

DVC = ".dvc"  # suffix of DVC's files that track data beside them
PROJECT = "exportedproject.json"  # of INCEpTION's exports: the states of documents; see `webanno`
EXPORTED, EXPORTED_HEAD = "export.json", b'{"files":{'  # of labelwise's exports: the digests of their files
NOT_DATA = (".md", ".example", DVC, DATASETS, CONVERSION, PROJECT)  # suffixes of files that are ignored silently


class SourceFile(NamedTuple):
    """A file to read, its links unresolved (DVC's cache has no suffixes), and its relative name for outputs."""

    path: Path
    name: str


def find_files(root: Path, suffixes: tuple[str, ...], *, hidden: bool = True) -> list[Path]:
    """List a folder's files with a suffix, recursively, sorted by path.

    hidden (bool): include names that begin with a dot.
    RAISES (InputError): if a folder can't be read, or lacks data that DVC tracks.
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
    """List possible datasets in a folder; see `find_files`."""
    find_files(folder, (DVC,))  # raises if data below the folder, which entries may name, aren't here
    files = [file for file in folder.iterdir() if not file.name.startswith(".") and not file.name.endswith(NOT_DATA)]
    return [file for file in files if not (file.name == EXPORTED and _is_of_export(file))]


def _is_of_export(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            return content.read(len(EXPORTED_HEAD)) == EXPORTED_HEAD
    except OSError:  # its reader reports it
        return False


def has_data(folder: Path) -> bool:
    """Return whether a folder has or declares datasets, which replace the demo corpus."""
    check_fetched(folder, folder.parent)
    return folder.is_dir() and (bool(data_in(folder)) or (folder / DATASETS).exists())


def open_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file.

    RAISES (FileNotFoundError): if nothing is there, not even a link.
    RAISES (InputError): if it is a broken link, a folder, or unreadable.
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
    """Read a file whole; see `open_file` for errors."""
    with open_file(path) as file:
        return file.read()


def printable(path: Path) -> str:
    r"""Format a path with `/` on every machine; bytes that aren't UTF-8 become escapes, such as \\xe9."""
    return os.fsencode(path.as_posix()).decode("utf8", "backslashreplace")


def _refuse(error: OSError) -> NoReturn:
    raise InputError(
        f"{printable(Path(error.filename))}: this folder can't be read, so its files would be left out: "
        f"{error.strerror}; make it readable, or move it elsewhere"
    ) from error


def check_fetched(data: Path, root: Path) -> None:
    """Refuse a missing file or folder that DVC tracks, or one with two versions in git."""
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
    """List name, inode, size, and both times of a source's files; `touch` can't set the change time."""
    if path.is_dir():
        files = find_files(path, suffixes)
    else:
        wal = path.with_name(path.name + "-wal")  # SQLite hasn't written its content to the database yet
        files = [path, wal] if wal.exists() and wal.stat().st_size else [path]
    # A folder's files may be broken links.
    stats = [(file, file.stat() if file.exists() else file.lstat()) for file in files]
    return [
        (printable(file.relative_to(path.parent)), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        for file, stat in stats
    ]
