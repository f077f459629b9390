"""Spans that lost: to a rejection, to an overlapping span, or to the tokenizer.

Each becomes a task that Prodigy can show, with what it lost to:

    {"text": "Add 5 mL", "spans": [{"start": 4, "end": 8, "label": "Amount", "claim": "accept", "datasets": ["amount"],
     "lost": true}, …], "_input_hash": …, "_task_hash": …,
     "meta": {"reason": "nested", "doc": "p1.txt", "from": "amount.jsonl:7, device.jsonl:7"}}
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from labelwise.common.spans import SpanKey
from labelwise.corpus.tasks import input_hash, task_hash


class Claim(NamedTuple):
    """A span that data sets accept or reject."""

    span: SpanKey
    answer: Literal["accept", "reject"]
    datasets: list[str]


class LostSpan(NamedTuple):
    """A span that lost.

    reason (str): "outvoted", "accept/reject", "same span", "nested", "crossing" or "no token boundary".
    kept (Claim | None): what it lost to.
    """

    reason: str
    lost: Claim
    kept: Claim | None


def lost_span_tasks(
    text: str, lost: Sequence[LostSpan], places: Sequence[tuple[str, str, int]] = (), name: str = ""
) -> Iterator[bytes]:
    """Yield lines of JSON, tasks that Prodigy can show: each span that lost, and what it lost to.

    places, name: see `one_text.Merged`; the files and lines of the data sets that disagree are in `meta`.
    """
    text_hash = input_hash(text) if lost else 0
    for one in sorted(lost, key=lambda one: (one.lost.span, one.reason)):
        datasets = {dataset for claim in (one.lost, one.kept) if claim for dataset in claim.datasets}
        files = [f"{file}:{line}" if line else file for dataset, file, line in places if dataset in datasets]
        meta = {"doc": name, "from": ", ".join(dict.fromkeys(files))}
        yield _lost_span_task(text, text_hash, one, {key: value for key, value in meta.items() if value})


def _lost_span_task(text: str, text_hash: int, one: LostSpan, meta: dict[str, str]) -> bytes:
    spans = [
        {
            "start": claim.span[0],
            "end": claim.span[1],
            "label": claim.span[2],
            "claim": claim.answer,
            "datasets": claim.datasets,
            "lost": claim is one.lost,
        }
        for claim in (one.lost, one.kept)
        if claim
    ]
    task = {
        "text": text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, spans),
        "spans": spans,
        "meta": {"reason": one.reason, **meta},
    }
    return msgspec.json.encode(task) + b"\n"
