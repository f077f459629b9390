"""Write spans as lines of brat's standoff format."""

import re

from labelwise.base.text import SpanKey

LINE_ENDS = re.compile(r"[\r\n]+")


def brat_label(label: str) -> str:
    """Return a label without white space, which brat's labels can't have."""
    return "_".join(label.split())


def standoff(text: str, span: SpanKey, number: int | str) -> str:
    r"""Write a span as a line of standoff, in pieces at line ends, which brat's spans can't cross.

    >>> standoff("two\nlines", (0, 9, "A"), 1)
    'T1\tA 0 3;4 9\ttwo lines\n'
    """
    start, end, label = span
    edges = [start]
    for match in LINE_ENDS.finditer(text, start, end):
        edges += match.span()
    pieces = [piece for piece in zip(edges[::2], [*edges[1::2], end], strict=True) if piece[0] < piece[1]]
    offsets = ";".join(f"{first} {last}" for first, last in pieces)
    return f"T{number}\t{brat_label(label)} {offsets}\t{' '.join(text[first:last] for first, last in pieces)}\n"
