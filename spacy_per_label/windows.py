"""Windows of texts: the wordpieces of a transformer's input, for each backend.

A longer text is cut into several windows of about equal length, with tokens on each side for context:

    text           a b c d e f g h i j
    windows        a b c d e[f g]           with the tokens in brackets for context
                      [d e]f g h i j

numpy computes windows in sequence, PyTorch in tables with a row for each.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc

MAX_TOKEN_PIECES = 24  # wordpieces of a token; the others are cut off
MAX_BATCH_PIECES = 1_500  # approximate wordpieces of a numpy batch
MAX_TABLES = 4  # of a batch; each launches all kernels of the transformer
MAX_PADDING = 0.1  # share of a batch's cells; with less, another table isn't worth it


class PieceTokenizer:
    """Splits words into a transformer's wordpieces, each form once.

    written (str): tokenizer.json, as returned by `adapt_tokenizer`.
    before, after (list[int]): special wordpieces around a text, such as [CLS] and [SEP].
    """

    def __init__(self, written: str) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_str(written)
        encoded = self.tokenizer.encode("a")
        special = np.array([*encoded.special_tokens_mask, 0], bool)
        first = int(special.argmin())
        self.before = encoded.ids[:first]
        self.after = np.array(encoded.ids)[first:][special[first:-1]].tolist()
        self.split = lru_cache(maxsize=2**15)(self._split)

    def _split(self, form: str) -> list[int]:
        return self.tokenizer.encode([form], is_pretokenized=True, add_special_tokens=False).ids[:MAX_TOKEN_PIECES]


read_tokenizer = lru_cache(maxsize=2)(PieceTokenizer)


class Window(NamedTuple):
    """A part of a text, as input of the transformer.

    ids (np.ndarray): shape (wordpieces,); own tokens, context and special ones.
    first (int): index of the first wordpiece of its own tokens.
    counts (np.ndarray): shape (own tokens,); wordpieces of each.
    """

    ids: np.ndarray
    first: int
    counts: np.ndarray


def find_windows(doc: Doc, tokenizer: str, window: int, context: int) -> list[Window]:
    """Cut a text into windows; white space has no wordpiece, an empty text no window.

    window (int): approximate wordpieces of a window, because no token is cut.
    context (int): wordpieces on each side, in a text with several windows.
    """
    pieces = read_tokenizer(tokenizer)
    split = [pieces.split(doc.vocab.strings[orth]) for orth in doc.to_array(ORTH).tolist()]
    if not split:
        return []
    counts = np.array([len(token_ids) for token_ids in split])  # (tokens,)
    ends = np.cumsum(counts)  # (tokens,)
    ids = np.array([piece for token_ids in split for piece in token_ids], int)  # (wordpieces,)
    room = window - len(pieces.before) - len(pieces.after)
    parts = 1 if len(ids) <= room else math.ceil(len(ids) / (room - 2 * context))
    cuts = np.searchsorted(ends, np.arange(1, parts) * len(ids) / parts).tolist()  # tokens that windows begin with
    windows = []
    for begin, end in pairwise(sorted({0, *cuts, len(split)})):
        first, last = ends[begin] - counts[begin], ends[end - 1]
        start, stop = max(0, first - context), min(len(ids), last + context)
        window_ids = np.array([*pieces.before, *ids[start:stop], *pieces.after], int)
        windows.append(Window(window_ids, first - start + len(pieces.before), counts[begin:end]))
    return windows


def find_own_pieces(windows: Sequence[Window]) -> tuple[np.ndarray, np.ndarray]:
    """Find the wordpieces of the windows' own tokens.

    RETURNS (tuple): indices among all wordpieces of all windows, token by token, shape (own wordpieces,); and number of
        each token's, shape (tokens,).
    """
    starts = np.cumsum([0, *(len(window.ids) for window in windows)])
    own_pieces = [
        np.arange(window.counts.sum()) + window.first + start for window, start in zip(windows, starts, strict=False)
    ]
    counts = [window.counts for window in windows]
    return np.concatenate([np.zeros(0, int), *own_pieces]), np.concatenate([np.zeros(0, int), *counts]).astype("int32")


def batch_windows(windows: Sequence[Window]) -> Iterator[Sequence[Window]]:
    """Divide windows into batches of about MAX_BATCH_PIECES wordpieces, in order."""
    ends = np.cumsum([len(window.ids) for window in windows])
    cuts = np.flatnonzero(np.diff(ends // MAX_BATCH_PIECES)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(windows)]):
        yield windows[begin:end]


def make_tables(windows: Sequence[Window], padding: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Put windows into padded tables, a row each.

    padding (int): wordpiece of padding.
    RETURNS (tuple): for each table wordpieces and mask, both of shape (rows, longest row), the mask 1.0 except for
        padding; and the cell of each wordpiece of all windows, counted through all tables.
    """
    lengths = np.array([len(window.ids) for window in windows])  # (windows,)
    ends, tables, first = np.cumsum(lengths), [], 0
    cells = np.zeros(lengths.sum(), "int32")  # (wordpieces,)
    for rows in split_rows(lengths):
        filled = np.arange(lengths[rows].max()) < lengths[rows, None]  # (rows, longest)
        ids = np.full(filled.shape, padding)
        ids[filled] = np.concatenate([windows[row].ids for row in rows])
        places = np.concatenate([np.arange(ends[row] - lengths[row], ends[row]) for row in rows])
        cells[places] = first + np.flatnonzero(filled)
        first += filled.size
        tables.append((ids, filled.astype("float32")))
    return tables, cells


def split_rows(lengths: np.ndarray) -> list[np.ndarray]:
    """Split rows into tables, each as wide as its longest row, with the fewest cells in total.

    RETURNS (list[np.ndarray]): each table's rows, in order; as many tables as MAX_PADDING and MAX_TABLES allow.
    """
    sizes, counts = np.unique(lengths, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(counts)])
    # The cells of a table that has the sizes from one number to another, and rows as long as the last of them.
    rows, widths = ends - ends[:, None], np.concatenate([[0], sizes])
    cells = np.where(rows > 0, rows * widths, np.inf)  # (sizes + 1, sizes + 1)
    fewest, cuts = cells[0], list[np.ndarray]()
    while len(cuts) + 1 < MAX_TABLES and lengths.sum() < (1 - MAX_PADDING) * fewest[-1]:
        sums = fewest[:, None] + cells
        fewest = sums.min(axis=0)
        cuts.append(sums.argmin(axis=0))
    table, end = np.zeros(len(sizes), int), len(sizes)
    for cut in reversed(cuts):
        end = int(cut[end])
        table[:end] += 1
    table_of_row = table[np.searchsorted(sizes, lengths)]
    return [np.flatnonzero(table_of_row == number) for number in np.unique(table)]
