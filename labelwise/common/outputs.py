"""Outputs that appear whole or not at all."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from labelwise.common.errors import InputError


@contextmanager
def workspace(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to build something at; whatever is there at the end is deleted.

    YIELDS (Path): a path that doesn't exist yet, in the same folder, which is created; see `own_name`. What an earlier,
        killed run left there is deleted first.
    RAISES (InputError): another process builds something for the same path.
    """
    path = path.resolve()
    temporary = own_name(path, "tmp")
    with locked(path):
        remove(temporary)
        try:
            yield temporary
        finally:
            remove(temporary)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield a path to write a file or a folder to, and move it to `path` when the block succeeds.

    When the block raises, or is killed, what was at `path` before is still there. A folder is replaced in two steps:
    a process killed between them leaves nothing at `path`, but never a partial folder.

    RAISES (InputError): another process is writing to `path`.
    """
    with workspace(path) as temporary:
        yield temporary
        replace(temporary, path)


def check_replaceable(folder: Path, marks: Iterable[str], what: str) -> None:
    """Check that a folder, which will be replaced as a whole, isn't there, or empty, or an earlier output of its kind.

    marks (Iterable[str]): the names of files that all such outputs have.
    what (str): the kind, such as "pipeline".
    RAISES (InputError): there is something else.
    """
    if not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return
    missing = [name for name in marks if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} would be replaced, and isn't an earlier {what}, as it has no {missing[0]}; write elsewhere, or "
            "delete it"
        )


def replace(source: Path, target: Path) -> None:
    """Move a file over a file, or a folder over a folder; both must be on one file system.

    RAISES (InputError): there is a folder where a file is to be written, or the other way round.
    """
    if target.exists() and target.is_dir() != source.is_dir():
        kinds = ("a folder", "a file") if target.is_dir() else ("a file", "a folder")
        raise InputError(f"{target}: this is {kinds[0]}, but {kinds[1]} is to be written there; choose another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        # A folder can't be replaced by one system call: it is moved aside first, and back if the next step fails.
        aside = own_name(target, "old")
        remove(aside)
        target.rename(aside)
        try:
            source.rename(target)
        except OSError:
            aside.rename(target)
            raise
        remove(aside)
    else:
        source.replace(target)


def move_into(source: Path, target: Path, *, last: str) -> None:
    """Move everything in a folder into another, each item over the one with its name there, and one of them last.

    source (Path): a folder on the same file system; it is empty afterwards.
    last (str): a file that says what the others are. It is deleted from `target` first and moved last, so a killed move
        leaves none, and the next run can tell.
    """
    remove(target / last)
    for item in sorted(source.iterdir(), key=lambda item: (item.name == last, item.name)):
        replace(item, target / item.name)


def remove(path: Path) -> None:
    """Delete a file or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def own_name(path: Path, kind: str) -> Path:
    """Name what is needed beside an output: hidden, and such that whatever has this name is ours, and may be deleted.

    kind (str): "tmp", "old" or "lock".
    """
    return path.with_name(f".{path.name}.labelwise.{kind}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock an output, until this process ends, however it ends; forked processes don't hold the lock.

    The lock is a file beside the output, which is deleted at the end. A process locks an output once at a time.
    RAISES (InputError): another process holds the lock.
    """
    path = path.resolve()
    file = own_name(path, "lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    with _take_lock(file, path):
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _take_lock(file: Path, path: Path) -> IO[str]:
    while True:
        lock = file.open("a+", encoding="utf8")
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            with lock:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                lock.seek(0)
                raise InputError(
                    f"{path.parent}: process {lock.read().strip() or 'unknown'} is writing {path.name} there; "
                    "wait until it ends, or write elsewhere"
                ) from error
        # Who held it before may have deleted the file since it was opened here.
        if os.fstat(lock.fileno()).st_nlink:
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            return lock
        lock.close()


def link(source: Path, target: Path) -> None:
    """Make a hard link to a file, or copy it where the file system can't do that."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Name the folder when its disk is full, which the system's own error doesn't.

    RAISES (InputError): no space is left.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InputError(
            f"{folder}: {error.strerror}; free some, or choose another folder. What was there is unchanged"
        ) from error
