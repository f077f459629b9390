"""Prodigy's tasks: keys, hashes, tokens; file names of labels."""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import murmurhash
import srsly

from labelwise.base.text import SpanKey

if TYPE_CHECKING:
    from spacy.tokens import Doc

VERDICTS = "verdicts"  # names the file of verdicts on single spans


def input_hash(text: str) -> int:
    """Compute Prodigy's `_input_hash` of a task with only a text: 32 bits, signed, seed 0."""
    return murmurhash.hash("text=" + srsly.json_dumps(text, sort_keys=True), 0)


def task_hash(text_hash: int, spans: list[dict[str, Any]]) -> int:
    """Compute Prodigy's `_task_hash` of a task with only a text and spans."""
    return murmurhash.hash(str(text_hash) + "spans=" + srsly.json_dumps(spans, sort_keys=True), 0)


def task_hashes(text: str, spans: list[dict[str, Any]]) -> dict[str, int]:
    """Compute both hashes, by key."""
    text_hash = input_hash(text)
    return {"_input_hash": text_hash, "_task_hash": task_hash(text_hash, spans)}


def make_task(text: str, shown: Iterable[SpanKey] = (), **keys: Any) -> dict[str, Any]:
    """Make a task with Prodigy's hashes."""
    spans = [{"start": start, "end": end, "label": label} for start, end, label in shown]
    return {"text": text, **task_hashes(text, spans), "_is_binary": False, **keys}


def task_tokens(doc: "Doc", edges: Iterable[int] = ()) -> list[dict[str, Any]]:
    """List a task's `tokens`, cut at the `edges` of spans: https://prodi.gy/docs/api-interfaces#ner_manual"""
    edges = sorted({*edges})
    tokens: list[dict[str, Any]] = []
    for token in doc:
        end = token.idx + len(token)
        cuts = [token.idx, *edges[bisect_right(edges, token.idx) : bisect_left(edges, end)], end]
        for first, last in pairwise(cuts):
            space = last == end and bool(token.whitespace_)
            text = token.text[first - token.idx : last - token.idx]
            tokens.append({"text": text, "start": first, "end": last, "id": len(tokens), "ws": space})
    return tokens


def place_in_tokens(spans: Iterable[dict[str, Any]], tokens: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the numbers of first and last tokens to aligned spans, as Prodigy does."""
    tokens = [*tokens]
    first = {token["start"]: token["id"] for token in tokens}
    last = {token["end"]: token["id"] for token in tokens}
    return [
        {**span, "token_start": first[span["start"]], "token_end": last[span["end"]]}
        if span["start"] in first and span["end"] in last
        else span
        for span in spans
    ]


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a file name for each label, safe on every file system, even if it ignores case.

    >>> file_names(["Amount-Unit", "N", "n"])
    {'Amount-Unit': 'Amount-Unit.jsonl', 'N': 'N-8ce86a6a.jsonl', 'n': 'n-1b16b1df.jsonl'}
    """
    slugs = {label: re.sub(r"[^A-Za-z0-9_-]+", "_", label)[:100] for label in labels}
    used = Counter(slug.lower() for slug in slugs.values()) + Counter(["problems", VERDICTS])
    names = {}
    for label, slug in slugs.items():
        plain = slug == label and used[slug.lower()] == 1
        names[label] = f"{slug}{'' if plain else '-' + hashlib.sha256(label.encode()).hexdigest()[:8]}.jsonl"
    return names
