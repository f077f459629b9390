"""The spans of a revision's tables, and how many of them are right by the gold of another."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from labelwise.evaluate.tables import Tables

Span = tuple[str, int, int, str]  # key of the text, start and end, label
KeyLabel = tuple[str, str]


class RevisionSpans(NamedTuple):
    """What the tables of an evaluation have about some labels.

    keys (set[str]): of all texts.
    gold, rejected (set[Span]): those that annotators accepted and rejected.
    entities, found (set[Span]): those that the pipeline predicted: its entities, and all, which may overlap.
    partial, unknown (set[KeyLabel]): the labels of which single spans of a text were judged, or none.
    """

    keys: set[str]
    gold: set[Span]
    rejected: set[Span]
    entities: set[Span]
    found: set[Span]
    partial: set[KeyLabel]
    unknown: set[KeyLabel]

    def differing(self, other: "RevisionSpans") -> Iterator[str]:
        """Yield the keys of texts that aren't annotated alike."""
        for name in ("gold", "rejected", "partial", "unknown"):
            yield from (item[0] for item in getattr(self, name) ^ getattr(other, name))


def read_spans(tables: Tables, labels: Collection[str]) -> RevisionSpans:
    """Read the spans of an evaluation that have some labels.

    RAISES (InputError): a file isn't what an evaluation writes.
    """
    read = RevisionSpans(*(set() for _ in RevisionSpans._fields))
    columns = [f"{side}_{name}" for side in ("gold", "predicted") for name in ("start", "end", "label")]
    for texts, pairs in tables.groups(
        ("key", "partial", "unknown", "rejected"), ("key", "kind", *columns, "probability", "gold_probability")
    ):
        for row in texts.to_pylist():
            read.keys.add(row["key"])
            read.rejected.update((row["key"], span["start"], span["end"], span["label"]) for span in row["rejected"])
            read.partial.update((row["key"], label) for label in row["partial"])
            read.unknown.update((row["key"], label) for label in row["unknown"])
        for row in pairs.to_pylist():
            gold, predicted = ((row["key"], *(row[name] for name in side)) for side in (columns[:3], columns[3:]))
            read.gold.update([gold] if row["gold_label"] else [])
            read.entities.update([predicted] if row["predicted_label"] and row["kind"] != "nested" else [])
            read.found.update([predicted] if row["probability"] is not None else [])
            read.found.update([gold] if row["gold_probability"] is not None else [])
    of_labels: list[Any] = [{item for item in items if item[-1] in labels} for items in read[1:]]
    read = RevisionSpans(read.keys, *of_labels)
    return read if read.found else read._replace(found=read.entities)


def count_spans(
    found: Collection[Span], truth: RevisionSpans, keys: Sequence[str], labels: Sequence[str]
) -> np.ndarray:
    """Count the spans of each text: right, predicted and gold ones, of the shape (texts, labels, 3).

    Predictions that can't be judged aren't counted: a label's, if nobody looked for it in the text; where single spans
    were judged, all others.

    truth (RevisionSpans): whose gold counts.
    """

    def judged(span: Span) -> bool:
        """Tell whether a span can be judged."""
        about = (span[0], span[3])
        known = about not in truth.partial or span in truth.gold or span in truth.rejected
        return known and about not in truth.unknown

    gold, predicted = set(filter(judged, truth.gold)), set(filter(judged, found))
    row, place = ({name: number for number, name in enumerate(names)} for names in (keys, labels))
    counts = np.zeros((len(keys), len(labels), 3), np.int32)
    for column, spans in enumerate((predicted & gold, predicted, gold)):
        for key, _, _, label in spans:
            if key in row:
                counts[row[key], place[label], column] += 1
    return counts
