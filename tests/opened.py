"""Record the files of a folder that any process opens, by inotify(7)."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IN_OPEN, IN_ISDIR = 0x20, 0x40000000
LIBC = ctypes.CDLL(None)
HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name


@contextmanager
def opened(root: Path) -> Iterator[set[str]]:
    """Yield a set that has, after the block, the opened files outside hidden folders; bytecode counts as its source."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    visible = [path for path in folders if not any(part.startswith(".") for part in path.relative_to(root).parts)]
    paths: set[str] = set()
    file = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        watched = {LIBC.inotify_add_watch(file, os.fsencode(folder), IN_OPEN): folder for folder in visible}
        assert min(watched) > 0
        yield paths
        for watch, name in _events(file):
            path = watched[watch] / name
            if path.parent.name == "__pycache__":
                path = path.parent.parent / f"{name.partition('.')[0]}.py"
            paths.add(path.relative_to(root).as_posix())
    finally:
        os.close(file)


def _events(file: int) -> Iterator[tuple[int, str]]:
    """Read waiting events: (watch of a folder, name of the opened file)."""
    while True:
        try:
            content = os.read(file, 2**20)
        except BlockingIOError:
            return
        at = 0
        while at < len(content):
            watch, mask, _, length = HEAD.unpack_from(content, at)
            assert watch > 0, "events were lost"
            name = content[at + HEAD.size : at + HEAD.size + length].rstrip(b"\0").decode()
            if name and not mask & IN_ISDIR:
                yield watch, name
            at += HEAD.size + length
