"""Tell people which data sets may be exports of one, at two times, and give them the entry that makes one of them.

A later export has most spans of the earlier one, and so may another annotator's file. Only people know which it is.
"""

from collections.abc import Iterator, Set
from pathlib import Path

import msgspec

from labelwise.sources.declarations import Declaration
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import Task


def digest_spans(task: Task) -> Iterator[int]:
    """Yield a digest of each span with its text and its annotator, but without its label, which may be renamed."""
    for span in task.spans or ():
        yield hash((task.text, str(task.annotator_id), str(span.start), str(span.end)))


def spans_of(entry: Declaration, folder: Path) -> set[int]:
    """Digest the spans of the files that an entry names, in a folder."""
    files = [folder / path for path in entry.paths if (folder / path).is_file()]
    return {
        span
        for file in files
        for item in read_items(file, key=entry.spans or entry.text)
        if item.task
        for span in digest_spans(item.task)
    }


def may_be_later(spans: Set[int], earlier: Set[int]) -> bool:
    """Tell whether spans have half of the earlier ones among them, or more."""
    return 2 * len(spans & earlier) >= len(earlier) > 0


def join_entries(entry: Declaration, later: Declaration) -> Declaration:
    """Make one entry of two: the files of both, and a label that has another name in the later one by that."""
    joined = msgspec.structs.replace(entry, path=[*entry.paths, *later.paths])
    if "auto" in (entry.labels, later.labels):
        return msgspec.structs.replace(joined, labels="auto")
    labels = dict.fromkeys(entry.rename.get(label, label) for label in later.labels)
    gone = [label for label in entry.labels if label not in labels]
    new = [label for label in labels if label not in entry.labels]
    if len(gone) == len(new) == 1:
        return joined.rename_label(*gone, *new)
    return msgspec.structs.replace(joined, labels=(*entry.labels, *new))
