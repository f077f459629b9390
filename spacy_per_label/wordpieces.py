"""The wordpieces of texts as arrays, which another process may have made, and tables of them for a transformer.

The texts "Ann ran" and "Bo" may have the wordpieces

    [CLS]  Ann  ran  [SEP]      numbered 0 to 3
    [CLS]  B    ##o  [SEP]      numbered 4 to 7

of which the tokens Ann, ran and Bo have those numbered [1, 2, 5, 6], and [1, 1, 2] of them. Spans of about the same
length share a table, as each row of a table is as long as its longest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.attrs import LENGTH, SPACY
from spacy.tokens import Doc, Span

TABLES = 4  # for a batch, at most; each launches all kernels of the transformer
PADDING = 0.1  # the share of a batch's cells below which no further table is worth it


@dataclass(frozen=True, slots=True)
class Wordpieces:
    """The wordpieces of texts, span by span.

    ids, types (np.ndarray): of each wordpiece, its number in the vocabulary and its type; None if there are no types.
    sizes (np.ndarray): how many wordpieces each span has.
    of_tokens (np.ndarray): the wordpieces of each token, token by token, as numbers from 0.
    lengths (np.ndarray): how many of those each token has.
    """

    ids: np.ndarray
    types: np.ndarray | None
    sizes: np.ndarray
    of_tokens: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.lengths)


def find_wordpieces(
    tokenizer: Any, get_spans: Callable[[Sequence[Doc]], list[list[Span]]], docs: Sequence[Doc]
) -> Wordpieces:
    """Find the wordpieces of texts. One belongs to every token that it shares a character with.

    tokenizer (Any): the transformer's.
    get_spans (Callable): cuts texts into the spans that the transformer is given, as spacy-transformers' do.
    RAISES (ValueError): the tokenizer isn't a fast one.
    """
    if not tokenizer.is_fast:
        raise ValueError(f"{tokenizer.name_or_path} has no fast tokenizer, which knows where its wordpieces are")
    texts, owners, before = [], [], 0
    for doc, spans in zip(docs, get_spans(docs), strict=True):
        owner = np.repeat(np.arange(before, before + len(doc)), doc.to_array([LENGTH, SPACY]).sum(axis=1).astype(int))
        texts += [span.text for span in spans]
        owners += [owner[span.start_char : span.end_char] for span in spans]
        before += len(doc)
    encoded = tokenizer(texts or [""], padding=True, return_offsets_mapping=True, return_tensors="np")
    tables = {name: table[: len(texts), : tokenizer.model_max_length] for name, table in encoded.items()}
    there = tables["attention_mask"] > 0
    columns: Any = {name: table[there] for name, table in tables.items()}
    # For each character of each wordpiece: the wordpiece's number, and the place of the token it is in, or behind.
    starts, ends = columns["offset_mapping"].T + np.cumsum([0, *map(len, owners)])[np.nonzero(there)[0]]
    sizes = ends - starts
    number = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(len(number)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    owner_of_char = np.concatenate([np.zeros(0, int), *owners])
    # A pair of a token and a wordpiece, as one number, occurs once for each character that both have.
    token, of_tokens = np.divmod(np.unique(owner_of_char[place] * sizes.size + number), max(1, sizes.size))
    lengths = np.bincount(token, minlength=before).astype("int32")
    return Wordpieces(columns["input_ids"], columns.get("token_type_ids"), there.sum(axis=1), of_tokens, lengths)


def join_wordpieces(texts: Sequence[Wordpieces]) -> Wordpieces:
    """Join the wordpieces of texts to those of a batch."""
    before = np.cumsum([0, *(len(text.ids) for text in texts)])
    columns: Any = zip(
        *((one.ids, one.types, one.sizes, one.of_tokens + first, one.lengths) for one, first in zip(texts, before)),
        strict=True,
    )
    return Wordpieces(*(None if column[0] is None else np.concatenate(column) for column in columns))


def make_tables(pieces: Wordpieces, tokenizer: Any) -> tuple[list[Any], np.ndarray]:
    """Put wordpieces into tables with a row for each span.

    RETURNS (tuple): the tables, as the transformer takes them; and the cell of each wordpiece, counted through all.
    """
    from spacy_transformers.data_classes import WordpieceBatch

    batches, cells, first = [], np.zeros(len(pieces.ids), "int32"), 0
    span = np.repeat(np.arange(len(pieces.sizes)), pieces.sizes)
    for rows in split_rows(pieces.sizes):
        sizes, taken = pieces.sizes[rows, None], np.isin(span, rows)
        there = np.arange(sizes.max()) < sizes
        if tokenizer.padding_side == "left":
            there = there[:, ::-1]
        ids, types = (
            None if values is None else lay_out(values[taken], there, padding)
            for values, padding in ((pieces.ids, tokenizer.pad_token_id), (pieces.types, tokenizer.pad_token_type_id))
        )
        batches.append(WordpieceBatch([], ids, there.astype("float32"), [], types))  # type: ignore[arg-type]
        cells[taken] = first + np.flatnonzero(there)
        first += there.size
    return batches, cells


def lay_out(values: np.ndarray, there: np.ndarray, padding: int) -> np.ndarray:
    """Put values into the cells of a table that are there, row by row, and padding into the others."""
    table = np.full(there.shape, padding)
    table[there] = values
    return table


def split_rows(lengths: np.ndarray) -> list[np.ndarray]:
    """Split rows into tables, each as wide as its longest row, so that they have the fewest cells.

    RETURNS (list[np.ndarray]): the rows' numbers, in order; one table, or as many as needed for PADDING, or TABLES.
    """
    sizes, counts = np.unique(lengths, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(counts)])
    # The cells of a table that has the sizes from one number to another, and rows as long as the last of them.
    rows, widths = ends - ends[:, None], np.concatenate([[0], sizes])
    cells = np.where(rows > 0, rows * widths, np.inf)
    fewest, cuts = cells[0], list[np.ndarray]()
    while len(cuts) + 1 < TABLES and lengths.sum() < (1 - PADDING) * fewest[-1]:
        sums = fewest[:, None] + cells
        fewest = sums.min(axis=0)
        cuts.append(sums.argmin(axis=0))
    table, end = np.zeros(len(sizes), int), len(sizes)
    for cut in reversed(cuts):
        end = int(cut[end])
        table[:end] += 1
    table_of_row = table[np.searchsorted(sizes, lengths)]
    return [np.flatnonzero(table_of_row == number) for number in sorted({*table.tolist()}, reverse=True)]
