"""A second count of CoNLL files, straight from their bytes, of the sentences, tokens and tags that must have been read.

It shares with the reader how a line is cut into columns, and nothing else. Of lines that begin with `#`, it counts only
those that are tokens beyond doubt, so a file may have more than it counts, never less.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from labelwise.sources.conll_columns import DOCUMENT_START, WHITE, cells_of, is_marked, shape_of
from labelwise.sources.items import Item, miscounted

BEGINS = re.compile(r"[BUS]-.", re.DOTALL)  # a tag that begins a span, whatever is before it


class Sentence(NamedTuple):
    """Successive lines that aren't blank: the numbers of the first and the last, and all of them."""

    first: int
    last: int
    lines: list[str]

    def tokens(self, tag: int) -> tuple[int, int]:
        """Count the tokens, and those whose tag begins a span.

        tag (int): the column of tags.
        """
        tokens = len(self.lines) - sum(map(is_marked, self.lines))
        begun = 0
        for line in self.lines:
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
    before = ""
    with path.open(encoding="utf8", errors="surrogateescape", newline="") as file:
        for line in file:
            if line != "\r\n" or before[-1:] != "\r":
                yield line.removeprefix("\ufeff").rstrip("\r\n")
            before = line


def compare(read: Iterator[tuple[Item, int]], counted: Iterable[Sentence]) -> Iterator[Item]:
    """Yield the items that were read, and, if a file has more than that, a problem with the line of the first of it.

    read (Iterator): items, each with the column of its tags.
    """
    there: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    where = 0
    item, tag = next(read, (None, 0))
    for sentence in counted:
        while item and item.line < sentence.first:
            yield item
            item, tag = next(read, (None, 0))
        found = {"sentences": (1, int(item is not None and item.line <= sentence.last))}
        if item and item.line <= sentence.last:
            if item.task:
                tokens, begun = sentence.tokens(tag)
                found["tokens"] = tokens, (item.task.text or "").count(" ") + 1
                found["tags that begin a span"] = begun, len(item.task.spans or ())
            yield item
            item, tag = next(read, (None, 0))
        for what, (expected, had) in found.items():
            there[what] += expected
            lost[what] += max(expected - had, 0)
        where = where or (sentence.first if lost.total() else 0)
    while item:
        yield item
        item, tag = next(read, (None, 0))
    for what, number in list((+lost).items())[:1]:
        yield miscounted(where, there[what], what, there[what] - number)
