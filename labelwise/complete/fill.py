"""Fill what isn't known of one text with spans that a pipeline found there.

Gold is never overwritten, and a span that was rejected is never filled in. What was filled is in
`doc.spans["completed"]`, with its probability in `attrs["scores"]`, as well as among the entities.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from labelwise.corpus.docbin_reader import StoredDoc, merged_data
from labelwise.recognizer.per_label import Found, choose_flat
from labelwise.train.reader import without_missing

COMPLETED = "completed"


class Candidate(NamedTuple):
    """A span of a label that a text isn't complete for: start and end in tokens, its label, and its probability."""

    start: int
    end: int
    label: str
    probability: float


class Filled(NamedTuple):
    """A text whose unmarked tokens are outside any entity, and what became of each candidate.

    outcomes (list[str]): "filled"; or why not: "not plausible", "rejected", "white space at an end", which spaCy's ner
        can't learn and fails with error E024, "overlaps gold", "overlaps another".
    """

    doc: Doc
    outcomes: list[str]


def fill(stored: StoredDoc, candidates: Sequence[Candidate], implausible: Collection[str], vocab: Vocab) -> Filled:
    """Fill a text.

    candidates (Sequence[Candidate]): what was found of the labels that the text isn't complete for.
    implausible (Collection[str]): labels that aren't filled in: what was found of them isn't likely to be right.
    """
    labels = sorted({candidate.label for candidate in candidates})
    doc = without_missing(stored).to_doc(vocab)
    blank = np.array([token.text.isspace() for token in doc], bool)
    taken = np.array([token.ent_iob_ in ("", "B", "I") for token in doc], bool)  # gold, also without token boundaries
    rejected = {(start, end, stored.strings[label]) for start, end, label in stored.rejected}
    outcomes = [_why_not(candidate, implausible, rejected, blank, taken) for candidate in candidates]
    free = [number for number, why in enumerate(outcomes) if not why]
    columns = [[candidates[number][column] for number in free] for column in (0, 1, 3)]
    starts, ends = (np.array(column, int) for column in columns[:2])
    places = np.array([labels.index(candidates[number].label) for number in free], int)
    chosen = {free[place] for place in choose_flat(Found(places, starts, ends, np.array(columns[2], float)))}
    for number in free:
        outcomes[number] = "filled" if number in chosen else "overlaps another"
    kept = [candidates[number] for number in sorted(chosen)]
    spans = [Span(doc, start, end, label=label) for start, end, label, _ in kept]
    missing = [doc[token.i : token.i + 1] for token in doc if not token.ent_iob]
    doc.set_ents([*doc.ents, *spans], missing=missing, default="outside")
    group = SpanGroup(doc, name=COMPLETED, spans=spans, attrs={"scores": [round(each.probability, 4) for each in kept]})
    doc.spans[COMPLETED] = group
    # Provenance, not annotation: what the merge said of the text stays.
    doc.user_data["labelwise"] = merged_data(stored)
    return Filled(doc, outcomes)


def _why_not(
    candidate: Candidate,
    implausible: Collection[str],
    rejected: set[tuple[int, int, str]],
    blank: np.ndarray,
    taken: np.ndarray,
) -> str:
    if candidate.label in implausible:
        return "not plausible"
    if tuple(candidate[:3]) in rejected:
        return "rejected"
    if blank[[candidate.start, candidate.end - 1]].any():
        return "white space at an end"
    return "overlaps gold" if taken[candidate.start : candidate.end].any() else ""
