"""What a worker of a cluster must have in common with who sends it jobs: code, versions, and a folder."""

import platform
import socket
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from labelwise.common.code import digest_code


class Facts(NamedTuple):
    """What the bytes of results may depend on; of the code a digest."""

    code: str
    python: str
    spacy: str
    numpy: str


@lru_cache
def own_facts() -> Facts:
    """Find the facts of this process when it is first asked: what it has loaded stays as it was, whatever is edited."""
    return Facts(digest_code(["."]), platform.python_version(), version("spacy"), version("numpy"))


def difference(other: Facts) -> str:
    """Say in what this process differs from another, of which there are facts; nothing if it doesn't."""
    return "; ".join(
        f"its labelwise is another ({here}, not {there})" if name == "code" else f"it has {name} {here}, not {there}"
        for name, here, there in zip(Facts._fields, own_facts(), other, strict=True)
        if here != there
    )


class Answer(NamedTuple):
    """What a worker says of itself: its host, in what it differs, and whether it sees the file that it was told of."""

    host: str
    difference: str
    sees: bool


def answer(other: Facts, file: Path) -> Answer:
    """Compare this process with another; its folder is listed, as NFS may remember that a file wasn't there."""
    sees = file.parent.is_dir() and file.name in {found.name for found in file.parent.iterdir()}
    return Answer(socket.gethostname(), difference(other), sees)
