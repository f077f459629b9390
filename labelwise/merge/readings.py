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
MOVES_ALL = ""  # in place of the names of the readings that move each span

# Of the spans that a reading puts elsewhere, those that are lost as they are (BEFORE), and by it (AFTER), by data set
# and reading.
Trials = Counter[tuple[str, str, str]]


def try_readings(found: TextResult, made: Projection, trials: Trials) -> None:
    """Count how the accepted spans of a text that count fare by each reading, unless their data set declares one.

    Spans that don't quote the words at their offsets are lost, but by the readings that find these words. A space
    beside a span may have been trimmed off it. Where an answer has lost no span, those that a reading puts elsewhere
    count as lost by it, untried.
    """
    text, first, last = found.merged.text, made.first, made.last
    moved = {} if text.isascii() and "\r" not in text else first_moved(text)
    for answer in found.answers:
        if found.merged.rows[answer.number].reason != Reason.MERGED or answer.dataset.offsets:
            continue
        name, spans = answer.dataset.name, answer.accepted()
        for quoting in (span.fits for span in answer.task.unusable if span.fits):
            for reading in READINGS:
                trials[name, reading, BEFORE] += 1
                trials[name, reading, AFTER] += reading not in quoting
        lost = {(span.start, span.end) for span in spans if span.start not in first or span.end not in last}
        if not lost:
            trials[name, MOVES_ALL, AFTER] += len(spans)
            for reading, place in moved.items():
                trials[name, reading, AFTER] += sum(span.end > place for span in spans)
            continue
        for reading, place in (dict.fromkeys(READINGS.keys() - MOVING.keys(), 0) | moved).items():
            for offsets in ((span.start, span.end) for span in spans if span.end > place):
                read = [READINGS[reading](text, one) for one in _untrimmed(text, *offsets)]
                if read[0] != offsets:
                    fits = any(one and one[0] in first and one[1] in last for one in read)
                    trials[name, reading, BEFORE] += offsets in lost
                    trials[name, reading, AFTER] += not fits


def first_moved(text: str) -> dict[str, int]:
    """Find the first character of a text behind which a reading counts otherwise, by the readings that have one."""
    others = [char for char in {*text} if char > "\x7f" or char == "\r"]
    places = {name: [text.index(char) for char in others if moves(char)] for name, moves in MOVING.items()}
    return {name: min(found) for name, found in places.items() if found}


# Characters behind which readings count otherwise; the other readings move each span.
MOVING: dict[str, Callable[[str], bool]] = {
    "code-points": lambda char: False,
    "utf-16": lambda char: char > "\uffff",
    "bytes": lambda char: char > "\x7f",
    "crlf": lambda char: char == "\r",
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
        if name not in MOVING:
            after += trials[dataset, MOVES_ALL, AFTER]
        if before >= FEW and after <= LEFT * before:
            able.append((after, name, before))
    after, name, before = min(able, default=(0, "", 0))
    return (name, before, after) if name else None
