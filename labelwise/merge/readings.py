"""Try other readings of a data set's offsets, while its spans are merged: do tokens begin and end there?

They are compared on the spans where they differ: those that a reading puts elsewhere.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from unicodedata import category

from labelwise.sources.offsets import READINGS

FEW = 5  # spans that are lost, from which a reading is tried
LEFT = 0.2  # of these, that a reading may lose

# By the name of a reading: the spans that it puts elsewhere, those of these that are lost as they are, and by it.
Trials = dict[str, list[int]]


def try_readings(
    trials: Trials,
    text: str,
    moved: Mapping[str, int],
    spans: Sequence[tuple[int, int]],
    starts: Collection[int],
    ends: Collection[int],
) -> None:
    """Count how spans of a text fare by each reading. A space beside a span may have been trimmed off it.

    Where no span of a text is lost, those that a reading puts elsewhere count as lost by it, untried.

    moved (Mapping[str, int]): see `first_moved`.
    starts, ends (Collection[int]): of the tokens.
    """
    lost = [start not in starts or end not in ends for start, end in spans]
    trying = any(lost)
    for name, first in moved.items():
        counts = trials.setdefault(name, [0, 0, 0])
        for span, gone in zip(spans, lost, strict=True) if trying else ():
            found = [READINGS[name](text, one) for one in _untrimmed(text, *span)] if span[1] > first else [span]
            if found[0] != span:
                counts[0] += 1
                counts[1] += gone
                counts[2] += not any(one and one[0] in starts and one[1] in ends for one in found)
        if not trying:
            elsewhere = sum(end > first for _, end in spans)
            counts[0] += elsewhere
            counts[2] += elsewhere


def first_moved(text: str) -> dict[str, int]:
    """Find the first character of a text behind which a reading counts otherwise, by the readings that have one."""
    found = {name: _first_moved(text, name) for name in READINGS}
    return {name: first for name, first in found.items() if first < len(text)}


def _untrimmed(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """List the offsets that may have been written, from which spaces have been trimmed."""
    before, behind = text[max(0, start - 1) : start].isspace(), text[end : end + 1].isspace()
    return [(first, last) for first in (start, start - 1)[: 1 + before] for last in (end, end + 1)[: 1 + behind]]


def _first_moved(text: str, reading: str) -> int:
    """Find the first character of a text behind which a reading counts otherwise; its length if there is none."""
    if (moves := MOVING.get(reading)) is None:
        return 0
    return (
        len(text) if text.isascii() else min((text.index(char) for char in {*text} if moves(char)), default=len(text))
    )


# Characters behind which readings count otherwise; the others always do.
MOVING: dict[str, Callable[[str], bool]] = {
    "code-points": lambda char: False,
    "utf-16": lambda char: char > "\uffff",
    "bytes": lambda char: char > "\x7f",
    "graphemes": lambda char: char > "\u02ff" and (category(char)[0] in "MC" or char > "\uffff"),
}


def add_trials(parts: Iterable[Mapping[str, Trials]]) -> dict[str, Trials]:
    """Add up what several jobs counted, by data set."""
    total: dict[str, Trials] = {}
    for dataset, trials in (item for part in parts for item in part.items()):
        for name, counts in trials.items():
            known = total.setdefault(dataset, {}).setdefault(name, [0, 0, 0])
            known[:] = [one + other for one, other in zip(known, counts, strict=True)]
    return total


def best_reading(trials: Trials) -> str:
    """Name the reading that removes most of the losses; empty if none removes enough of them."""
    able = [(after, name) for name, (_, before, after) in trials.items() if before >= FEW and after <= LEFT * before]
    return min(able, default=(0, ""))[1]
