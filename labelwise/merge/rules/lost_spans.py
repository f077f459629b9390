"""Spans that lost: to a rejection, to an overlapping span, or to the tokenizer.

Each becomes a task that Prodigy can show, with its winner:

    {"text": "Add 5 mL", "spans": [{"start": 4, "end": 8, "label": "Amount", "claim": "accept", "datasets": ["amount"],
     "lost": true}, …], "_input_hash": …, "_task_hash": …,
     "meta": {"reason": "nested", "learnt": true, "doc": "p1.txt", "from": "amount.jsonl:7, device.jsonl:7"}}
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from labelwise.base.text import SpanKey
from labelwise.corpus.tasks import input_hash, task_hash


class Claim(NamedTuple):
    """A span that data sets accept or reject."""

    span: SpanKey
    answer: Literal["accept", "reject"]
    datasets: list[str]


class LostSpan(NamedTuple):
    """A span that lost.

    reason (str): "outvoted", "accept/reject", "same span", "nested", "crossing" or "no token boundary".
    kept (Claim | None): its winner.
    learnt (bool): it isn't an entity, but a head for its label learns it as well: it overlaps other labels alone.
    """

    reason: str
    lost: Claim
    kept: Claim | None
    learnt: bool = False


def lost_span_tasks(
    text: str, lost: Sequence[LostSpan], places: Sequence[tuple[str, str, int]] = (), name: str = ""
) -> Iterator[bytes]:
    """Yield lines of JSON, tasks that Prodigy can show: each span that lost, and its winner.

    places, name: see `one_text.Merged`; the files and lines of the data sets that disagree are in `meta`.
    """
    for one in sorted(lost, key=lambda one: (one.lost.span, one.reason)):
        claims = [claim for claim in (one.lost, one.kept) if claim]
        spans = [
            {
                "start": claim.span[0],
                "end": claim.span[1],
                "label": claim.span[2],
                "claim": claim.answer,
                "datasets": claim.datasets,
                "lost": claim is one.lost,
            }
            for claim in claims
        ]
        datasets = {dataset for claim in claims for dataset in claim.datasets}
        files = [place for place in places if place[0] in datasets]
        yield review_task(text, spans, {"reason": one.reason, "learnt": one.learnt, "doc": name}, files)


def review_task(
    text: str, spans: list[dict[str, Any]], meta: Mapping[str, str | bool], places: Sequence[tuple[str, str, int]]
) -> bytes:
    """Make a line of JSON, a task that Prodigy can show.

    places: its files and lines become `meta.from`; an empty value isn't written.
    """
    files = dict.fromkeys(f"{file}:{line}" if line else file for _, file, line in places)
    meta = {key: value for key, value in (*meta.items(), ("from", ", ".join(files))) if value}
    text_hash = input_hash(text)
    hashes = {"_input_hash": text_hash, "_task_hash": task_hash(text_hash, spans)}
    return msgspec.json.encode({"text": text, **hashes, "spans": spans, "meta": meta}) + b"\n"
