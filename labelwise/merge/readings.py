"""Try other readings of a dataset's offsets: do the moved spans fit token boundaries?"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from unicodedata import category

from labelwise.annotations import Reason
from labelwise.merge.account import TextResult
from labelwise.merge.rules.to_doc import Projection
from labelwise.sources.offsets import ENTITY, OTHER_TEXTS, READINGS, is_inside

MIN_LOST_SPANS = 5  # spans
MAX_LEFT_SHARE = 0.2  # share of these that a better reading may lose
MAX_TRIMMED = 8  # white space trimmed off each side of a span
BEFORE, AFTER = "before", "after"
# In place of the names of the readings that move each span; and the spans that begin and end inside words.
MOVES_ALL, INSIDE_WORDS = "", "inside words"

# Spans that a reading moves and that are lost as they are (BEFORE), and by the reading (AFTER), by the number of their
# file and the reading.
Trials = Counter[tuple[int, str, str]]


class Better(NamedTuple):
    """A reading that removes losses, and the spans lost before and after."""

    name: str
    before: int
    after: int


def try_readings(result: TextResult, projection: Projection, trials: Trials) -> None:
    """Count the losses of a text's accepted spans by each reading, unless their dataset declares one.

    Spans that don't quote the words at their offsets are lost, except by readings that find these words. White space
    beside a span may have been trimmed. If an answer has lost no span, a reading loses each span that it moves.
    """
    text, first, last = result.merged.text, projection.first, projection.last
    places = first_moved(text)
    for answer in result.answers:
        task, counts = answer.task, result.merged.rows[answer.number].reason == Reason.MERGED
        if not (task.spans or task.unusable) or not counts or answer.dataset.offsets:
            continue
        file, spans = answer.source, answer.accepted()
        for span in task.unusable:
            for reading in READINGS if span.fits else ():
                trials[file, reading, BEFORE] += 1
                trials[file, reading, AFTER] += reading not in span.fits
        lost = {(span.start, span.end) for span in spans if span.start not in first or span.end not in last}
        if not lost:
            trials[file, MOVES_ALL, AFTER] += len(spans)
            for reading, place in places.items():
                trials[file, reading, AFTER] += sum(span.end > place for span in spans)
            continue
        trials[file, INSIDE_WORDS, BEFORE] += sum(is_inside(text, offsets) for offsets in lost)
        for reading, place in (dict.fromkeys(MOVING_ALL, 0) | places).items():
            for offsets in ((span.start, span.end) for span in spans if span.end > place):
                tried = [READINGS[reading](text, untrimmed) for untrimmed in _untrimmed(text, *offsets)]
                if tried[0] != offsets:
                    fits = any(moved and moved[0] in first and moved[1] in last for moved in tried)
                    trials[file, reading, BEFORE] += offsets in lost
                    trials[file, reading, AFTER] += not fits


def first_moved(text: str) -> dict[str, int]:
    """Map each reading that differs to the character after which it does."""
    first: dict[str, int] = {}
    if not text.isascii() or "\r" in text:
        others = [char for char in {*text} if char > "\x7f" or char == "\r"]
        places = {name: [text.index(char) for char in others if moves(char)] for name, moves in MOVING.items()}
        first = {name: min(indices) for name, indices in places.items() if indices}
    if "&" in text and (entity := ENTITY.search(text)):
        first["html"] = entity.start()
    return first | {"stripped": 0} if text[:1].isspace() else first


# Characters behind which readings count otherwise; but for OTHER_TEXTS, the other readings move each span.
MOVING: dict[str, Callable[[str], bool]] = {
    "code-points": lambda char: False,
    "utf-16": lambda char: char > "\uffff",
    "bytes": lambda char: char > "\x7f",
    "crlf": lambda char: char == "\r",
    "graphemes": lambda char: char > "\u02ff" and (category(char)[0] in "MC" or char > "\uffff"),
}
MOVING_ALL = tuple(name for name in READINGS if name not in (*MOVING, *OTHER_TEXTS))


def _untrimmed(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """List the possible offsets before white space was trimmed, these first."""
    before, behind = text[max(0, start - MAX_TRIMMED) : start], text[end : end + MAX_TRIMMED]
    starts = range(start, start - 1 - (len(before) - len(before.rstrip())), -1)
    ends = range(end, end + 1 + len(behind) - len(behind.lstrip()))
    return [(first, last) for first in starts for last in ends]


def _count(trials: Trials, files: Iterable[int], name: str) -> tuple[int, int]:
    """Count the lost spans that a reading moves, and the spans that it loses."""
    lost = [(name, BEFORE)], [(name, AFTER), *([(MOVES_ALL, AFTER)] if name in MOVING_ALL else [])]
    before, after = (sum(trials[file, *key] for file in files for key in keys) for keys in lost)
    return before, after


def best_reading(trials: Trials, files: Sequence[int]) -> Better | None:
    """Return the reading that removes most losses of files, by number; None if none removes enough."""
    candidates = []
    for name in READINGS:
        before, after = _count(trials, files, name)
        if before >= MIN_LOST_SPANS and after <= MAX_LEFT_SHARE * before:
            candidates.append(Better(name, before, after))
    return min(candidates, key=lambda better: better.after, default=None)


def best_readings(trials: Trials, files: Sequence[int]) -> dict[int, Better]:
    """Return the best reading of each file of a dataset; one for all, if it makes none worse."""
    best = best_reading(trials, files)
    if best:
        counts = [_count(trials, [file], best.name) for file in files]
        if all(after <= before for before, after in counts):
            return dict.fromkeys(files, best)
    return {file: better for file in files if (better := best_reading(trials, [file]))}
