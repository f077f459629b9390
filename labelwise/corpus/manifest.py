"""The manifest of a merged corpus: its settings, and its content.

Whoever reads a corpus lists its partitions with `find_partitions`, and reads each with `read_partition`, which check
them against the manifest; within `pinned`, against the one that was there at the beginning.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from labelwise import __version__
from labelwise.common.errors import InputError

MANIFEST = "manifest.json"
ANNOTATORS = "annotators.json"
# Raised when readers must differ. A corpus of an older format is read, or refused with "merge again (the cache is
# kept)"; manifests without a number are of the first one.
FORMAT = 1
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


# The manifests that this process began with, as they were, by their files.
_PINNED: dict[Path, bytes] = {}


@contextmanager
def pinned(corpus: Path, digest: str = "") -> Iterator[None]:
    """Read no other corpus than this one, as it is now: one that a merge puts in its place meanwhile is an error.

    Processes that are forked within the block do the same.
    digest (str): of its manifest, for workers that aren't forked: their corpus is that of who sends them jobs.
    RAISES (InputError): the corpus isn't whole, or another one.
    """
    file = corpus.resolve() / MANIFEST
    if file in _PINNED:
        yield
        return
    if digest:
        content = _held(file, digest)
    else:
        check_whole(corpus)
        content = file.read_bytes()
    _PINNED[file] = content
    try:
        yield
    finally:
        del _PINNED[file]


@lru_cache(maxsize=1)
def _held(file: Path, digest: str) -> bytes:
    """Read the manifest of a digest once, however many partitions a worker is sent."""
    content = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise _merged_anew(file.parent)
    return content


def _merged_anew(corpus: Path) -> InputError:
    return InputError(f"{corpus}: the corpus was merged anew meanwhile; start again")


def check_pinned(corpus: Path) -> None:
    """Check that a corpus is still the one that was pinned, if one was, so that all that was read belongs together.

    RAISES (InputError): a merge has replaced it.
    """
    pinned = _PINNED.get(corpus.resolve() / MANIFEST)
    if pinned is None:
        return
    try:
        same = (corpus / MANIFEST).read_bytes() == pinned
    except FileNotFoundError:
        same = False
    if not same:
        raise _merged_anew(corpus)


def manifest_digest(corpus: Path) -> str:
    """Return the SHA-256 of the manifest of a corpus: of the one that was pinned, if one was."""
    return hashlib.sha256(_content(corpus)).hexdigest()


def write_manifest(
    folder: Path,
    *,
    settings: Any,
    labels: Sequence[str],
    datasets: Mapping[str, int],
    splits: Mapping[str, Any],
    partitions: Mapping[str, str],
) -> None:
    """Write the manifest.

    settings (Any): all that the corpus depends on besides the data, as JSON has it.
    datasets (Mapping[str, int]): rows read of each data set.
    splits (Mapping): for each split, "texts", "words", and "digest", which is the same for the same texts.
    partitions (Mapping[str, str]): SHA-256 of every `.spacy` file.
    """
    manifest = {
        "format": FORMAT,
        "settings": settings,
        "labels": labels,
        "datasets": datasets,
        "splits": splits,
        "partitions": dict(sorted(partitions.items())),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def read_manifest(corpus: Path) -> dict[str, Any]:
    """Read the manifest of a corpus.

    RAISES (InputError): there is none, or a merge is replacing the corpus.
    """
    return json.loads(_content(corpus))


def _content(corpus: Path) -> bytes:
    if (content := _PINNED.get(corpus.resolve() / MANIFEST)) is None:
        check_whole(corpus)
        content = (corpus / MANIFEST).read_bytes()
    return content


def is_corpus(folder: Path) -> bool:
    """Tell whether a folder has the manifest of a merge, whichever version made it."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= {"settings", "splits", "partitions"}


def read_split(split: Path) -> dict[str, Any]:
    """Read the entry of a split, such as corpus/test, in the manifest: its "texts", "words" and "digest".

    RAISES (InputError): it isn't a split of a merged corpus.
    """
    folder = split.resolve()
    splits = read_manifest(folder.parent)["splits"]
    if folder.name not in splits:
        raise InputError(f"{split}: not a split of that corpus; give {' or '.join(splits)}")
    return splits[folder.name]


def check_merged(corpus: Path) -> None:
    """Check that a corpus has a manifest, which a merge deletes first and writes last.

    RAISES (InputError): it has none.
    """
    if not (corpus / MANIFEST).is_file():
        raise InputError(f"{corpus / MANIFEST}: there is no such file; run the merge to completion")


def check_whole(corpus: Path) -> None:
    """Check that the merge of a corpus finished.

    RAISES (InputError): it has no manifest, or one that isn't a merge's, or is a later version's.
    """
    check_merged(corpus)
    if not is_corpus(corpus):
        raise InputError(f"{corpus / MANIFEST}: not the manifest of a merge; run the merge again")
    number = json.loads((corpus / MANIFEST).read_text(encoding="utf8")).get("format", 1)
    if number != FORMAT:
        raise InputError(
            f"{corpus / MANIFEST}: a later labelwise merged this corpus, in format {number!r:.9}, and this one, "
            f"{__version__}, reads format {FORMAT}; install the later one, or merge again"
        )


def find_partitions(path: Path) -> list[Path]:
    """List the `.spacy` files of a folder, sorted.

    RAISES (InputError): there is none, or they aren't those that a merge lists beside the folder.
    """
    listed = _listed(path)
    files = sorted(path.glob("*.spacy"))
    if listed is not None:
        manifest = path.resolve().parent / MANIFEST
        found = {file.name for file in files}
        expected = {name.partition("/")[2] for name in listed if name.startswith(f"{path.resolve().name}/")}
        if found != expected:
            check_pinned(manifest.parent)
        for name in sorted(expected - found):
            raise InputError(f"{path / name}: there is no such file, but {manifest} lists it; run the merge again")
        for name in sorted(found - expected):
            raise InputError(f"{path / name}: {manifest} doesn't list it; delete it, or run the merge again")
    if not files:
        raise InputError(f"{path}: no .spacy file; run the merge, with a share for this split")
    return files


def partitions_of(corpus: Path, split: str) -> list[Path]:
    """List the `.spacy` files of a split of a corpus, which may have none.

    RAISES (InputError): they aren't those that the merge lists.
    """
    folder = corpus / split
    return find_partitions(folder) if any(folder.glob("*.spacy")) else []


def read_partition(file: Path) -> bytes:
    """Read a `.spacy` file.

    RAISES (InputError): it isn't what the merge that lists it has written.
    """
    folder = file.parent.resolve()
    listed = _listed(folder) or {}
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        check_pinned(file.parent.parent)
        raise InputError(f"{file}: there is no such file any more") from error
    expected = listed.get(f"{folder.name}/{file.name}")
    if expected and hashlib.sha256(content).hexdigest() != expected:
        check_pinned(folder.parent)
        raise InputError(f"{file}: it has changed since {folder.parent / MANIFEST} was written; run the merge again")
    return content


def _listed(split: Path) -> Mapping[str, str] | None:
    """Return the digests that the manifest beside a folder lists, by path from there; None if no merge made it.

    RAISES (InputError): a merge was killed while it replaced them.
    """
    corpus = split.resolve().parent
    if content := _PINNED.get(corpus / MANIFEST):
        return _digests_in(content)
    if any((corpus / name).exists() for name in ("labels", "tokenizer.json")):  # which a merge writes, too
        check_merged(corpus)
    return _digests_in((corpus / MANIFEST).read_bytes()) if (corpus / MANIFEST).is_file() else None


@lru_cache(maxsize=8)
def _digests_in(content: bytes) -> Mapping[str, str] | None:
    """Find the digests of partitions in a manifest; None if it is something else."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    digests = found.get("partitions") if isinstance(found, dict) else None
    return digests if isinstance(digests, dict) else None


class AnnotatorPair(msgspec.Struct):
    """How far two annotators agree on a label.

    one, other (str): their names; of a data set that names none, the data set's.
    texts (int): those that both annotated.
    spans (int): those of the one plus those of the other.
    f (float | None): F of one against the other; None if neither marked anything.
    kappa (float | None): Cohen's, over tokens in and out of spans; None if chance alone would have them agree.
    """

    label: str
    one: str
    other: str
    texts: int
    spans: int
    f: float | None = None
    kappa: float | None = None


def read_annotators(corpus: Path) -> list[AnnotatorPair]:
    """Read how far annotators agree; none if there is no such file."""
    check_merged(corpus)
    file = corpus / ANNOTATORS
    return msgspec.json.decode(file.read_bytes(), type=list[AnnotatorPair]) if file.is_file() else []
