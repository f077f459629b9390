"""Cut long texts into pieces, between sentences if possible, and never inside an entity."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from labelwise.corpus.annotation import Annotation
from labelwise.corpus.docbin_reader import INSIDE, StoredDoc, TokenSpan

SENTENCE_ENDS = frozenset(".!?…。！？")


def cut_doc(doc: StoredDoc, longest: int) -> list[StoredDoc]:
    """Cut a text into pieces of at most `longest` tokens, if its spans allow it.

    A cut is made after white space, not inside an entity or a rejected span, at the last end of a sentence that leaves
    a piece at least half of `longest`, else at the last place there is. A piece without any such place is longer.
    """
    if len(doc) <= longest:
        return [doc]
    cuts = possible_cuts(doc)
    pieces, start = [], 0
    while len(doc) - start > longest:
        within = [(sentence, cut) for cut, sentence in cuts if start < cut <= start + longest]
        good = [cut for sentence, cut in within if sentence and cut - start >= longest / 2]
        later = (cut for cut, _ in cuts if cut > start + longest)
        end = good[-1] if good else within[-1][1] if within else next(later, len(doc))
        pieces.append(piece(doc, start, end))
        start = end
    return [*pieces, piece(doc, start, len(doc))] if start < len(doc) else pieces


def possible_cuts(doc: StoredDoc) -> Sequence[tuple[int, bool]]:
    """List the tokens before which a text can be cut, and whether a sentence ends there."""
    inside = doc.iob == INSIDE
    for start, end, _ in (*doc.gold, *doc.rejected):
        inside[start + 1 : end] = True
    cuts = []
    for token in range(1, len(doc)):
        before = doc.strings[int(doc.words[token - 1])]
        if not inside[token] and (doc.spaces[token - 1] or before.isspace()):
            cuts.append((token, before in SENTENCE_ENDS or "\n" in before))
    return cuts


def piece(doc: StoredDoc, start: int, end: int) -> StoredDoc:
    """Take a piece, with the spans inside it."""

    def inside(spans: Sequence[TokenSpan]) -> list[TokenSpan]:
        """Move the spans that begin in the piece."""
        return [(first - start, last - start, label) for first, last, label in spans if start <= first < end]

    words, spaces, iob, labels = (array[start:end] for array in (doc.words, doc.spaces, doc.iob, doc.labels))
    return replace(
        doc,
        words=words,
        spaces=spaces,
        iob=iob,
        labels=labels,
        gold=inside(doc.gold),
        rejected=inside(doc.rejected),
        merged=_moved(doc.merged, doc, start, end) if doc.merged else None,
    )


def _moved(annotation: Annotation, doc: StoredDoc, start: int, end: int) -> Annotation:
    """Return what a merge stored with a text as if the piece were the text: spans in characters move along."""
    lengths = [len(doc.strings[word]) for word in doc.words[:end].tolist()]
    ends = np.cumsum(np.array(lengths) + doc.spaces[:end])
    first, last = int(ends[start - 1]) if start else 0, int(ends[-1])

    def inside(spans: Sequence[Any]) -> list[Any]:
        """Move the spans that touch the piece."""
        touching = [span for span in spans if span[0] < last and span[1] > first]
        return [(max(begin - first, 0), min(stop, last) - first, *rest) for begin, stop, *rest in touching]

    return msgspec.structs.replace(annotation, gold=inside(annotation.gold), rejected=inside(annotation.rejected))
