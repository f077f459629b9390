"""Windows of texts: the wordpieces that a transformer is given at a time.

A text that is longer than a window is given in several, of about the same length, and the tokens beside a window's own
are given, too, so that the first and the last ones are seen in context:

    text           a b c d e f g h i j
    windows        a b c d e[f g]           with the tokens in brackets for context
                      [d e]f g h i j
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc

LONGEST = 24  # wordpieces of a token, the first ones
BATCH = 1_500  # wordpieces that are predicted at a time


class PieceTokenizer:
    """Cuts words into a transformer's wordpieces, each form once.

    written (str): what `tokenizers` makes a tokenizer of.
    begin, end (int): the wordpieces that a text begins and ends with.
    """

    def __init__(self, written: str) -> None:
        """Make the tokenizer."""
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_str(written)
        self.begin, self.end = self.tokenizer.encode("").ids
        self.split = lru_cache(maxsize=2**15)(self._split)

    def _split(self, form: str) -> list[int]:
        return self.tokenizer.encode([form], is_pretokenized=True, add_special_tokens=False).ids[:LONGEST]


read_tokenizer = lru_cache(maxsize=2)(PieceTokenizer)


class Window(NamedTuple):
    """A part of a text that is given to the transformer at a time.

    ids (np.ndarray): of its wordpieces, between those that begin and end it.
    first (int): the wordpiece that its own tokens begin with.
    counts (np.ndarray): how many wordpieces each of its own tokens has.
    """

    ids: np.ndarray
    first: int
    counts: np.ndarray


def find_windows(doc: Doc, tokenizer: PieceTokenizer, window: int, context: int) -> list[Window]:
    """Cut a text into windows; white space has no wordpiece. A text without a token has none.

    window (int): wordpieces of a window, about: a token is never cut.
    context (int): of these, those on each side of the window's own, in a text that has several.
    """
    pieces = [tokenizer.split(doc.vocab.strings[orth]) for orth in doc.to_array(ORTH).tolist()]
    if not pieces:
        return []
    counts = np.array([len(each) for each in pieces])
    ends = np.cumsum(counts)
    ids = np.array([piece for each in pieces for piece in each], int)
    room = window - 2  # without the wordpieces that begin and end it
    parts = 1 if len(ids) <= room else math.ceil(len(ids) / (room - 2 * context))
    cuts = np.searchsorted(ends, np.arange(1, parts) * len(ids) / parts).tolist()
    found = []
    for begin, end in pairwise(sorted({0, *cuts, len(pieces)})):
        first, last = ends[begin] - counts[begin], ends[end - 1]
        before, after = max(0, first - context), min(len(ids), last + context)
        found.append(
            Window(
                np.array([tokenizer.begin, *ids[before:after], tokenizer.end]), first - before + 1, counts[begin:end]
            )
        )
    return found


def batch_windows(windows: Sequence[Window]) -> Iterator[Sequence[Window]]:
    """Divide windows into batches of some BATCH wordpieces, in order."""
    ends = np.cumsum([len(window.ids) for window in windows])
    cuts = np.flatnonzero(np.diff(ends // BATCH)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(windows)]):
        yield windows[begin:end]
