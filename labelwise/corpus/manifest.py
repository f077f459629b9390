"""The manifest of a merged corpus: settings and content.

A merge deletes the manifest first and writes it last. Readers refuse a corpus without a manifest, and all but `why` one
stopped by an import check. A `Partition` carries its digest from the manifest, so its reader gets these bytes or an
error, even if a merge replaces the corpus meanwhile.
"""

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import decode_json, encode_json

MANIFEST = "manifest.json"
TABLES = ("texts.parquet", "rows.parquet", "spans.parquet")  # the account of a merge; see `tables`
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


class SplitCounts(msgspec.Struct):
    """The texts of a split, their words, and a digest of the texts."""

    texts: int
    words: int
    digest: str


class Manifest(msgspec.Struct, kw_only=True):
    """A corpus's manifest.

    settings (dict): all that the corpus depends on besides the data, as JSON.
    labels (list[str]): sorted.
    partitions (dict[str, str]): SHA-256 of each `.spacy` file's uncompressed content, by path in the corpus, such as
        "train/part-00000.spacy".
    stops (list[str]): import checks that stop later stages, with their datasets.
    """

    format: Literal[3] = 3
    settings: dict[str, Any]
    labels: list[str]
    datasets: dict[str, int]
    declared: dict[str, tuple[str, ...]] = {}
    splits: dict[Split, SplitCounts]
    partitions: dict[str, str]
    stops: list[str] = []


class RawTexts(msgspec.Struct):
    """Raw texts annotated by a teacher, for a student; `raw` in the settings.

    teacher, pipeline (str): teacher's folder, and digest of its files.
    corpus (str): digest of the merged corpus's partitions.
    labels (list[str]): labels that the raw texts are complete for.
    left_out (dict[str, int]): omitted raw texts by reason.
    """

    teacher: str
    pipeline: str
    corpus: str
    labels: list[str]
    texts: int
    words: int
    left_out: dict[str, int]


class Partition(NamedTuple):
    """A `.spacy` file, and its SHA-256 in the manifest; empty without a merge."""

    file: Path
    digest: str = ""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a corpus."""
    (folder / MANIFEST).write_bytes(encode_json(manifest, indent=1))


def read_manifest(corpus: Path, *, stopped: bool = False) -> Manifest:
    """Read the manifest of a corpus.

    stopped (bool): accept a corpus that an import check stops.
    RAISES (InputError): if it is missing, by another version, or stopped by an import check.
    """
    try:
        content = (corpus / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{corpus / MANIFEST}: there is no such file; run the merge to completion") from error
    problem = f"{corpus / MANIFEST}: not what this version's merge writes"
    manifest = decode_json(content, Manifest, problem, "run the merge again")
    if manifest.stops and not stopped:
        raise InputError(
            f"{corpus}: unusable, because the merge found misread data: {', '.join(manifest.stops)}. Run "
            f"`python -m scripts.why {corpus}`, or the merge again, to see the fix"
        )
    return manifest


def digest_splits(corpus: Path, splits: Sequence[str]) -> str:
    """Digest the labels of a corpus, and the content of some splits."""
    manifest = read_manifest(corpus)
    files = sorted(item for item in manifest.partitions.items() if item[0].partition("/")[0] in splits)
    return hashlib.sha256(msgspec.json.encode([manifest.labels, files])).hexdigest()


def digest_partitions(partitions: Mapping[str, str]) -> str:
    """Digest the content of all splits, as metrics/merge.sha256 has it; see `Manifest.partitions`."""
    return hashlib.sha256(msgspec.json.encode(sorted(partitions.items()))).hexdigest()


def digest_merge(manifest: Manifest) -> str:
    """Digest the partitions of a merged corpus, or of the one that a student's corpus is made from."""
    return manifest.settings.get("raw", {}).get("corpus") or digest_partitions(manifest.partitions)


def is_corpus(folder: Path) -> bool:
    """Return whether a folder has the manifest of a merge."""
    try:
        read_manifest(folder)
    except InputError:
        return False
    return True


def read_split(split: Path) -> SplitCounts:
    """Read the size of a split, such as corpus/test."""
    folder = split.resolve()
    splits: dict[Any, SplitCounts] = {**read_manifest(folder.parent).splits}
    if folder.name not in splits:
        raise InputError(f"{split}: not a split of that corpus; give {' or '.join(splits)}")
    return splits[folder.name]


@contextmanager
def unchanged(corpus: Path) -> Iterator[None]:
    """On exit, raise if a merge replaced the corpus meanwhile, or is about to."""
    before = read_manifest(corpus)
    yield
    if not is_corpus(corpus) or read_manifest(corpus) != before:
        raise InputError(f"{corpus}: another merge replaced the corpus meanwhile; run the command again")


def find_partitions(split: Path) -> list[Partition]:
    """List the `.spacy` files of a folder, sorted; refuse an empty folder. See `partitions_of`."""
    if not (partitions := partitions_of(split.parent, split.name)):
        raise InputError(f"{split}: no .spacy file; run the merge, with a share for this split")
    return partitions


def partitions_of(corpus: Path, split: str, *, stopped: bool = False) -> list[Partition]:
    """List the `.spacy` files of a split, sorted; may be empty. Refuse others than the manifest's."""
    files = sorted((corpus / split).glob("*.spacy"))
    listed = _listed(corpus / split, stopped=stopped)
    if listed is None:
        return [Partition(file) for file in files]
    manifest = (corpus / split).resolve().parent / MANIFEST
    names = {file.name for file in files}
    for name in sorted(listed.keys() - names):
        raise InputError(
            f"{corpus / split / name}: there is no such file, but {manifest} lists it; run the merge again"
        )
    for name in sorted(names - listed.keys()):
        raise InputError(f"{corpus / split / name}: {manifest} doesn't list it; delete it, or run the merge again")
    return [Partition(file, listed[file.name]) for file in files]


def read_partition(partition: Partition) -> bytes:
    """Read and decompress a `.spacy` file; refuse one changed since its merge."""
    changed = f"{partition.file}: it has changed since it was merged; start again, or run the merge again"
    try:
        content = zlib.decompress(partition.file.read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{partition.file}: there is no such file any more; start again") from error
    except zlib.error as error:
        damaged = f"{partition.file}: not a .spacy file ({error}); make it again"
        raise InputError(changed if partition.digest else damaged) from error
    if partition.digest and hashlib.sha256(content).hexdigest() != partition.digest:
        raise InputError(changed)
    return content


def find_partition(file: Path) -> Partition:
    """Look up a `.spacy` file in its corpus's manifest, if any; refuse an unlisted file."""
    listed = _listed(file.parent)
    if listed is not None and file.name not in listed:
        raise InputError(f"{file}: the manifest of its corpus doesn't list it; delete it, or run the merge again")
    return Partition(file, listed[file.name] if listed else "")


def _listed(split: Path, *, stopped: bool = False) -> dict[str, str] | None:
    split = split.resolve()
    corpus = split.parent
    merged = any((corpus / name).exists() for name in ("labels", "tokenizer.json"))  # which a merge writes, too
    if not merged and not is_corpus(corpus):
        return None
    prefix = f"{split.name}/"
    listed = read_manifest(corpus, stopped=stopped).partitions.items()
    return {name.removeprefix(prefix): digest for name, digest in listed if name.startswith(prefix)}
