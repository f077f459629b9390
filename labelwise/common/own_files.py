"""Hidden files of ours beside somebody's files: locks, journals, caches. No link that came with data is followed.

They are opened by the descriptor of their folder; a link, a pipe, a device, a folder, or a file that has another name,
too, is an error with its name. No lock lies among data: there, the folder itself is locked.
"""

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from labelwise.common.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT)


def own_name(path: Path, kind: str) -> Path:
    """Name what is needed beside an output: hidden, and such that whatever has this name is ours, and may be deleted.

    kind (str): such as "tmp", "lock" or "journal".
    """
    return path.with_name(f".{path.name}.labelwise.{kind}")


def own_folder(path: Path) -> None:
    """Make a hidden folder of ours, unless it is there; those that it is in, too.

    RAISES (InputError): what is there is a link, which came with somebody's files.
    """
    if path.is_symlink():
        raise _not_ours(path)
    path.mkdir(parents=True, exist_ok=True)


def create(file: Path) -> IO[bytes]:
    """Open a file of ours to be written anew; what has its name, such as a link, is deleted."""
    file.unlink(missing_ok=True)
    return os.fdopen(open_own(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")


def open_own(file: Path, flags: int) -> int:
    """Open a hidden file of ours by the descriptor of its folder, following no link.

    RETURNS (int): the descriptor.
    RAISES (InputError): what is there is a link, a pipe, a device or a folder, or is a file under another name, too.
    """
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        opened = os.open(file.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV):
            raise
        raise _not_ours(file) from error
    finally:
        os.close(folder)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(opened)
        raise _not_ours(file)
    return opened


def read_own(file: Path) -> bytes:
    """Read a hidden file of ours; it raises what `open_own` raises."""
    with os.fdopen(open_own(file, os.O_RDONLY), "rb") as opened:
        return opened.read()


def _not_ours(file: Path) -> InputError:
    return InputError(f"{file}: labelwise didn't make this, and needs the name; delete it")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock an output, until this process ends, however it ends; forked processes don't hold the lock.

    The lock is a file beside the output, which is deleted at the end. A process locks an output once at a time.

    RAISES (InputError): another process holds the lock, or what has its name isn't a lock.
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
        lock = os.fdopen(open_own(file, os.O_RDWR | os.O_CREAT), "r+", encoding="ascii", errors="replace")
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            with lock:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                raise InputError(
                    f"{path.parent}: process {lock.read().strip() or 'unknown'} is writing {path.name} there; "
                    "wait until it ends, or write elsewhere"
                ) from error
        # Who held it before may have deleted the file since it was opened here.
        if os.fstat(lock.fileno()).st_nlink:
            if not lock.read(20).strip().isdigit() and os.fstat(lock.fileno()).st_size:
                lock.close()
                raise _not_ours(file)
            lock.seek(0)
            lock.truncate()
            lock.write(str(os.getpid()))
            lock.flush()
            return lock
        lock.close()


def write_among_data(path: Path, content: bytes) -> None:
    """Write a file into a folder of somebody's data, as a whole, following no link and leaving no lock there.

    Who writes there at the same time waits: the folder itself is locked, where its file system can do that.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    temporary = own_name(path, "tmp").name
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                raise
        with full_disk_named(path.parent):
            remove(path.with_name(temporary))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as opened:
                    opened.write(content)
                os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                remove(path.with_name(temporary))
                raise
    finally:
        os.close(folder)


def real_path(path: Path) -> Path:
    """Find what is replaced where an output is written: the folder that a link leads to, or else what is at the path.

    A link to a file is itself replaced: it may lead into DVC's cache, which must stay as it is.
    """
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def remove(path: Path) -> None:
    """Delete a file or a folder, if there is one; a link is deleted itself."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Name the folder when its disk is full, or has failed, which the system's own error doesn't.

    RAISES (InputError): no space is left, or something couldn't be read or written.
    """
    try:
        yield
    except OSError as error:
        # A copied folder's error is a list of files, each with its error as text.
        copied = re.search(r"\[Errno (\d+)\]", str(error)) if isinstance(error, shutil.Error) else None
        code = int(copied[1]) if copied else error.errno
        if code == errno.EIO and error.filename is None:
            raise InputError(
                f"{folder}: {os.strerror(code)}, when something was written there or read for it; check the disks. "
                "What was there is unchanged"
            ) from error
        if code not in FULL:
            raise
        raise InputError(
            f"{folder}: {os.strerror(code)}; free some, or choose another folder. What was there is unchanged"
        ) from error
