"""Spans of characters: trim them, and group those that overlap."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeGuard, TypeVar

SpanKey = tuple[int, int, str]  # start and end, label
Offsets = TypeVar("Offsets", bound=tuple[Any, ...])  # start and end come first
State = Literal["partial", "none"]  # of a label that a text isn't complete for


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Move the edges of a span inwards past white space (any Unicode white space); one of only that becomes empty."""
    if start < end and not text[start].isspace() and not text[end - 1].isspace():
        return start, end
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def is_integer(value: Any) -> TypeGuard[int]:
    """Tell whether a value is an integer; true and false aren't, though Python takes them for 1 and 0."""
    return isinstance(value, int) and not isinstance(value, bool)


def trim_usable(text: str, start: Any, end: Any) -> tuple[int, int]:
    """Trim a span as it was read, whatever its offsets are; it becomes empty if it isn't a span of the text."""
    if not is_integer(start) or not is_integer(end) or not 0 <= start < end <= len(text):
        return 0, 0
    return trim(text, start, end)


def overlapping_groups(
    one: Iterable[Offsets], other: Iterable[Offsets]
) -> Iterator[tuple[list[Offsets], list[Offsets]]]:
    """Yield (one, other) for each stretch of a text whose borders no span crosses, in text order, sorted."""
    group: tuple[list[Offsets], list[Offsets]] = ([], [])
    end = 0
    for span, side in sorted([*((span, 0) for span in one), *((span, 1) for span in other)]):
        if span[0] >= end and any(group):
            yield group
            group = ([], [])
        group[side].append(span)
        end = max(end, span[1])
    if any(group):
        yield group


def judgeable(spans: Iterable[SpanKey], judged: Iterable[SpanKey], uncovered: Mapping[str, str]) -> set[SpanKey]:
    """Keep the spans that can be judged.

    Those are the spans of labels that a text is complete for; where single spans were judged, those spans.

    judged (Iterable): the spans that annotators accepted or rejected.
    uncovered (Mapping[str, str]): the labels that the text isn't complete for, each "partial" or "none".
    """
    if not uncovered:
        return set(spans)
    known = {span for span in judged if uncovered.get(span[2]) == "partial"}
    return {span for span in spans if span[2] not in uncovered or span in known}
