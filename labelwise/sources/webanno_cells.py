r"""The cells of WebAnno TSV 3: annotations separated by `|`, each a value with a number behind it, `[1]`, or without.

    PER    LOC[2]|ORG[3]    *    A\[1\]\|B

The format's own characters in a value have a `\` before them, as INCEpTION writes them (its class `Escaping`). A value
that has one without isn't what anybody chose, so it is a problem.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

EMPTY = ("_", "")  # a cell without annotations
NO_VALUE = ("*", *EMPTY)
STACKED = re.compile(r"(?:\\.|[^|])+", re.DOTALL)
VALUE = re.compile(r"((?:\\.|[^\\|\[\]])*)(?:\[([0-9]+)\])?", re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}


class Value(NamedTuple):
    """An annotation in a cell.

    value (str | None): empty if it has none, and None if it can't be read.
    number (str): tells the annotation apart from others of its column; empty if it has none.
    written (str): as it is in the file.
    """

    value: str | None
    number: str
    written: str


def values_of(cell: str) -> Iterator[Value]:
    """Yield the annotations of a cell."""
    for written in STACKED.findall(cell) if cell not in EMPTY else ():
        if found := VALUE.fullmatch(written):
            yield Value("" if found[1] in NO_VALUE else unescape(found[1]), found[2] or "", written)
        else:
            yield Value(None, "", written)


def unescape(text: str) -> str:
    r"""Read `\t` as a tab, and so on, and other characters after a `\` as they are."""
    return ESCAPED.sub(lambda match: ESCAPES.get(match[1], match[1]), text)
