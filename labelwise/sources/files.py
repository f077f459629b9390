"""Find the files of a source: a folder that can't be read is an error, and each folder is read once, links or not.

Data may come from anywhere, and with links to any file of this machine. Links are followed into the folder
that was declared, in the project, or in DVC's cache, which has the files of a tracked folder if `cache.type` is
symlink. Others are counted as `LINK_OUTSIDE`, and aren't read.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import has_magic
from pathlib import Path
from typing import BinaryIO, NoReturn

from labelwise.common.errors import InputError
from labelwise.corpus.tasks import DATASETS

# Errors that are about a file, not about this process or the disk.
UNREADABLE = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.ENODEV}

LINK_OUTSIDE = "link outside"
NOT_DATA = (".md", ".example", ".dvc", DATASETS)  # of names that are ignored without a message
PROJECT = "project.yml"  # is in the working directory if that is a project


def is_outside(path: Path, root: Path) -> bool:
    """Tell whether links lead from a path in a source to a place that isn't read.

    root (Path): the folder that was declared.
    """
    target = Path(os.path.realpath(path))
    if target.is_relative_to(os.path.realpath(root)):
        return False
    here = Path.cwd()
    if (here / PROJECT).is_file() and target.is_relative_to(os.path.realpath(here)):
        return False
    cache = _dvc_cache(here)
    return cache is None or not target.is_relative_to(cache)


def is_link_outside(path: Path, root: Path) -> bool:
    """Tell whether a path is a link to a place that isn't read; its folder has been looked into."""
    return path.is_symlink() and is_outside(path, root)


@lru_cache(maxsize=8)
def _dvc_cache(project: Path) -> Path | None:
    """Find DVC's cache, which may be anywhere; None if there is no DVC, or this is no project of its."""
    try:
        from dvc.exceptions import NotDvcRepoError
        from dvc.repo import Repo
    except ImportError:
        return None
    try:
        with Repo(str(project)) as repo:
            return Path(os.path.realpath(repo.cache.local.path))
    except NotDvcRepoError:
        return None


def walk(root: Path, *, hidden: bool = True) -> Iterator[tuple[Path, list[Path]]]:
    """Yield a folder and those below, each once, with its content, sorted.

    A folder comes under its own name, or else that of the first link to it.

    hidden (bool): names that begin with a dot, too.
    RAISES (InputError): a folder can't be read.
    """
    seen: set[tuple[int, int]] = set()
    waiting = deque([root])  # links are followed last
    while waiting:
        for name, folders, files in os.walk(waiting.popleft(), onerror=_refuse):
            folder = Path(name)
            status = folder.stat()
            new = (status.st_dev, status.st_ino) not in seen
            folders[:] = sorted(name for name in folders if new and (hidden or not name.startswith(".")))
            if new:
                seen.add((status.st_dev, status.st_ino))
                found = sorted(folder / name for name in (*folders, *files) if hidden or not name.startswith("."))
                links = (path for path in found if is_folder(path) and path.is_symlink())
                waiting.extend(path for path in links if not is_outside(path, root))
                yield folder, found


def folders_outside(root: Path, *, hidden: bool = True) -> list[Path]:
    """List the links in a folder, and below it, to folders that aren't looked into; see `is_outside`.

    RAISES (InputError): a folder can't be read.
    """
    found = (path for _, paths in walk(root, hidden=hidden) for path in paths)
    return sorted(path for path in found if is_link_outside(path, root) and is_folder(path))


def find_files(root: Path, suffixes: tuple[str, ...], *, hidden: bool = True) -> list[Path]:
    """List the files in a folder, and below it, whose names end in a suffix, whatever they are, sorted by their paths.

    Links are among them, wherever they lead to.

    RAISES (InputError): a folder can't be read.
    """
    found = (path for _, paths in walk(root, hidden=hidden) for path in paths)
    files = (path for path in found if path.name.endswith(suffixes) and not is_folder(path))
    return sorted(files, key=lambda path: path.relative_to(root).parts)


def data_in(folder: Path) -> list[Path]:
    """List all in a folder that is, or may be meant to be, a data set."""
    return [file for file in folder.iterdir() if not file.name.startswith(".") and not file.name.endswith(NOT_DATA)]


def has_data(folder: Path) -> bool:
    """Tell whether a folder has data sets of one's own, beside which the demo corpus isn't needed, or declares some."""
    return folder.is_dir() and ((folder / DATASETS).exists() or bool(data_in(folder)))


def match_pattern(folder: Path, pattern: str) -> list[Path]:
    """List the matches of a pattern, sorted: as `glob` does, recursively, but for folders that can't be read.

    folder (Path): the pattern is relative to it.
    RAISES (InputError): a folder that may hold a match can't be read.
    """
    parts = Path(pattern).parts
    absolute = parts[:1] == (os.sep,)
    return sorted(set(_match(Path(os.sep) if absolute else folder, parts[absolute:])))


def _match(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        for below, _ in walk(folder, hidden=False):
            yield from _match(below, rest or ("*",))
        return
    if not has_magic(part):
        found = [folder / part] if _mode(folder / part, follow=False) else []
    else:
        _, names, files = next(os.walk(folder, onerror=_refuse))
        shown = [name for name in (*names, *files) if part.startswith(".") or not name.startswith(".")]
        found = [folder / name for name in shown if fnmatchcase(name, part)]
    for path in found:
        if not rest:
            yield path
        elif is_folder(path):
            yield from _match(path, rest)


def open_file(path: Path) -> BinaryIO:
    """Open a file.

    RAISES (FileNotFoundError): nothing is there, not even a link.
    RAISES (InputError): it can't be read: a link to nothing, a folder, a file that mustn't be read; or a
        pipe, which might be waited for, or a device, which might be read, without end.
    """
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except FileNotFoundError as error:
        if not path.is_symlink():
            raise
        raise InputError(f"{printable(path)}: a link to nothing; fetch what it should lead to, or delete it") from error
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        raise InputError(f"{printable(path)}: this file can't be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError(f"{printable(path)}: this is neither a file nor a folder; write its content to a file")
    return file


def read_file(path: Path) -> bytes:
    """Read a file whole; it raises what `open_file` raises."""
    with open_file(path) as file:
        return file.read()


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder, or a link to one.

    RAISES (InputError): that can't be known, because a folder that it leads through can't be read.
    """
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path, *, follow: bool = True) -> int:
    """Return the kind and the permissions of a path; 0 if nothing is there."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except PermissionError as error:
        _refuse(error)
    except OSError:
        return 0


def printable(path: Path) -> str:
    r"""Write a path, with `/` on every machine, as text; bytes that aren't UTF-8 become escapes, such as \\xe9."""
    return os.fsencode(path.as_posix()).decode("utf8", "backslashreplace")


def _refuse(error: OSError) -> NoReturn:
    raise InputError(
        f"{printable(Path(error.filename))}: this folder can't be read, so what is in it would be left out: "
        f"{error.strerror}; make it readable, or move it elsewhere"
    ) from error


FileStat = tuple[str, int, int, int, int]


def stat_of(path: Path, suffixes: tuple[str, ...]) -> list[FileStat]:
    """List name, inode, size, and times of modification and change of a source, to tell whether it changed.

    The time of change is the system's alone: programs such as `cp -p` and `touch` set back that of modification.

    suffixes (tuple[str, ...]): of a folder's files that count.
    RAISES (InputError): a folder can't be read.
    """
    if path.is_dir():
        found = find_files(path, suffixes)
    else:
        wal = path.with_name(path.name + "-wal")  # SQLite hasn't written its content to the database yet
        found = [path, wal] if wal.exists() and wal.stat().st_size else [path]
    # Links to nothing are among a folder's files, too.
    stats = [(file, file.stat() if file.exists() else file.lstat()) for file in found]
    return [
        (printable(file.relative_to(path.parent)), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        for file, stat in stats
    ]
