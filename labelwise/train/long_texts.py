"""Cut long texts into pieces at white space, and never inside an entity."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from labelwise.corpus.annotation import Annotation
from labelwise.corpus.docbin_reader import INSIDE, StoredDoc


def cut_doc(doc: StoredDoc, longest: int) -> list[StoredDoc]:
    """Cut a text into pieces of at most `longest` tokens, if its spans allow it.

    A cut follows white space, as late as possible, and isn't inside an entity or a rejected span. A piece without such
    a place is longer.
    """
    if len(doc) <= longest:
        return [doc]
    inside = doc.iob == INSIDE
    for start, end, _ in (*doc.gold, *doc.rejected):
        inside[start + 1 : end] = True
    blank = [space or doc.strings[word].isspace() for word, space in zip(doc.words.tolist(), doc.spaces, strict=True)]
    cuts = [*(token for token in range(1, len(doc)) if blank[token - 1] and not inside[token]), len(doc)]
    pieces, start = [], 0
    while start < len(doc):
        cuts = [cut for cut in cuts if cut > start]
        end = max((cut for cut in cuts if cut <= start + longest), default=cuts[0])
        pieces.append(piece(doc, start, end))
        start = end
    return pieces


def piece(doc: StoredDoc, start: int, end: int) -> StoredDoc:
    """Return a piece with the spans inside it, also of its annotation by a merge."""
    columns = {name: getattr(doc, name)[start:end] for name in ("words", "spaces", "iob", "labels")}
    for name in ("gold", "rejected"):
        columns[name] = [
            (first - start, last - start, label) for first, last, label in getattr(doc, name) if start <= first < end
        ]
    starts, ends = doc.offsets()
    merged = doc.merged and moved(doc.merged, int(starts[start]), int(ends[end - 1]))
    return replace(doc, **columns, merged=merged)


def moved(annotation: Annotation, first: int, last: int) -> Annotation:
    """Move the annotation of a merge to the part of its text from `first` to `last`."""

    def touching(spans: Sequence[Any]) -> list[Any]:
        inside = [span for span in spans if span[0] < last and span[1] > first]
        return [(max(begin - first, 0), min(stop, last) - first, *rest) for begin, stop, *rest in inside]

    return msgspec.structs.replace(annotation, gold=touching(annotation.gold), rejected=touching(annotation.rejected))
