"""Try other readings of a data set's offsets, while its spans are merged: do tokens begin and end there?

They are compared on the spans where they differ: those that a reading puts elsewhere.
"""

from collections import Counter
from collections.abc import Callable
from unicodedata import category

from labelwise.annotations import Reason
from labelwise.merge.account import TextResult
from labelwise.merge.rules.to_doc import Projection
from labelwise.sources.offsets import READINGS

FEW = 5  # spans that are lost, from which a reading is tried
LEFT = 0.2  # of these, that a reading may lose
BEFORE, AFTER = "before", "after"

# Of the spans that a reading puts elsewhere, those that are lost as they are (BEFORE), and by it (AFTER), by data set
# and reading.
Trials = Counter[tuple[str, str, str]]


def try_readings(found: TextResult, made: Projection, trials: Trials) -> None:
    """Count how the accepted spans of a text that count fare by each reading, unless their data set declares one.

    A space beside a span may have been trimmed off it. Where an answer has lost no span, those that a reading puts
    elsewhere count as lost by it, untried.
    """
    text, starts, ends = found.merged.text, frozenset(made.starts), frozenset(made.ends)
    moved = first_moved(text)
    for answer in found.answers:
        if found.merged.rows[answer.number].reason != Reason.MERGED or answer.dataset.offsets:
            continue
        spans = [(span.start, span.end) for span in answer.accepted()]
        lost = {span for span in spans if span[0] not in starts or span[1] not in ends}
        for name, first in moved.items():
            moving = [span for span in spans if span[1] > first] if first else spans
            if not lost:
                trials[answer.dataset.name, name, AFTER] += len(moving)
                continue
            for span in moving:
                read = [READINGS[name](text, one) for one in _untrimmed(text, *span)]
                if read[0] != span:
                    fits = any(one and one[0] in starts and one[1] in ends for one in read)
                    trials[answer.dataset.name, name, BEFORE] += span in lost
                    trials[answer.dataset.name, name, AFTER] += not fits


def first_moved(text: str) -> dict[str, int]:
    """Find the first character of a text behind which a reading counts otherwise, by the readings that have one."""
    found = {}
    others = [] if text.isascii() else [char for char in {*text} if char > "\x7f"]
    for name in READINGS:
        moves = MOVING.get(name)
        if moves is None:
            found[name] = 0
        elif places := [text.index(char) for char in others if moves(char)]:
            found[name] = min(places)
    return found


# Characters behind which readings count otherwise; the others always do.
MOVING: dict[str, Callable[[str], bool]] = {
    "code-points": lambda char: False,
    "utf-16": lambda char: char > "\uffff",
    "bytes": lambda char: char > "\x7f",
    "graphemes": lambda char: char > "\u02ff" and (category(char)[0] in "MC" or char > "\uffff"),
}


def _untrimmed(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """List the offsets that may have been written, from which spaces have been trimmed."""
    before, behind = text[max(0, start - 1) : start].isspace(), text[end : end + 1].isspace()
    return [(first, last) for first in (start, start - 1)[: 1 + before] for last in (end, end + 1)[: 1 + behind]]


def best_reading(trials: Trials, dataset: str) -> tuple[str, int, int] | None:
    """Find the reading that removes most of a data set's losses; None if none removes enough of them.

    RETURNS (tuple): its name, the spans that are lost, and those of them that it loses, too.
    """
    able = []
    for name in READINGS:
        before, after = trials[dataset, name, BEFORE], trials[dataset, name, AFTER]
        if before >= FEW and after <= LEFT * before:
            able.append((after, name, before))
    after, name, before = min(able, default=(0, "", 0))
    return (name, before, after) if name else None
