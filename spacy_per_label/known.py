"""How a Doc says what is known of it, so that a recognizer learns from it, or is judged by it.

Annotators may have marked every entity of a label ("complete", where nothing else is said), have accepted or rejected
single spans of it ("partial"), or not have looked for it ("none"):

>>> import spacy
>>> from spacy.tokens import Span
>>> from spacy_per_label import get_known, set_known
>>> doc = spacy.blank("en")("Ann met Bob in Rome.")
>>> ann, rome, bob = Span(doc, 0, 1, "PERSON"), Span(doc, 4, 5, "PLACE"), Span(doc, 2, 3, "PLACE")
>>> set_known(doc, gold=[ann, rome], rejected=[bob], coverage={"PERSON": "none", "PLACE": "partial"})
>>> get_known(doc).coverage["PLACE"]
'partial'

Nothing is hidden: accepted spans are in `doc.spans["gold"]`, where they may overlap; rejected ones in
`doc.spans["incorrect_spans"]`, the name that spaCy's pages give them; all else is in `doc.user_data["per_label"]`. A
`DocBin` with `store_user_data=True` keeps all of it. Where `doc.spans` has no "gold", `doc.ents` is, and tokens without
a value are unknown for every label, as in spaCy.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from spacy.tokens import Doc, Span, SpanGroup

GOLD, REJECTED, USER_DATA = "gold", "incorrect_spans", "per_label"

State = Literal["partial", "none"]  # of a label that a text isn't complete for
SpanKey = tuple[int, int, str]  # start and end in characters, label


class Known(NamedTuple):
    """What is known of a text.

    gold, rejected (Sequence[Span]): the spans that annotators accepted, and those that they rejected.
    coverage (Mapping[str, State]): the labels that the text isn't complete for.
    unaligned (Sequence[SpanKey]): accepted spans that don't begin and end with tokens, so that no tags can say them.
    """

    gold: Sequence[Span]
    rejected: Sequence[Span]
    coverage: Mapping[str, State]
    unaligned: Sequence[SpanKey]


def key_of(span: Span) -> SpanKey:
    """Return what is equal for spans of several Docs of a text."""
    return span.start_char, span.end_char, span.label_


def judge(known: Known, spans: Iterable[Span]) -> Iterator[bool | None]:
    """Return, for each span, even of another Doc of the text, whether it is right; None if nobody has said.

    A span that touches gold without token boundaries isn't right: it isn't the one that annotators marked.
    """
    gold, rejected = set(map(key_of, known.gold)), set(map(key_of, known.rejected))
    for start, end, label in map(key_of, spans):
        key, state = (start, end, label), known.coverage.get(label)
        if state is None or (state == "partial" and key in gold | rejected):
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
    coverage: Mapping[str, State] = {},
    unaligned: Iterable[SpanKey] = (),
) -> None:
    """Store with a Doc what is known of it; see `Known`. It replaces what was known before."""
    for name, spans in ((GOLD, gold), (REJECTED, rejected)):
        doc.spans[name] = spans if isinstance(spans, SpanGroup) else list(spans)
    doc.user_data[USER_DATA] = {"coverage": dict(coverage), "unaligned": [list(span) for span in unaligned]}


def get_known(doc: Doc) -> Known:
    """Return what is known of a Doc; of one without any of it, as spaCy reads it: its entities are gold."""
    told = doc.user_data.get(USER_DATA, {})
    gold = doc.spans.get(GOLD, doc.ents)
    unaligned = [(start, end, label) for start, end, label in told.get("unaligned", ())]
    return Known(list(gold), list(doc.spans.get(REJECTED, ())), told.get("coverage", {}), unaligned)
