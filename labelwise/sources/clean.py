"""Validate raw values on input: a bad span is a separate problem, any other bad value counts as missing."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from labelwise.annotations import DOCUMENT, PREDICTED, Kind, Span, Task, Verdict
from labelwise.base.text import State, trim
from labelwise.sources.offsets import READINGS, says

ANSWERS: tuple[Verdict, ...] = ("accept", "reject", "ignore")


class RawSpan(msgspec.Struct, gc=False):
    """A raw span, undecoded (Any), so a bad span doesn't cost its task. A missing key is None.

    answer (Any): verdict on this span, in old binary data.
    pattern (Any): Prodigy's number of the matched pattern.
    rank (Any): the rank of a parse, by which `ner.teach` asked about one span, before it named its interface.
    place (tuple | None): file and line in a brat corpus, from `convert-brat`.
    """

    start: Any = None
    end: Any = None
    label: Any = None
    answer: Any = None
    text: Any = None
    pattern: Any = None
    rank: Any = None
    place: tuple[str, int] | None = msgspec.field(default=None, name="_labelwise_place")


def clean(
    line: int,
    text: str,
    spans: Iterable[RawSpan] | None = None,
    *,
    answer: Any = "accept",
    kind: Kind = "complete",
    who: Iterable[Any] = (),
    when: Any = None,
    review: bool = False,
    meta: Any = None,
    uncovered: Mapping[str, State] | None = None,
    offsets: str = "",
) -> Task:
    """Convert raw values to a task, with stripped spans and labels; a span that misquotes the text is unusable.

    offsets (str): name of the offsets' reading (READINGS); "" for code points.
    who (Iterable[Any]): candidates for the annotator's name: the first usable one counts.
    """
    usable, unusable = [], []
    length = len(text)
    read = READINGS[offsets] if offsets else None
    for span in spans or ():
        start, end, label, verdict = span.start, span.end, span.label, span.answer
        label = label.strip() if type(label) is str else label
        why, fits = "", tuple[str, ...]()
        if verdict is not None and verdict not in ANSWERS:
            verdict = "ignore"
        # The types are JSON's: True is no 1. Tables of numbers make 5.0 of 5, and sheets "5".
        whole = type(start) is int and type(end) is int
        if not whole:
            start, end = map(to_integer, (start, end))
            whole = type(start) is int and type(end) is int
        if read and whole:
            start, end = read(text, (start, end)) or (-1, -1)
        written = (start, end)
        if whole and 0 <= start < end <= length and type(label) is str and label:
            if text[start].isspace() or text[end - 1].isspace():
                start, end = trim(text, start, end)
            if (
                span.text
                and span.text != text[start:end]
                and type(span.text) is str
                and not says(text, [(start, end)], span.text)
            ):
                why = f": {span.text[:40]!r} isn't there"
            elif start < end:
                usable.append(Span(start, end, label, verdict, *(span.place or ())))
                continue
        if whole and not read and span.text and type(span.text) is type(label) is str and label:
            fits = tuple(name for name in READINGS if _quoted_by(name, text, written, span.text))
        values = {"start": (span.start, start, int), "end": (span.end, end, int), "label": (label, label, str)}
        wrong = [
            f"no {name}" if given in (None, "") else f"{name} isn't {'an integer' if kind is int else 'a string'}"
            for name, (given, read_as, kind) in values.items()
            if given in (None, "") or type(read_as) is not kind
        ]
        if whole and not read and not wrong:
            wrong = _misplaced(written, length, empty=start >= end)
        why = why or (": " + ", ".join(wrong) if wrong else "")
        problem = f"{label or None} {span.start} {span.end}{why}"
        unusable.append(Span(0, 0, str(label), verdict, *(span.place or ("", 0)), "", problem, fits))
    name = next((name for name in who if name and isinstance(name, str)), "")
    kept_meta = strings_of(meta)
    return Task(
        line,
        text,
        tuple(usable),
        tuple(unusable),
        str(answer).lower(),
        kind,
        name,
        float(when) if type(when) in (int, float) and abs(when) < 2**63 else None,
        review,
        kept_meta.pop(PREDICTED, None) is not None,
        kept_meta.pop(DOCUMENT, ""),
        dict(uncovered) if uncovered else {},
        kept_meta,
    )


def strings_of(meta: Any) -> dict[str, str]:
    """Return the values of a row's `meta` as strings."""
    return {key: str(value) for key, value in meta.items() if value is not None} if isinstance(meta, dict) else {}


def _misplaced(offsets: tuple[int, int], length: int, *, empty: bool) -> list[str]:
    """Explain offsets outside a text, or a span that is empty once stripped."""
    start, end = offsets
    reasons = {
        "its end isn't after its start": start >= end,
        "its start is below 0": start < 0,
        f"the text has {length:,} characters": end > length,
        "white space alone": empty,
    }
    return [reason for reason, holds in reasons.items() if holds][:1]


def _quoted_by(name: str, text: str, offsets: tuple[int, int], quoted: str) -> bool:
    read_offsets = READINGS[name](text, offsets)
    return read_offsets is not None and 0 <= read_offsets[0] < read_offsets[1] and says(text, [read_offsets], quoted)


def find_quote(text: str, start: Any, end: Any, values: Iterable[Any]) -> str | None:
    """Return the value that a reading of offsets finds in a text, if any: the quoted words, whatever their key."""
    whole = type(start) is type(end) is int
    words = [value for value in values if type(value) is str and value and value in text] if whole else []
    return next((word for name in READINGS for word in words if _quoted_by(name, text, (start, end), word)), None)


def to_integer(offset: Any) -> Any:
    """Convert a whole number, or a string of digits, to int; return other values unchanged."""
    is_whole = (type(offset) is float and offset.is_integer()) or (
        type(offset) is str and offset.isascii() and offset.isdecimal() and len(offset) < 10
    )
    return int(offset) if is_whole else offset
