"""Write a demo corpus: English-looking texts of six domains with up to twenty labels.

The same string can be a person, a place, a company, a month or no entity. Only the sentence tells a judge from a
doctor, and a dose from a concentration, and sometimes it doesn't. Most names are composed of parts, so unseen texts
have unseen names.

1. A document belongs to one domain; `random.Random(f"{seed}/{index}")` alone decides it.
2. The slots of its templates are filled, rule by rule; see `grammar`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from random import Random
from string import Formatter
from typing import NamedTuple

from labelwise.demo.grammar import DOMAINS, LABELS, RULES

_alternatives = {name: rest.split("|") for name, rest in re.findall(r"(\w+) = (.*?)(?=  \w+ = |\n)", RULES)}
_sentences = {domain: block.strip().split("\n") for domain, block in DOMAINS.items()}

Span = tuple[int, int, str]


class DemoDoc(NamedTuple):
    """One text with its entities, sorted, not overlapping; offsets are code points, `end` exclusive."""

    path: str
    text: str
    spans: list[Span]


def make_doc(index: int, *, seed: int = 0, labels: Iterable[str] = LABELS, words: int | None = None) -> DemoDoc:
    """Make one document of about `words` words, or 100 to 300; equal arguments give equal documents."""
    labels = frozenset(labels)
    rng = Random(f"{seed}/{index}")
    domain = rng.choice(list(_sentences))
    target = rng.randint(100, 300) if words is None else words
    heading, *sentences = _sentences[domain]
    memory: dict[str, str] = {}
    text, marks = "", []
    count, template, separator = 0, heading, "\n"
    while count < target:
        sentence, found = _expand(template, rng, memory)
        marks += [(start + len(text), end + len(text), label) for start, end, label in found]
        text += sentence[0].upper() + sentence[1:] + separator
        count += count_words(sentence)
        template, separator = rng.choice([other for other in sentences if other != template]), rng.choice("    \n")
    spans = [mark for mark in marks if mark[2] in labels]
    return DemoDoc(f"{domain}/doc-{index:05}.txt", text[:-1] + "\n", spans)


def add_noise(doc: DemoDoc, share: float, *, seed: int = 0, labels: Sequence[str] = LABELS) -> DemoDoc:
    """Corrupt a share of the spans, like a tired annotator; the text is unchanged.

    Spans are removed, or get another label or boundary (one word more or less at the end); for each removed span, a
    wrong one is added.
    """
    rng = Random(f"noise/{seed}/{doc.path}")
    spans: list[Span] = []
    for number, (start, end, label) in enumerate(doc.spans):
        following = doc.spans[number + 1][0] if number + 1 < len(doc.spans) else len(doc.text)
        if rng.random() >= share:
            spans.append((start, end, label))
            continue
        how = rng.choice(("left out", "other label", "other boundaries"))
        if how == "other boundaries":
            spans.append((start, _other_end(doc.text, start, end, following), label))
        elif how == "other label" and len(labels) > 1:
            spans.append((start, end, rng.choice([other for other in labels if other != label])))
    words = [match.span() for match in re.finditer(r"\b[^\W\d_]{3,}\b", doc.text)]
    for start, end in words:
        is_free = not any(first < end and start < last for first, last, _ in doc.spans)
        if is_free and rng.random() < share / 3 * len(doc.spans) / len(words):
            spans.append((start, end, rng.choice(list(labels))))
    return doc._replace(spans=sorted(spans))


def _other_end(text: str, start: int, end: int, following: int) -> int:
    """Move the end of a span past the next word if possible, or else before its last word."""
    longer = re.compile(r" \w+").match(text, end)
    if longer and longer.end() <= following:
        return longer.end()
    return text.rfind(" ", start, end) if " " in text[start:end] else end


def count_words(text: str) -> int:
    """Count words approximately as spaCy does, with punctuation: "Zoë paid $45." has five."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def _expand(template: str, rng: Random, memory: dict[str, str]) -> tuple[str, list[Span]]:
    """Fill a template's slots; return the text with the marked spans in it."""
    text, marks = "", []
    for literal, name, inner in _parse(template):
        text += literal
        if not name:
            continue
        if inner:
            piece, spans = _expand(inner, rng, memory)
            spans = [(0, len(piece), name)]
        elif name in memory:
            piece, spans = memory[name], []
        else:
            piece, spans = _expand(rng.choice(_alternatives[name]), rng, memory)
            if name.startswith("the_"):
                memory[name] = piece
        marks += [(start + len(text), end + len(text), label) for start, end, label in spans]
        text += piece
    return text, marks


@cache
def _parse(template: str) -> list[tuple[str, str, str]]:
    """Split a template into (literal, rule or label of the slot after it, template in the slot)."""
    return [(literal, name or "", inner or "") for literal, name, inner, _ in Formatter().parse(template)]
