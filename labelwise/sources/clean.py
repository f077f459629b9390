"""The border that raw values cross once: behind it, a Task holds only what its types say.

A span that can't be used costs itself alone, and any other value that can't be used counts as missing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from labelwise.annotations import Kind, Span, Task, Unusable, Verdict
from labelwise.base.text import State, trim
from labelwise.corpus.tasks import DOCUMENT, PREDICTED

ANSWERS: tuple[Verdict, ...] = ("accept", "reject", "ignore")
UNUSABLE = "unusable"  # in place of an answer that isn't a string


class RawSpan(msgspec.Struct, gc=False):
    """A span as it is read: of any types, so that one that can't be used doesn't cost its task. A missing key is None.

    answer (Any): on this span alone, as old binary data have it.
    place (tuple | None): the annotation file of a brat document, and the line of it, as `convert-brat` writes it.
    """

    start: Any = None
    end: Any = None
    label: Any = None
    answer: Any = None
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
) -> Task:
    """Make a task of raw values. White space is trimmed off the edges of its spans.

    who (Iterable[Any]): names of who answered: the first that is one counts.
    """
    usable, unusable = [], []
    length = len(text)
    for span in spans or ():
        start, end, label, verdict = span.start, span.end, span.label, span.answer
        if verdict is not None and verdict not in ANSWERS:
            verdict = "ignore"
        # The types are those of JSON itself: True is no 1.
        if type(start) is int and type(end) is int and 0 <= start < end <= length and type(label) is str:
            if text[start].isspace() or text[end - 1].isspace():
                start, end = trim(text, start, end)
            if start < end:
                usable.append(Span(start, end, label, verdict, *(span.place or ())))
                continue
        unusable.append(Unusable(str(label), f"{label} {span.start} {span.end}", verdict, "", *(span.place or ())))
    name = ""
    for one in who:
        if one and isinstance(one, str):
            name = one
            break
    said = {key: str(value) for key, value in meta.items() if value is not None} if isinstance(meta, dict) else {}
    return Task(
        line,
        text,
        tuple(usable),
        tuple(unusable),
        answer if isinstance(answer, str) else UNUSABLE,
        kind,
        name,
        _usable_time(when),
        review,
        said.pop(PREDICTED, None) is not None,
        said.pop(DOCUMENT, ""),
        dict(uncovered) if uncovered else {},
        said,
    )


def _usable_time(value: Any) -> float | None:
    """Return a number of seconds; None for anything else, and what no clock says."""
    return float(value) if type(value) in (int, float) and abs(value) < 2**63 else None
