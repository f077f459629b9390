"""Read the Docs of a corpus together with the merge's tables; both are sorted by key."""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from pathlib import Path

from labelwise.corpus.docbin_reader import StoredDoc, read_docs, read_stored_docs
from labelwise.corpus.manifest import SPLITS, partitions_of
from labelwise.corpus.tables import Group, read_columns, read_groups


def find_doc(corpus: Path, split: str, key: str) -> StoredDoc | None:
    """Find the Doc of a text, even in a stopped corpus, by binary search over sorted partitions."""
    partitions = partitions_of(corpus, split, stopped=True)
    number = bisect_right(partitions, key, key=lambda file: next(read_stored_docs(file)).key) - 1
    docs = read_stored_docs(partitions[number]) if number >= 0 else iter(())
    return next((doc for doc in docs if doc.key == key), None)


def read_groups_with_docs(
    corpus: Path, *, merged: bool = True, stopped: bool = False, only: Collection[str] = ()
) -> Iterator[tuple[Group, Iterator[tuple[str, StoredDoc]]]]:
    """Yield row groups of the tables, each with its Docs by key.

    Docs are read as they are consumed, one partition of each split in memory.

    only (Collection[str]): columns to read, with "text" and "split"; empty for all.
    """
    docs = {split: read_docs(corpus, split, stopped=stopped) for split in SPLITS}
    for group in read_groups(corpus, merged=merged, stopped=stopped, columns=only):
        of_group = ((key, next(docs[split])) for key, split in read_columns(group.texts, "text", "split") if split)
        yield group, of_group
        for _ in of_group:  # the remaining Docs
            pass
