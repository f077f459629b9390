"""Packed Docs are what DocBin makes of them."""

import spacy
from spacy.tokens import Doc, DocBin

from labelwise.corpus.annotation import GOLD, INCORRECT, Annotation, annotate
from labelwise.corpus.docbin_writer import DocWriter
from tests.conftest import stored, write_docs


def make_docs(nlp) -> list[Doc]:
    docs = [nlp.make_doc(text) for text in ("Ann met Bob in  Rome.\n", "TAG \U0001f600 caf\xe9", "x")]
    docs[0].set_ents([docs[0].char_span(0, 3, "PERSON")], missing=[docs[0][2:3]], default="outside")
    docs[0].spans[GOLD] = [docs[0].char_span(0, 3, "PERSON"), docs[0].char_span(0, 7, "LAW")]
    docs[0].spans[INCORRECT] = [docs[0].char_span(8, 11, "Ré")]
    docs[1].set_ents([], default="missing")
    for doc in docs[1:]:
        doc.spans[GOLD] = doc.spans[INCORRECT] = []
    for doc in docs:
        annotate(doc, Annotation([(0, 1, "LAW", ["a", "b"])], [(2, 3, "Ré")], {"Ré": "partial"}, ["a"]))
    return docs


def view(doc: Doc):
    spans = {name: [(s.start, s.end, s.label_) for s in group] for name, group in doc.spans.items()}
    tokens = [(t.text, t.whitespace_, t.ent_iob, t.ent_type_) for t in doc]
    return doc.text, tokens, spans, doc.user_data, doc.cats, doc.has_unknown_spaces


def test_they_read_as_those_of_a_docbin(tmp_path):
    nlp = spacy.blank("en")
    docs = make_docs(nlp)
    write_docs(docs, tmp_path / "ours.spacy")
    DocBin(["ENT_IOB", "ENT_TYPE"], store_user_data=True, docs=docs).to_disk(tmp_path / "theirs.spacy")
    ours, theirs = (
        [view(doc) for doc in DocBin().from_disk(tmp_path / name).get_docs(spacy.blank("xx").vocab)]
        for name in ("ours.spacy", "theirs.spacy")
    )
    assert ours == theirs
    assert [seen[0] for seen in ours] == [doc.text for doc in docs]


def test_span_groups_are_spacys_bytes():
    docs = make_docs(spacy.blank("en"))
    writer = DocWriter()
    for doc in docs:
        writer.add(stored(doc), *zip(*((token.idx, token.idx + len(token)) for token in doc), strict=True))
    assert writer.groups == [doc.spans.to_bytes() for doc in docs]
