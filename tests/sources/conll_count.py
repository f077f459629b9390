"""A second count of CoNLL files, straight from their bytes: the sentences, tokens and tags that a reader must find.

It shares with the reader how a line is cut into columns, and nothing else. Of lines that begin with `#`, it counts only
those that are tokens beyond doubt, so a file may have more than it counts, never less.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from labelwise.sources.conll import BEGINS, DOCUMENT_START, WHITE, cells_of, is_marked, shape_of
from labelwise.sources.items import Item


class Sentence(NamedTuple):
    """Successive lines that aren't blank: the numbers of the first and the last, and all of them."""

    first: int
    last: int
    lines: list[str]

    def tokens(self, tag: int | None) -> tuple[int, int]:
        """Count the tokens, and those whose tag begins a span.

        tag (int | None): the column of tags; None if that isn't known: no tag is counted then.
        """
        tokens = len(self.lines) - sum(map(is_marked, self.lines))
        begun = 0
        for line in self.lines if tag is not None else ():
            if "-" in line and not line.startswith(DOCUMENT_START):
                cells = cells_of(line)
                begins = len(cells) > max(tag, 1) and BEGINS.match(cells[tag].strip())
                if begins and (not is_marked(line) or (tag == -1 and shape_of(line) == shape_of(self.lines[-1]))):
                    begun += 1
                    tokens += is_marked(line)
        return tokens, begun


def count_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file, but for those that may be comments alone."""
    lines: list[str] = []
    for number, line in enumerate(chain(_lines(path), [""]), 1):
        if line.strip(WHITE):
            lines.append(line)
        else:
            if not all(map(is_marked, lines)):
                yield Sentence(number - len(lines), number - 1, lines)
            lines = []


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf8", errors="surrogateescape") as file:
        for line in file:
            yield line.removeprefix("\ufeff").rstrip("\n")


def count_lost(path: Path, items: Iterable[Item], tag: int | None = -1) -> Counter[str]:
    """Count what a file has and the items that were read of it lack.

    tag (int | None): the column of tags; None if that isn't known.
    """
    read = {item.line: item for item in items}
    lost: Counter[str] = Counter()
    for sentence in count_sentences(path):
        item = next((read[line] for line in range(sentence.first, sentence.last + 1) if line in read), None)
        lost["sentences"] += item is None
        if item and item.task:
            tokens, begun = sentence.tokens(tag)
            lost["tokens"] += max(tokens - (item.task.text or "").count(" ") - 1, 0)
            lost["tags"] += max(begun - len(item.task.spans or ()), 0)
    return +lost
