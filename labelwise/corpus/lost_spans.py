"""Find the spans that lost to the tokenizer, to another span, or to a vote, each with its datasets and places."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.base.text import SpanKey
from labelwise.corpus.queries import LOST, where
from labelwise.corpus.tables import Group


class AssertedSpan(NamedTuple):
    """A span that datasets accept or reject, with the files and lines of their answers."""

    span: SpanKey
    verdict: str
    datasets: list[str]
    places: list[str]


class LostSpan(NamedTuple):
    """A span of a text that lost.

    kept (AssertedSpan | None): the winner; None if the span lost to the tokenizer.
    learnt (bool): a head for its label learns the span, though it isn't an entity.
    """

    text: str
    reason: str
    learnt: bool
    lost: AssertedSpan
    kept: AssertedSpan | None = None


def find_lost(group: Group) -> Iterator[LostSpan]:
    """Yield the spans that lost, text by text, sorted."""
    texts = pc.unique(where(group.spans, "reason", LOST)["text"])
    rows = group.rows.filter(pc.is_in(group.rows["text"], texts))
    kinds = {(row["text"], row["row"]): row["kind"] for row in rows.select(["text", "row", "kind"]).to_pylist()}
    spans = group.spans.filter(pc.is_in(group.spans["text"], texts)).to_pylist()
    for text, given in groupby(spans, lambda span: str(span["text"])):
        found = [*given]
        asserted: dict[int, list[dict[str, Any]]] = {number: [span] for number, span in enumerate(found)}
        for span in found:
            if span["reason"] == Reason.DUPLICATE:
                asserted[span["winner"]].append(span)
        lost = []
        for number, one in enumerate(found):
            if one["reason"] in LOST:
                # Only answers to complete tasks have a vote.
                voting = ("complete",) if one["reason"] == Reason.OUTVOTED else ("complete", "binary", "decision")
                claims = [
                    [span for span in asserted[who] if kinds[text, span["row"]] in voting]
                    for who in (number, one["winner"])
                    if who is not None
                ]
                lost.append(LostSpan(text, one["reason"], one["learnt"], *map(_assert, claims)))
        yield from sorted(lost, key=lambda one: (one.lost.span, one.reason))


def _assert(spans: Sequence[Mapping[str, Any]]) -> AssertedSpan:
    """Collect the datasets and places of a span."""
    first = spans[0]
    places = dict.fromkeys(f"{span['file']}:{span['line']}" for span in spans)
    datasets = sorted({span["dataset"] for span in spans})
    return AssertedSpan((first["start"], first["end"], first["label"]), first["verdict"], datasets, [*places])
