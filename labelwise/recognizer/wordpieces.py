"""What a transformer is given of texts: their wordpieces, and where each token finds its own.

A text's are the same in every epoch: they are found once, by spacy-transformers, and kept.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

KEPT = 256 * 2**20  # bytes of wordpieces, some ten million of them


class Pieces(NamedTuple):
    """The wordpieces of a text, which is cut into spans.

    ids, types (np.ndarray): of the wordpieces of all spans, one after the other; types are empty if the model has none.
    sizes (np.ndarray): how many wordpieces each span has.
    spans, columns (np.ndarray): of each wordpiece of each token, the number of its span, and its place in there.
    lengths (np.ndarray): how many of those each token has.
    """

    ids: np.ndarray
    types: np.ndarray
    sizes: np.ndarray
    spans: np.ndarray
    columns: np.ndarray
    lengths: np.ndarray


class PaddedPieces(NamedTuple):
    """The wordpieces of several texts, as a transformer takes them.

    ids, types (np.ndarray): of the shape (spans, longest span); no types if the model has none.
    mask (np.ndarray): 1 where there is a wordpiece, 0 where it is padded.
    places (np.ndarray): of each wordpiece of each token, in the table's cells.
    lengths (np.ndarray): how many of those each token has.
    """

    ids: np.ndarray
    types: np.ndarray | None
    mask: np.ndarray
    places: np.ndarray
    lengths: np.ndarray


class Wordpieces:
    """Finds the wordpieces of Docs, each text's once.

    tokenizer (Any): Hugging Face's.
    get_spans (Callable): cuts Docs into spans, as spacy-transformers' span getters do.
    """

    def __init__(self, tokenizer: Any, get_spans: Callable[[Sequence[Doc]], list[list[Span]]]) -> None:
        """Begin with none."""
        self.tokenizer = tokenizer
        self.get_spans = get_spans
        self.kept: dict[tuple[str, int], Pieces] = {}
        self.room = KEPT

    def of(self, doc: Doc) -> Pieces:
        """Find the wordpieces of a Doc."""
        key = (doc.text, len(doc))
        if (pieces := self.kept.get(key)) is None:
            pieces = self._find(doc)
            self.room -= 2 * len(doc.text) + sum(array.nbytes + 100 for array in pieces)
            # Texts come again in another order: what is kept once there is no more room is as good as any.
            if self.room > 0:
                self.kept[key] = pieces
        return pieces

    def _find(self, doc: Doc) -> Pieces:
        from spacy_transformers.align import get_alignment, get_alignment_via_offset_mapping
        from spacy_transformers.data_classes import WordpieceBatch
        from spacy_transformers.layers.transformer_model import huggingface_tokenize
        from spacy_transformers.truncate import truncate_oversize_splits

        [spans] = self.get_spans([doc])
        spans = [span for span in spans if len(span)]
        if not spans:
            none = np.zeros(0, "int32")
            return Pieces(none, none, none, none, none, np.zeros(len(doc), "int32"))
        found = huggingface_tokenize(self.tokenizer, [span.text for span in spans])
        batch = WordpieceBatch.from_batch_encoding(found)
        if "offset_mapping" in found:
            align = get_alignment_via_offset_mapping(spans, found["offset_mapping"])
        else:
            align = get_alignment(spans, batch.strings, self.tokenizer.all_special_tokens)
        batch, align = truncate_oversize_splits(batch, align, self.tokenizer.model_max_length)
        width, there = batch.input_ids.shape[1], batch.attention_mask > 0
        types = batch.token_type_ids
        return Pieces(
            ids=batch.input_ids[there].astype("int32"),
            types=np.zeros(0, "int8") if types is None else types[there].astype("int8"),
            sizes=there.sum(axis=1, dtype="int32"),
            spans=align.dataXd // width,
            columns=align.dataXd % width,
            lengths=np.asarray(align.lengths),
        )

    def pad(self, texts: Sequence[Pieces]) -> PaddedPieces:
        """Put the wordpieces of texts into tables, a row for each span, padded on the right."""
        sizes = np.concatenate([text.sizes for text in texts])
        width = int(sizes.max(initial=0))
        there = np.arange(width) < sizes[:, None]
        spans_before = np.cumsum([0, *(len(text.sizes) for text in texts)])
        rows = np.concatenate([text.spans + before for text, before in zip(texts, spans_before, strict=False)])

        def table(columns: list[np.ndarray], padding: int) -> np.ndarray:
            """Lay out what the wordpieces have."""
            padded = np.full(there.shape, padding, "int64")
            padded[there] = np.concatenate(columns)
            return padded

        has_types = any(len(text.types) for text in texts)
        return PaddedPieces(
            ids=table([text.ids for text in texts], self.tokenizer.pad_token_id or 0),
            types=table([text.types for text in texts], self.tokenizer.pad_token_type_id) if has_types else None,
            mask=there.astype("float32"),
            places=(rows * width + np.concatenate([text.columns for text in texts])).astype("int32"),
            lengths=np.concatenate([text.lengths for text in texts]),
        )


def wordpieces_of(nlp: Language) -> Wordpieces | None:
    """Make what finds the wordpieces for a pipeline's transformer; None if there is none."""
    if "transformer" not in nlp.pipe_names:
        return None
    model: Any = nlp.get_pipe("transformer").model  # type: ignore[attr-defined]
    return Wordpieces(model.tokenizer, model.attrs["get_spans"])
