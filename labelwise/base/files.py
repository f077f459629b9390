"""Atomic outputs, file locks and digests.

An output is built in a hidden folder beside its place, `.NAME.labelwise.tmp`, and moved when it is complete. Of several
outputs, the first is deleted before the others are moved, and moved last: readers refuse the others without it, such as
a corpus without its manifest. After a kill, either the old outputs remain or readers refuse the new ones; the next run
deletes leftovers.
"""

import errno
import hashlib
import json
import os
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import Any

from filelock import FileLock, Timeout

from labelwise.base.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT)
PACKAGE = Path(__file__).resolve().parents[1]


def sibling(path: Path, kind: str) -> Path:
    """Return the path of a hidden file or folder beside an output, such as its "tmp" or "lock"."""
    return path.with_name(f".{path.name}.labelwise.{kind}")


@contextmanager
def atomic(first: Path, *others: Path | None, folders: Collection[Path] = ()) -> Iterator[list[Any]]:
    """Yield paths to write outputs to; move them when the block succeeds, the first one last.

    folders (Collection[Path]): outputs that are folders.
    YIELDS (list[Path | None]): temporary paths, None for None; outputs of one folder share a temporary folder.
    RAISES (InputError): if the old output is of the other kind, another process writes there, or the disk is full.
    """
    for path in filter(None, (first, *others)):
        check_kind(path.parent, folder=True)
        check_kind(path, folder=path in folders)
    paths = [path and real_path(path) for path in (first, *others)]
    temporaries: dict[Path, Path] = {}  # by folder, named after its first output, which is locked
    for path in filter(None, paths):
        temporaries.setdefault(path.parent, sibling(path, "tmp"))
    moves = {temporaries[path.parent] / path.name: path for path in paths if path}
    with ExitStack() as stack:
        stack.enter_context(full_disk_named(next(iter(moves.values())).parent))
        for path in moves.values():
            stack.enter_context(locked(path))
        for built in temporaries.values():
            remove(built)
            built.mkdir(parents=True)
        try:
            with large_file_named(temporaries.values()):
                yield [path and temporaries[path.parent] / path.name for path in paths]
                _move(moves)
        finally:
            for built in temporaries.values():
                remove(built)


def _move(moves: dict[Path, Path]) -> None:
    """Move outputs to their places; delete those that weren't built."""
    (first, place), *others = moves.items()
    if others:
        _put_aside(place, first)
    for new, path in others:
        _put_aside(path, new)
        if os.path.lexists(new):
            new.rename(path)
    if not place.is_dir():
        first.replace(place)
        return
    aside = _put_aside(place, first)
    try:
        first.rename(place)
    except BaseException:
        aside.rename(place)
        raise


def _put_aside(path: Path, new: Path) -> Path:
    """Move the old output aside: no folder can be replaced in one step."""
    aside = new.with_name(f"old-{new.name}")
    if os.path.lexists(path):
        path.rename(aside)
    return aside


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock an output until the block or this process ends; refuse one locked by another process."""
    path = real_path(path)
    file = sibling(path, "lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"{path}: another process is writing this; wait until it ends, or write elsewhere") from error
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.release()


def real_path(path: Path) -> Path:
    """Resolve a symlink to a folder, but not to a file, which may be in DVC's cache."""
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def caseless(path: PurePath | str) -> str:
    """Return a path's case-folded NFC name. Equal names are one file on macOS."""
    return unicodedata.normalize("NFC", str(path).casefold())


def check_kind(path: Path, *, folder: bool) -> None:
    """Refuse to replace a file by a folder, a folder by a file, or a broken link."""
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: this is a broken link; delete it, or create its target")
    if path.exists() and path.is_dir() != folder:
        kinds = ("a folder", "a file") if path.is_dir() else ("a file", "a folder")
        raise InputError(f"{path}: this is {kinds[0]}, but {kinds[1]} is to be written there; choose another name")


def check_replaceable(folder: Path, marks: Iterable[str], what: str) -> None:
    """Refuse to replace a folder that is neither empty nor an earlier output, which has all `marks`."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    missing = [name for name in marks if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} is there and isn't a {what}: it has no {missing[0]}; choose another path, or delete it yourself"
        )


def list_digests(folder: Path) -> dict[str, str]:
    """Digest the files in a folder, by relative path."""
    digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            digests[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def check_unchanged(folder: Path, mark: str) -> None:
    """Refuse to replace an output with edited or added files.

    mark (str): name of a JSON file in it, whose object "files" has the digests of all others.
    RAISES (InputError): if files were edited or added, or the mark is malformed.
    """
    if not (folder / mark).is_file():
        return
    try:
        known = json.loads((folder / mark).read_bytes())["files"] | {mark: ""}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"{folder / mark}: it doesn't list the files beside it ({error}); write elsewhere") from error
    for name, digest in list_digests(folder).items():
        if name != mark and known.get(name) != digest:
            what = "was changed since it was written" if name in known else "was put there"
            raise InputError(f"{folder / name}: this {what}, and would be lost; move it away, or write elsewhere")


def link(source: Path, target: Path) -> None:
    """Hard-link a file; copy it if the file system can't."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def remove(path: Path) -> None:
    """Delete a file, a folder or a link (not its target), if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Turn OSError of a full or broken disk into an InputError that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*FULL, errno.EIO):
            raise
        remedy = "free some space, or choose another folder" if error.errno in FULL else "check the disk"
        raise InputError(f"{folder}: {error.strerror}; {remedy}") from error


@contextmanager
def large_file_named(folders: Iterable[Path]) -> Iterator[None]:
    """Turn the error of the file size limit into an InputError that names the file's place."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        built = [(file.stat().st_size, file, root) for root in folders for file in root.rglob("*") if file.is_file()]
        if not built:
            raise
        _, file, root = max(built)
        remedy = "raise the limit that `ulimit -f` shows, or lift it: ulimit -f unlimited"
        raise InputError(f"{root.parent / file.relative_to(root)}: {error.strerror}; {remedy}") from error


def digest_code(folders: Iterable[str], versions: Iterable[str] = ()) -> str:
    """Digest versions, and the Python files of `base` and of folders of this package, such as "merge"."""
    files = {file for folder in ("base", *folders) for file in (PACKAGE / folder).resolve().rglob("*.py")}
    digest = hashlib.blake2b("\n".join(versions).encode(), digest_size=8)
    for file in sorted(files):
        digest.update(f"\0{file.relative_to(PACKAGE.parent).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def digest_folder(folder: Path) -> str:
    """Digest a folder's files, such as a pipeline's, with their names."""
    return digest_listed(list_digests(folder))


def digest_listed(digests: Mapping[str, str]) -> str:
    """Digest the digests of `list_digests`."""
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()
