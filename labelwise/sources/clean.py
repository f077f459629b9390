"""The border that raw values cross once: behind it, a Task holds only what its types say.

A span that can't be used costs itself alone, and any other value that can't be used counts as missing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from labelwise.annotations import Kind, Span, Task, Verdict
from labelwise.base.text import State, trim
from labelwise.corpus.tasks import DOCUMENT, PREDICTED
from labelwise.sources.offsets import READINGS, says

ANSWERS: tuple[Verdict, ...] = ("accept", "reject", "ignore")
UNUSABLE = "unusable"  # in place of an answer that isn't a string


class RawSpan(msgspec.Struct, gc=False):
    """A span as it is read: of any types, so that one that can't be used doesn't cost its task. A missing key is None.

    answer (Any): on this span alone, as old binary data have it.
    text (Any): the words that it is, as some tools write them beside the offsets.
    place (tuple | None): the annotation file of a brat document, and the line of it, as `convert-brat` writes it.
    """

    start: Any = None
    end: Any = None
    label: Any = None
    answer: Any = None
    text: Any = None
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
    """Convert raw values to a task. White space is trimmed off the edges of its spans.

    A span that quotes other words than are at its offsets can't be used.

    offsets (str): how they count, by the name of one of READINGS; empty for code points.
    who (Iterable[Any]): names of who answered: the first that is one counts.
    """
    usable, unusable = [], []
    length = len(text)
    read = READINGS[offsets] if offsets else None
    for span in spans or ():
        start, end, label, verdict = span.start, span.end, span.label, span.answer
        why = ""
        if verdict is not None and verdict not in ANSWERS:
            verdict = "ignore"
        # The types are those of JSON itself: True is no 1. Tables of numbers make 5.0 of 5.
        whole = type(start) is int and type(end) is int
        if not whole:
            start, end = (int(one) if type(one) is float and one.is_integer() else one for one in (start, end))
            whole = type(start) is int and type(end) is int
        if read and whole:
            start, end = read(text, (start, end)) or (-1, -1)
        if whole and 0 <= start < end <= length and type(label) is str:
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
        problem = f"{label} {span.start} {span.end}{why}"
        unusable.append(Span(0, 0, str(label), verdict, *(span.place or ("", 0)), "", problem))
    name = next((one for one in who if one and isinstance(one, str)), "")
    said = {key: str(value) for key, value in meta.items() if value is not None} if isinstance(meta, dict) else {}
    return Task(
        line,
        text,
        tuple(usable),
        tuple(unusable),
        answer if isinstance(answer, str) else UNUSABLE,
        kind,
        name,
        float(when) if type(when) in (int, float) and abs(when) < 2**63 else None,  # else no clock says it
        review,
        said.pop(PREDICTED, None) is not None,
        said.pop(DOCUMENT, ""),
        dict(uncovered) if uncovered else {},
        said,
    )
