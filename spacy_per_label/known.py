"""Store a Doc's annotation, complete or partial, for training and evaluation.

Annotators may have annotated every entity of a label ("complete", the default), have accepted or rejected single spans
("partial"), or not have looked for it ("none"):

>>> import spacy
>>> from spacy.tokens import Span
>>> from spacy_per_label import get_known, set_known
>>> doc = spacy.blank("en")("Ann met Bob in Rome.")
>>> ann, rome, bob = Span(doc, 0, 1, "PERSON"), Span(doc, 4, 5, "PLACE"), Span(doc, 2, 3, "PLACE")
>>> set_known(doc, gold=[ann, rome], rejected=[bob], coverage={"PERSON": "none", "PLACE": "partial"})
>>> get_known(doc).coverage["PLACE"]
'partial'

Accepted spans are in `doc.spans["gold"]`, where they may overlap; rejected ones in `doc.spans["incorrect_spans"]`, as
spaCy's documentation names them; all else is in `doc.user_data["per_label"]`. A `DocBin` with `store_user_data=True`
keeps all of it. Without `doc.spans["gold"]`, `doc.ents` is gold, and tokens without a value are unknown for every
label, as in spaCy.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span, SpanGroup

GOLD, REJECTED, USER_DATA = "gold", "incorrect_spans", "per_label"
MISSING, BEGINS = 0, 3  # spaCy's ENT_IOB

State = Literal["partial", "none"]  # of a label that a text isn't complete for
AnyState = Literal["complete", State]  # of any label
SpanKey = tuple[int, int, str]  # start and end in characters, label


class Known(NamedTuple):
    """A text's known annotation.

    gold, rejected (Sequence[Span]): accepted and rejected spans.
    coverage (Mapping[str, State]): labels that the text isn't complete for.
    unaligned (Sequence[SpanKey]): misaligned accepted spans, which have no tags.
    missing (Sequence[tuple[int, int]]): start and end in characters of unannotated tokens.
    """

    gold: Sequence[Span]
    rejected: Sequence[Span]
    coverage: Mapping[str, State]
    unaligned: Sequence[SpanKey]
    missing: Sequence[tuple[int, int]] = ()


def key_of(span: Span) -> SpanKey:
    """Return a key that is equal for equal spans of several Docs of a text."""
    return span.start_char, span.end_char, span.label_


def judge(known: Known, spans: Iterable[Span]) -> Iterator[bool | None]:
    """Return True, False or None (not annotated) for each span; spans may be from another Doc of the text.

    A span that touches misaligned gold isn't right.
    """
    gold = set(map(key_of, known.gold))
    judged = gold.union(map(key_of, known.rejected))
    for start, end, label in map(key_of, spans):
        key, state = (start, end, label), known.coverage.get(label)
        complete = state is None and not any(first < end and last > start for first, last in known.missing)
        if complete or (state != "none" and key in judged):
            yield key in gold and not any(
                label == name and first < end and last > start for first, last, name in known.unaligned
            )
        else:
            yield None


def set_known(
    doc: Doc,
    *,
    gold: Iterable[Span] = (),
    rejected: Iterable[Span] = (),
    coverage: Mapping[str, AnyState] = {},
    unaligned: Iterable[SpanKey] = (),
) -> None:
    """Store a Doc's known annotation, replacing an earlier one; see `Known`.

    coverage (Mapping[str, AnyState]): other labels are complete.
    RAISES (ValueError): if a label has another state.
    """
    for label, state in coverage.items():
        if state not in get_args(AnyState):
            raise ValueError(f"coverage of {label}: {state!r}; give one of {', '.join(map(repr, get_args(AnyState)))}")
    for name, spans in ((GOLD, gold), (REJECTED, rejected)):
        doc.spans[name] = spans if isinstance(spans, SpanGroup) else list(spans)
    incomplete = {label: state for label, state in coverage.items() if state != "complete"}
    doc.user_data[USER_DATA] = {"coverage": incomplete, "unaligned": [list(span) for span in unaligned]}


def get_known(doc: Doc) -> Known:
    """Return a Doc's known annotation; without any, its entities are gold, as in spaCy."""
    stored = doc.user_data.get(USER_DATA, {})
    gold = doc.spans.get(GOLD, doc.ents)
    unaligned = [(start, end, label) for start, end, label in stored.get("unaligned", ())]
    unknown = [] if GOLD in doc.spans else np.flatnonzero(missing_tokens(doc)).tolist()
    missing = [(token.idx, token.idx + len(token)) for token in (doc[number] for number in unknown)]
    return Known(list(gold), list(doc.spans.get(REJECTED, ())), stored.get("coverage", {}), unaligned, missing)


def missing_tokens(doc: Doc) -> np.ndarray:
    """Find tokens without a value for spaCy's entities, or blocked."""
    iob, types = doc.to_array([ENT_IOB, ENT_TYPE]).T
    return (iob == MISSING) | ((iob == BEGINS) & (types == 0))
