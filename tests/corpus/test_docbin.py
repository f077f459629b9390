import zlib

import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin

from labelwise.base.errors import InputError
from labelwise.corpus.annotation import GOLD, INCORRECT, Annotation, annotate, entities
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.sources.formats import read_items
from spacy_per_label import known

NLP = spacy.blank("en")


def make_docs() -> list[Doc]:
    docs = [NLP.make_doc(text) for text in ("Ann met Bob in  Rome.\n", "", "TAG \U0001f600 caf\xe9 x", "unmarked text")]
    docs[0].set_ents([docs[0].char_span(0, 7, "LAW"), docs[0].char_span(16, 20, "Ré")], missing=[docs[0][2:3]])
    docs[0].spans[GOLD] = [docs[0].char_span(0, 3, "PERSON"), *docs[0].ents]
    docs[0].spans[INCORRECT] = [docs[0].char_span(8, 11, "Ré"), docs[0].char_span(4, 20, "ONLY_REJECTED")]
    docs[2].set_ents([docs[2].char_span(4, 5, "LAW")], default="missing")
    docs[2].spans[INCORRECT] = [docs[2].char_span(0, 3, "LAW")]
    return docs


def annotated_docs() -> list[Doc]:
    docs = make_docs()
    for doc in docs:
        annotate(doc, Annotation([(0, 1, "LAW", ["a", "b"])], [(2, 3, "Ré")], {"Ré": "partial"}, ["a"]))
    return docs


def view(doc: Doc):
    spans = {name: [(s.start, s.end, s.label_) for s in group] for name, group in doc.spans.items() if group}
    tokens = [(token.text, token.whitespace_, token.ent_iob, token.ent_type_) for token in doc]
    return doc.text, tokens, spans, doc.user_data.get("labelwise"), doc.cats, doc.has_unknown_spaces


def read_by_spacy(path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))


def test_groups_of_spans_have_the_names_that_the_recognizer_reads():
    assert (GOLD, INCORRECT) == (known.GOLD, known.REJECTED)


@pytest.mark.parametrize("user_data", [True, False])
@pytest.mark.parametrize("attrs", [["ENT_IOB", "ENT_TYPE"], ["LEMMA", "ENT_TYPE", "TAG", "ENT_IOB"]])
def test_docs_are_those_that_spacy_reads(tmp_path, attrs, user_data):
    file = tmp_path / "part.spacy"
    docs = make_docs()
    docs[2].spans["same"] = docs[2].spans[INCORRECT]
    DocBin(attrs, user_data, docs).to_disk(file)
    expected, stored = read_by_spacy(file), list(read_stored_docs(file))
    vocab = spacy.blank("xx").vocab
    for doc in expected:
        doc.spans.pop("same", None)
    assert [view(doc.to_doc(vocab)) for doc in stored] == [view(doc) for doc in expected]
    assert [(doc.text, doc.entities()) for doc in stored] == [(doc.text, entities(doc)) for doc in expected]
    assert [len(doc) for doc in stored] == [8, 0, 4, 2]
    # The file has something to get wrong.
    assert [token[2] for token in view(expected[0])[1]] == [3, 1, 0, 2, 2, 3, 2, 2]


@pytest.mark.guarantee("damaged")
@pytest.mark.parametrize(
    "content",
    [
        b"not compressed",
        zlib.compress(b"\xc1 no msgpack"),
        zlib.compress(srsly.msgpack_dumps([1, 2])),
        DocBin(attrs=["ENT_TYPE"], docs=[NLP.make_doc("a")]).to_bytes(),
        DocBin(attrs=["ENT_IOB", "ENT_TYPE"], docs=[NLP.make_doc("a b c")]).to_bytes()[:-9],
    ],
    ids=["text", "no msgpack", "list", "no ENT_IOB", "cut off"],
)
def test_a_file_of_another_kind_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "part-7.spacy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"part-7\.spacy: not a \.spacy file .*; (run the merge|make it) again"):
        list(read_stored_docs(path))


@pytest.mark.guarantee("damaged")
def test_a_byte_that_has_changed_is_an_error_for_every_reader(tmp_path):
    path = tmp_path / "a.spacy"
    DocBin(["ENT_IOB", "ENT_TYPE"], True, make_docs()).to_disk(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.spacy: not a \.spacy file .*; make it again"):
        list(read_stored_docs(path))
    with pytest.raises(InputError, match=r"a\.spacy: not a \.spacy file .*; make it again"):
        list(read_items(path))
