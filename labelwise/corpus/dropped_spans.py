"""Find spans dropped by the tokenizer, another span, or a vote, with datasets and places."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.base.text import SpanKey
from labelwise.corpus.queries import DROPPED, where
from labelwise.corpus.tables import Group


class AssertedSpan(NamedTuple):
    """A span that datasets accept or reject, with the files and lines of their answers."""

    span: SpanKey
    verdict: str
    datasets: list[str]
    places: list[str]


class DroppedSpan(NamedTuple):
    """A dropped span, and the kept one, if any; a per-label head may learn it, although it isn't an entity."""

    text: str
    reason: str
    learned: bool
    dropped: AssertedSpan
    kept: AssertedSpan | None = None


def find_dropped(group: Group) -> Iterator[DroppedSpan]:
    """Yield the dropped spans, text by text, sorted."""
    texts = pc.unique(where(group.spans, "reason", DROPPED)["text"])
    rows = group.rows.filter(pc.is_in(group.rows["text"], texts))
    kinds = {(row["text"], row["row"]): row["kind"] for row in rows.select(["text", "row", "kind"]).to_pylist()}
    spans = group.spans.filter(pc.is_in(group.spans["text"], texts)).to_pylist()
    for text, given in groupby(spans, lambda span: str(span["text"])):
        spans_of_text = [*given]
        asserted: dict[int, list[dict[str, Any]]] = {number: [span] for number, span in enumerate(spans_of_text)}
        for span in spans_of_text:
            if span["reason"] == Reason.DUPLICATE:
                asserted[span["kept_span"]].append(span)
        dropped = []
        for number, one in enumerate(spans_of_text):
            if one["reason"] in DROPPED:
                # Only answers to complete tasks have a vote.
                voting = ("complete",) if one["reason"] == Reason.OUTVOTED else ("complete", "binary", "decision")
                claims = [
                    [span for span in asserted[who] if kinds[text, span["row"]] in voting]
                    for who in (number, one["kept_span"])
                    if who is not None
                ]
                dropped.append(DroppedSpan(text, one["reason"], one["learned"], *map(_assert, claims)))
        yield from sorted(dropped, key=lambda one: (one.dropped.span, one.reason))


def _assert(spans: Sequence[Mapping[str, Any]]) -> AssertedSpan:
    first = spans[0]
    places = dict.fromkeys(f"{span['file']}:{span['line']}" for span in spans)
    datasets = sorted({span["dataset"] for span in spans})
    return AssertedSpan((first["start"], first["end"], first["label"]), first["verdict"], datasets, [*places])
