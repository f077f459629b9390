"""Outputs that appear whole or not at all.

What is written is built in a folder beside its place, `.NAME.labelwise.tmp`, which is made anew, so that no link that
came with somebody's files is ever written through. Then it is moved:

1. A single file or folder changes places with what was there in one step (renameat2(2), RENAME_EXCHANGE).
2. Several outputs of one command can't. Each gets a journal beside it, `.NAME.labelwise.journal`, that of the first one
   last; all are moved; the journals are deleted, that of the first one last. Readers refuse what has a journal
   (`check_finished`). The command's next run finishes the moves if the first output has one; else none had begun.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from labelwise.common.errors import InputError
from labelwise.common.own_files import (
    create,
    full_disk_named,
    locked,
    own_name,
    read_own,
    real_path,
    remove,
)

RENAME_EXCHANGE, AT_FDCWD = 2, -100
# The errors of renameat2 where the kernel or the file system can't exchange.
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EXDEV)
JOURNAL_SHOWN = 100  # characters


class Output(NamedTuple):
    """An output of a command.

    kind (str): "file", "folder", or "items": what is built is a folder, and each thing in it goes beside `path`, which
        names the whole, over the one with its name there.
    """

    path: Path
    kind: Literal["file", "folder", "items"] = "file"

    @property
    def temporary(self) -> Path:
        """The folder beside it in which it is built."""
        return own_name(self.path, "tmp")

    @property
    def source(self) -> Path:
        """Where it is built."""
        return self.temporary / self.path.name

    @property
    def aside(self) -> Path:
        """Where what was there before lies while the new one is moved."""
        return self.temporary / "old"

    @property
    def journal(self) -> Path:
        """The file that says that a command is moving it."""
        return own_name(self.path, "journal")


@contextmanager
def workspace(path: Path, *, folder: bool = True) -> Iterator[Path]:
    """Yield a path to build something at; whatever is there at the end is deleted.

    folder (bool): it is a folder that will be at `path`, not a file.
    YIELDS (Path): a path in a new folder beside `path`; nothing is there yet. What an earlier, killed run left is
        deleted, or put back, first.
    RAISES (InputError): another process builds something for the same path, what is there can't be replaced, or the
        disk is full.
    """
    with _building([Output(path, "folder" if folder else "file")]) as [output]:
        yield output.source


@contextmanager
def staged(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a path to write a file or a folder to, and move it to `path` when the block succeeds.

    When the block raises, or is killed, what was at `path` before is still there.

    RAISES (InputError): what `workspace` raises.
    """
    with _building([Output(path, "folder" if folder else "file")]) as [output]:
        yield output.source
        check_kind(output.path, folder=output.source.is_dir())
        with _refusal_named(output.path):
            if not (output.path.is_dir() and _exchange(output.source, output.path)):
                _replace(output.source, output.path, output.aside)


@contextmanager
def staged_together(command: str, *outputs: Output | Path | None) -> Iterator[list[Any]]:
    """Yield paths to write several outputs of a command to; they are moved when the block succeeds.

    command (str): what readers are told to run again if it is killed while it moves them.
    outputs (Output | Path | None): a Path is that of a file. The first is one that each run of the command has.
    YIELDS (list[Path | None]): a path for each, None for None.
    RAISES (InputError): what `workspace` raises, or two are the same.
    """
    with _building([Output(output) if isinstance(output, Path) else output for output in outputs if output]) as given:
        sources = iter(given)
        yield [output and next(sources).source for output in outputs]
        first, *others = given
        _check_kinds(given)
        try:
            for output in (*others, first):
                with create(output.journal) as journal:
                    journal.write(command.encode())
        except BaseException:
            for output in (first, *others):
                output.journal.unlink(missing_ok=True)
            raise
        _settle(given)


@contextmanager
def _building(outputs: Sequence[Output]) -> Iterator[list[Output]]:
    """Lock outputs, settle what an earlier run left, and make the folders that they are built in; delete these."""
    _check_kinds(outputs)
    real = [output._replace(path=real_path(output.path)) for output in outputs]
    with ExitStack() as stack:
        for output in real:
            if [other.path for other in real].count(output.path) > 1:
                raise InputError(
                    f"{output.path}: two outputs would be written there; choose another name for one of them"
                )
            stack.enter_context(full_disk_named(output.path.parent))
            stack.enter_context(locked(output.path))
        _settle(real)
        try:
            for output in real:
                output.temporary.mkdir(mode=0o700)
            yield real
        finally:
            # With a journal, what was built is still to be moved.
            if not any(os.path.lexists(output.journal) for output in real):
                for output in real:
                    remove(output.temporary)


def _check_kinds(outputs: Iterable[Output]) -> None:
    for output in outputs:
        if output.kind != "items":
            check_kind(output.path, folder=output.kind == "folder")


def _settle(outputs: Sequence[Output]) -> None:
    """Move what has been built if the first output has a journal, which all have been given then; else undo it."""
    first, *others = outputs
    for output in outputs:
        # Only a folder is ours: a link came with somebody's files, and what it leads to is moved and deleted by nobody.
        for path in (output.temporary, output.source):
            if path.is_symlink() and (path == output.temporary or output.kind != "file"):
                path.unlink()
    if os.path.lexists(first.journal):
        for output in outputs:
            with _refusal_named(output.path):
                _move(output)
    for output in (*others, first):
        output.journal.unlink(missing_ok=True)
    for output in outputs:
        # Two renames, of which the second was never made: see `_replace`.
        if output.kind != "items" and not os.path.lexists(output.path) and os.path.lexists(output.aside):
            output.aside.rename(output.path)
        remove(output.temporary)


def _move(output: Output) -> None:
    """Move what was built, unless it has been moved; a killed move can be done again."""
    if output.kind == "items":
        for item in sorted(output.source.iterdir()) if output.source.is_dir() else ():
            _replace(item, real_path(output.path.with_name(item.name)), output.temporary / f"old-{item.name}")
    elif os.path.lexists(output.source):
        _replace(output.source, output.path, output.aside)


def _replace(source: Path, target: Path, aside: Path) -> None:
    """Move a file over a file, or a folder over a folder: that takes two steps, the first of which puts it aside."""
    if not target.is_dir():
        source.replace(target)
        return
    remove(aside)
    target.rename(aside)
    try:
        source.rename(target)
    except OSError:
        aside.rename(target)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; False where the system can't do that.

    RAISES (OSError): it failed for another reason.
    """
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))


@contextmanager
def _refusal_named(target: Path) -> Iterator[None]:
    """Name what the system can't move.

    RAISES (InputError): it is mounted, or of a lower layer of an overlay.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        raise InputError(
            f"{target}: it can't be replaced: {error.strerror}; move it elsewhere, or choose another name"
        ) from error


def check_finished(path: Path) -> None:
    """Check that no command is moving an output (see `staged_together`), and that none was killed while it did.

    path (Path): what the command knows it by; for "items" the name of the whole, such as corpus/merge.
    RAISES (InputError): one is, or was.
    """
    journal = Output(real_path(path)).journal
    if os.path.lexists(journal):
        try:
            command = read_own(journal).decode("utf8", "replace")[:JOURNAL_SHOWN]
        except (OSError, InputError):  # it was finished meanwhile, or isn't ours
            command = "the command that writes it"
        raise InputError(
            f"{path}: {command} is replacing this together with other files, or was killed while it did; wait, or run "
            "it again"
        )


def check_kind(path: Path, *, folder: bool) -> None:
    """Check that what is at a path, if anything, can be replaced by a folder, or by a file.

    RAISES (InputError): it is the other of these, a link to nothing, or where a file system is mounted.
    """
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: this is a link to nothing; delete it, or make what it leads to")
    if path.exists() and path.is_dir() != folder:
        kinds = ("a folder", "a file") if path.is_dir() else ("a file", "a folder")
        raise InputError(f"{path}: this is {kinds[0]}, but {kinds[1]} is to be written there; choose another name")
    if path.exists() and not folder and not path.is_file():
        raise InputError(f"{path}: this is neither a file nor a folder; choose another name")
    if real_path(path).is_mount():
        raise InputError(
            f"{path}: a file system is mounted there, so it can't be replaced as a whole; choose a name inside of it"
        )


def check_replaceable(folder: Path, marks: Iterable[str], what: str) -> None:
    """Check that a folder, which will be replaced as a whole, is absent, empty, or an earlier output of the same kind.

    What an earlier, killed run left beside it is settled first, but for a journal: that concerns other outputs, too,
    and is left to `staged_together`, which is given all of them.

    marks (Iterable[str]): the names of files that all such outputs have.
    what (str): the kind, such as "pipeline".
    RAISES (InputError): there is something else, or another process is writing there.
    """
    output = Output(real_path(folder), "folder")
    left = output.temporary, own_name(output.path, "lock")
    if any(map(os.path.lexists, left)) and not os.path.lexists(output.journal):
        with locked(output.path):
            _settle([output])
    if not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return
    missing = [name for name in marks if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} would be replaced, and isn't an earlier {what}, as it has no {missing[0]}; write elsewhere, or "
            "delete it"
        )


def link(source: Path, target: Path) -> None:
    """Make a hard link to a file, or copy it where the file system can't do that."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
