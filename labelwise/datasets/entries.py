"""Read and write the entries of `datasets.yml` files; docs/formats.md explains their keys."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Literal

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.settings import DATASETS, decode_yaml, encode_yaml
from labelwise.corpus.manifest import Split
from labelwise.sources.files import read_file

AnySplit = Literal["auto", "no-dev", "no-test", "train", "dev", "test"]
# Splits by hash, each with the splits that it doesn't choose: their share is in train.
HASHED: Mapping[str, tuple[Split, ...]] = {"auto": (), "no-dev": ("dev",), "no-test": ("test",)}
Offsets = Literal["", "code-points", "inclusive", "one-based", "one-based-inclusive", "utf-16", "graphemes", "bytes"]
AnyOffsets = Literal[Offsets, "crlf", "utf-16-inclusive", "graphemes-inclusive", "bytes-inclusive", "crlf-inclusive"]
AnyKind = Literal["auto", "complete", "binary"]
OwnDuplicates = Literal["", "latest", "union"]

SYNTAX = (
    "write a list of `{name: person, path: person.jsonl, labels: [PERSON]}`, or `db: prodigy.db` instead of the path, "
    "optionally with `kind: auto | complete | binary`, `split: auto | no-dev | no-test | train | dev | test`, "
    "`absent: [OTHER_LABEL]`, `rename: {OLD_LABEL: NEW_LABEL}`, `annotator: ann`, `offsets: inclusive`, "
    "`duplicates: latest | union`, `expect_losses: true`, `skip: true`, for a database `dataset: its_name_there`, for "
    ".spacy files `spans: sc`, for Label Studio's `text: body`"
)


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One entry (docs/formats.md)."""

    name: str
    path: str | list[str] | None = None
    db: str | None = None
    dataset: str = ""
    labels: tuple[str, ...] = ()
    kind: AnyKind = "auto"
    split: AnySplit = "auto"
    absent: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    annotator: str | dict[str, str] = ""
    offsets: AnyOffsets = ""
    spans: str = ""
    text: str = ""
    duplicates: OwnDuplicates = ""
    expect_losses: bool = False
    skip: bool = False

    @property
    def database(self) -> str:
        """Return its name in its Prodigy database; empty without one."""
        return (self.dataset or self.name) if self.db else ""

    @property
    def paths(self) -> list[str]:
        """Return its path or paths, or its database."""
        return self.path if isinstance(self.path, list) else [self.path or self.db or ""]

    @property
    def key(self) -> str:
        """Return the declared key of its `.spacy` files' spans, or of its Label Studio tasks' text."""
        return self.spans or self.text


def write_entries(entries: Iterable[Entry]) -> str:
    """Encode entries as a `datasets.yml`."""
    return encode_yaml(msgspec.to_builtins(list(entries)))


def read_entries(file: Path) -> list[Entry]:
    """Read the entries of a `datasets.yml`; refuse a missing file, or one that isn't a list of entries."""
    try:
        content = read_file(file)
    except FileNotFoundError as error:
        raise InputError(f"{file}: there is no such file; it declares datasets, see docs/formats.md") from error
    return decode_entries(content, file)


def decode_entries(content: bytes, file: Path) -> list[Entry]:
    """Decode the content of a `datasets.yml`; see `read_entries`."""
    return decode_yaml(content, list[Entry], str(file), SYNTAX, words=True)


def read_all_entries(declarations: Sequence[Path]) -> Iterator[tuple[Path, Entry]]:
    """Yield unskipped entries with their files, of files, folders with a `datasets.yml`, and patterns."""
    for file in sorted(_expand(declarations)):
        yield from ((file, entry) for entry in read_entries(file) if not entry.skip)


def _expand(declarations: Sequence[Path]) -> Iterator[Path]:
    for path in declarations:
        pattern = str(path)
        paths = sorted(map(Path, glob(pattern, recursive=True))) if has_magic(pattern) and not path.exists() else [path]
        if not paths:
            raise InputError(f"{path}: no file matches; name a datasets.yml, or a folder that has one")
        for file in paths:
            if not file.is_dir():
                yield file
            elif (file / DATASETS).exists():
                yield file / DATASETS


def check_renaming(rename: Mapping[str, str], labels: Iterable[str], where: str) -> None:
    """Refuse an empty new name of a label, and labels listed by their old names."""
    for old, new in rename.items():
        if not new.strip():
            raise InputError(f"{where}: `rename` gives {old!r} an empty name; give it another")
        if old in labels and old not in rename.values():
            raise InputError(f"{where}: {old!r} is renamed to {new!r}, and listed as a label; list {new!r}")
