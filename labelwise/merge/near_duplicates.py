"""Find nearly equal texts, to prevent testing on training texts.

The similarity of two texts is the Jaccard index of their word trigrams, NFKC-normalized and case-folded. MinHash
estimates it for pairs that share a band of their signatures: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets,
chapter 3 (http://www.mmds.org). With 16 bands of 8 numbers, it finds a pair of similarity 0.8 with a probability of
95%, one of 0.9 with more than 99.9%.

Signatures are on disk; memory holds the pairs, and 16 bytes per text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from labelwise.corpus.manifest import SPLITS, Split
from labelwise.merge.buckets import Text as BucketText
from labelwise.merge.partition import MergeJob
from labelwise.merge.rules.splits import declared_split, excluded_splits

BANDS, ROWS, SHINGLE = 16, 8, 3
# If at most this many texts share a band, all pairs are compared; else neighbors, and each text with the first.
ALL_PAIRS = 10
WORDS = re.compile(r"\w+")

# A text's key, the place of its first task, the split that its datasets declare, from 1 (0: none), and the splits that
# its hash doesn't choose (a bit each).
PLACE = [("key", "V12"), ("source", "<u4"), ("line", "<u4"), ("declared", "<u4"), ("without", "<u4")]
SIGNED = np.dtype([*PLACE, ("signature", "<u4", (BANDS * ROWS,))])
PAIR = np.dtype([("one", PLACE), ("other", PLACE)])
# A text's key, the key that its group hashes, and the group's splits, as in PLACE.
GROUPED = np.dtype([("key", "V12"), ("unit", "V12"), ("declared", "<u4"), ("without", "<u4")])
Rows = npt.NDArray[np.void]


class Text(NamedTuple):
    """A text: key, source and line of its first task, splits that its datasets declare and exclude."""

    key: bytes
    source: int
    line: int
    declared: Split | None
    without: frozenset[Split] = frozenset()

    @classmethod
    def read(cls, row: Rows) -> "Text":
        """Convert a row of a file."""
        return cls(row["key"].tobytes(), int(row["source"]), int(row["line"]), *read_splits(row))


class NearPair(NamedTuple):
    """Two nearly equal texts; the similarity is estimated in steps of 1/128."""

    similarity: float
    one: Text
    other: Text


def sign_range(job: MergeJob, folder: Path) -> str:
    """Write the signatures of a range of texts; return the file's name."""
    name = f"signatures-{job.number}"
    with (folder / name).open("wb") as file:
        for text in job.texts(folder):  # a signature takes ten times as much as a list
            file.write(np.array((*write_place(find_place(job, text)), sign(text.text)), SIGNED).tobytes())
    return name


def find_place(job: MergeJob, text: BucketText) -> Text:
    """Return a text's place, and the splits that its datasets declare and exclude."""
    source, task = next(text.tasks())
    declares = any(source.dataset.split != "auto" for source in job.sources)
    answers = job.answers(text) if declares else ()
    return Text(text.key, source, task.line, declared_split(answers), frozenset(excluded_splits(answers)))


def write_place(text: Text) -> tuple[bytes, int, int, int, int]:
    """Return a text's values for a row of a file."""
    declared = SPLITS.index(text.declared) + 1 if text.declared else 0
    return text.key, text.source, text.line, declared, sum(1 << SPLITS.index(split) for split in text.without)


def read_splits(row: Rows) -> tuple[Split | None, frozenset[Split]]:
    """Return a row's declared split, and the splits that its hash doesn't choose."""
    declared = SPLITS[int(row["declared"]) - 1] if row["declared"] else None
    return declared, frozenset(split for place, split in enumerate(SPLITS) if row["without"] >> place & 1)


def sign(text: str) -> list[int]:
    """Compute a text's MinHash signature. Composed letters keep words from ending at an accent."""
    words = WORDS.findall(unicodedata.normalize("NFKC", text).casefold()) or [text]
    minhash = RMinHash(BANDS * ROWS, 0)
    minhash.update([" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1))])
    return minhash.digest()


def find_pairs(files: Sequence[Path], threshold: float) -> list[NearPair]:
    """Find pairs with an estimated similarity of at least `threshold`, most similar first."""
    starts = np.cumsum([0, *(file.stat().st_size // SIGNED.itemsize for file in files)])
    total = int(starts[-1])
    candidates = np.zeros(0, np.int64)
    for band in range(BANDS):
        pairs = np.fromiter((one * total + other for one, other in _share_band(files, band, total)), np.int64)
        candidates = np.union1d(candidates, pairs)
    pairs_found = []
    for code in candidates.tolist():
        one, other = (_text(files, starts, number) for number in divmod(code, total))
        similarity = float((one["signature"] == other["signature"]).mean())
        if similarity >= threshold:
            pairs_found.append(NearPair(similarity, Text.read(one), Text.read(other)))
    return sorted(pairs_found, key=lambda pair: (-pair.similarity, pair.one.key, pair.other.key))


def _text(files: Sequence[Path], starts: npt.NDArray[np.int64], number: int) -> Rows:
    file = int(np.searchsorted(starts, number, side="right")) - 1
    offset = (number - int(starts[file])) * SIGNED.itemsize
    row: Rows = np.fromfile(files[file], SIGNED, 1, offset=offset)[0]
    return row


def _share_band(files: Sequence[Path], band: int, total: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of texts' numbers with equal bands, the lower first."""
    hashes = hash_band(files, band, total)
    order = hashes.argsort()
    hashes.sort()
    same = np.flatnonzero(hashes[1:] == hashes[:-1])  # places whose hash is that of the next
    for places in np.split(same, np.flatnonzero(np.diff(same) > 1) + 1) if len(same) else ():
        texts = sorted(order[places[0] : places[-1] + 2].tolist())
        if len(texts) <= ALL_PAIRS:
            yield from combinations(texts, 2)
        else:
            yield from pairwise(texts)
            yield from ((texts[0], other) for other in texts[2:])


def hash_band(files: Sequence[Path], band: int, total: int) -> npt.NDArray[np.uint64]:
    """Hash one band of each signature. Collisions are harmless: candidates are compared in full."""
    columns = slice(band * ROWS, (band + 1) * ROWS)
    factors = np.random.default_rng(0).integers(1, 2**63, ROWS, dtype=np.uint64) | np.uint64(1)
    hashes, end = np.zeros(total, np.uint64), 0
    for file in files:
        numbers = np.fromfile(file, SIGNED)["signature"][:, columns].astype(np.uint64)
        hashes[end : (end := end + len(numbers))] = (numbers * factors).sum(axis=1)
    return hashes


def group_texts(pairs: Iterable[NearPair], parts: Rows) -> Rows:
    """Join pairs that share a text into groups; return each text's group (GROUPED), sorted by key.

    If texts of a group declare several splits, test comes before dev, and dev before train.

    parts (np.ndarray): documents with their parts (PAIR). A group of parts joins the group of its first document, by
        key, and never joins two documents' groups.
    """
    near = np.array([(write_place(pair.one), write_place(pair.other)) for pair in pairs], PAIR)
    places = np.concatenate([near["one"], near["other"], parts["one"], parts["other"]])
    keys, first, numbers = np.unique(places["key"], return_index=True, return_inverse=True)
    parents = [*range(len(keys))]

    def find(text: int) -> int:
        while parents[text] != text:
            parents[text] = text = parents[parents[text]]
        return text

    for pair in numbers[: 2 * len(near)].reshape(2, -1).T.tolist():
        one, other = sorted(map(find, pair))
        parents[other] = one
    groups = np.array([find(text) for text in range(len(keys))], np.int64)
    documents, inside = numbers[2 * len(near) :].reshape(2, -1)
    order = documents.argsort(kind="stable")
    documents, inside = groups[documents[order]], groups[inside[order]]
    free = ~np.isin(inside, documents)
    joining, at = np.unique(inside[free], return_index=True)
    into = np.arange(len(keys))
    into[joining] = documents[free][at]
    groups = into[groups]
    declared, without = np.zeros((2, len(keys)), np.uint32)
    np.maximum.at(declared, groups, places["declared"][first])
    np.bitwise_or.at(without, groups, places["without"][first])
    rows = np.empty(len(keys), GROUPED)
    rows["key"], rows["unit"], rows["declared"], rows["without"] = keys, keys[groups], declared[groups], without[groups]
    return rows
