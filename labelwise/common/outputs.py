"""Outputs that appear whole or not at all."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from labelwise.common.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def workspace(path: Path, *, folder: bool = True) -> Iterator[Path]:
    """Yield a path beside `path` to build something at; whatever is there at the end is deleted.

    folder (bool): it is a folder that will be at `path`, not a file.
    YIELDS (Path): a path that doesn't exist yet, in the same folder, which is created; see `own_name`. What an earlier,
        killed run left there is deleted first.
    RAISES (InputError): another process builds something for the same path, what is there can't be replaced, or the
        disk is full.
    """
    check_kind(path, folder=folder)
    path = real_path(path)
    temporary = own_name(path, "tmp")
    with full_disk_named(path.parent), locked(path):
        remove(temporary)
        try:
            yield temporary
        finally:
            remove(temporary)


@contextmanager
def staged(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a path to write a file or a folder to, and move it to `path` when the block succeeds.

    When the block raises, or is killed, what was at `path` before is still there. A folder is replaced in two steps:
    a process killed between them leaves nothing at `path`, but never a partial folder.

    RAISES (InputError): what `workspace` raises.
    """
    with workspace(path, folder=folder) as temporary:
        yield temporary
        replace(temporary, path)


@contextmanager
def staged_files(*paths: Path | None) -> Iterator[list[Path | None]]:
    """Yield paths to write files to, as `staged` does for each; None where None is given.

    RAISES (InputError): what `staged` raises, or two are the same file.
    """
    with ExitStack() as stack:
        given = [real_path(path) for path in paths if path]
        for path in given:
            if given.count(path) > 1:
                raise InputError(f"{path}: two outputs would be written there; choose another name for one of them")
        yield [path and stack.enter_context(staged(path)) for path in paths]


def real_path(path: Path) -> Path:
    """Find what is replaced where an output is written: the folder that a link leads to, or else what is at the path.

    A link to a file is itself replaced: it may lead into DVC's cache, which must stay as it is.
    """
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def check_kind(path: Path, *, folder: bool) -> None:
    """Check that what is at a path, if anything, can be replaced by a folder, or by a file.

    RAISES (InputError): it is the other of these, a link to nothing, or where a file system is mounted.
    """
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: this is a link to nothing; delete it, or make what it leads to")
    if path.exists() and path.is_dir() != folder:
        kinds = ("a folder", "a file") if path.is_dir() else ("a file", "a folder")
        raise InputError(f"{path}: this is {kinds[0]}, but {kinds[1]} is to be written there; choose another name")
    if real_path(path).is_mount():
        raise InputError(
            f"{path}: a file system is mounted there, so it can't be replaced as a whole; choose a name inside of it"
        )


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

    RAISES (InputError): there is a folder where a file is to be written, or the other way round, or the system can't
        move what is there.
    """
    check_kind(target, folder=source.is_dir())
    target = real_path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _move(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        raise InputError(
            f"{target}: it can't be replaced: {error.strerror}; move it elsewhere, or choose another name"
        ) from error


def _move(source: Path, target: Path) -> None:
    if not target.is_dir():
        source.replace(target)
        return
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


def move_into(source: Path, target: Path, *, last: str) -> None:
    """Move everything in a folder into another, each item over the one with its name there, and one of them last.

    source (Path): a folder on the same file system; it is empty afterwards.
    last (str): a file that says what the others are. It is deleted from `target` first and moved last, so a killed move
        leaves none, but a mark by which `is_unfinished` knows the others as what was moved.
    """
    mark = own_name(target / last, "unfinished")
    mark.touch()
    remove(target / last)
    for item in sorted(source.iterdir(), key=lambda item: (item.name == last, item.name)):
        replace(item, target / item.name)
    remove(mark)


def is_unfinished(target: Path, *, last: str) -> bool:
    """Tell whether a move into a folder (see `move_into`) was killed and hasn't been done again since."""
    return own_name(target / last, "unfinished").is_file()


def remove(path: Path) -> None:
    """Delete a file or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def own_name(path: Path, kind: str) -> Path:
    """Name what is needed beside an output: hidden, and such that whatever has this name is ours, and may be deleted.

    kind (str): such as "tmp", "old", "lock" or "unfinished".
    """
    return path.with_name(f".{path.name}.labelwise.{kind}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock an output, until this process ends, however it ends; forked processes don't hold the lock.

    The lock is a file beside the output, which is deleted at the end. A process locks an output once at a time.
    RAISES (InputError): another process holds the lock.
    """
    path = real_path(path)
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
    """Name the folder when its disk is full, or has failed, which the system's own error doesn't.

    RAISES (InputError): no space is left, or something couldn't be read or written.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EIO and error.filename is None:
            raise InputError(
                f"{folder}: {error.strerror}, when something was written there or read for it; check the disks. What "
                "was there is unchanged"
            ) from error
        if error.errno not in FULL:
            raise
        raise InputError(
            f"{folder}: {error.strerror}; free some, or choose another folder. What was there is unchanged"
        ) from error
