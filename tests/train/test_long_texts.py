"""How long texts are cut."""

import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from labelwise.train.long_texts import cut_doc
from tests.conftest import stored

NLP = spacy.blank("en")
REJECTED = "incorrect_spans"


@st.composite
def annotated_docs(draw) -> Doc:
    """Docs of up to 24 tokens, with flat entities, missing values, and rejected spans of any kind."""
    tokens = draw(st.lists(st.tuples(st.sampled_from(["w", "v", ".", "\n"]), st.booleans()), min_size=1, max_size=24))
    doc = Doc(NLP.vocab, words=[word for word, _ in tokens], spaces=[space for _, space in tokens])
    places = st.integers(0, len(doc) - 1)
    starts = sorted(draw(st.sets(places, max_size=5)))
    ends = [*starts[1:], len(doc)]
    ents = [
        Span(doc, start, min(end, start + draw(st.integers(1, 4))), draw(st.sampled_from("AB")))
        for start, end in zip(starts, ends, strict=False)
    ]
    doc.set_ents(ents, default=draw(st.sampled_from(["outside", "missing"])))
    doc.spans[REJECTED] = [
        Span(doc, start, min(len(doc), start + draw(st.integers(1, 4))), draw(st.sampled_from("AC")))
        for start in draw(st.lists(places, max_size=3))
    ]
    return doc


@settings(max_examples=300, deadline=None)
@given(annotated_docs(), st.integers(1, 8))
def test_pieces_are_what_their_description_says(doc, longest):
    def found_in(doc: Doc, offset: int = 0) -> list[tuple]:
        kinds = (("entity", doc.ents), ("rejected", doc.spans.get(REJECTED, ())))
        return [(kind, offset + s.start_char, offset + s.end_char, s.label_) for kind, spans in kinds for s in spans]

    spans = [(span.start, span.end) for span in (*doc.ents, *doc.spans[REJECTED])]
    places = [
        token.i + 1
        for token in doc[:-1]
        if (token.whitespace_ or token.is_space) and not any(start <= token.i < end - 1 for start, end in spans)
    ]
    pieces = cut_doc(stored(doc), longest)

    assert "".join(piece.text for piece in pieces) == doc.text
    assert [iob for piece in pieces for iob in piece.iob.tolist()] == [token.ent_iob for token in doc]
    survived, start = [], 0
    for piece in pieces:
        survived += found_in(piece.to_doc(NLP.vocab), doc[start].idx)
        # The place of each cut follows from the start of its piece.
        wanted = len(doc)
        if wanted - start > longest:
            within = [place for place in places if start < place <= start + longest]
            beyond = [place for place in places if place > start + longest]
            wanted = max(within) if within else min(beyond, default=len(doc))
        start += len(piece)
        assert start == wanted
    assert sorted(survived) == sorted(found_in(doc))
