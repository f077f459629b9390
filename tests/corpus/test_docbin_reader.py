"""What is read as arrays, against spaCy's own Docs."""

import zlib

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span

from labelwise.corpus.annotation import entities
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.docbin_writer import SPAN, encode
from labelwise.errors import InputError
from labelwise.sources.formats import read_items

NLP = spacy.blank("en")
REJECTED = "incorrect_spans"


def make_docs() -> list[Doc]:
    """Docs with entities, missing values, rejected spans that overlap, white space, other scripts; and an empty one."""
    docs = [NLP.make_doc(text) for text in ("Ann met Bob in  Rome.\n", "", "TAG \U0001f600 caf\xe9 x", "unmarked text")]
    docs[0].set_ents([docs[0].char_span(0, 7, "LAW"), docs[0].char_span(16, 20, "Ré")], missing=[docs[0][2:3]])
    docs[0].spans["gold"] = [docs[0].char_span(0, 3, "PERSON")]
    docs[0].spans[REJECTED] = [docs[0].char_span(8, 11, "Ré"), docs[0].char_span(4, 20, "ONLY_REJECTED")]
    docs[2].set_ents([docs[2].char_span(4, 5, "LAW")], default="missing")
    docs[2].spans[REJECTED] = [docs[2].char_span(0, 3, "LAW")]
    docs[2].spans["same"] = docs[2].spans[REJECTED]
    return docs


def view(doc: Doc):
    """What training needs of a Doc."""
    rejected = [(span.start, span.end, span.label_) for span in doc.spans.get(REJECTED, ())]
    tokens = [(token.text, token.whitespace_, token.ent_iob, token.ent_type_) for token in doc]
    return doc.text, tokens, [(ent.text, ent.label_) for ent in doc.ents], rejected


def write(path, docs, attrs=("ENT_IOB", "ENT_TYPE"), user_data=True):
    DocBin(attrs=list(attrs), store_user_data=user_data, docs=docs).to_disk(path)
    return path


@pytest.mark.parametrize("user_data", [True, False])
@pytest.mark.parametrize("attrs", [["ENT_IOB", "ENT_TYPE"], ["LEMMA", "ENT_TYPE", "TAG", "ENT_IOB"]])
def test_docs_are_those_that_spacy_reads(tmp_path, attrs, user_data):
    file = write(tmp_path / "part.spacy", make_docs(), attrs, user_data)
    expected = list(DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab))
    stored = list(read_stored_docs(file))
    vocab = spacy.blank("xx").vocab
    assert [view(doc.to_doc(vocab)) for doc in stored] == [view(doc) for doc in expected]
    assert [doc.text for doc in stored] == [doc.text for doc in expected]
    assert [doc.entities() for doc in stored] == [entities(doc) for doc in expected]
    assert [len(doc) for doc in stored] == [8, 0, 4, 2]
    # The file has something to get wrong.
    assert [token[2] for token in view(expected[0])[1]] == [3, 1, 0, 2, 2, 3, 2, 2]
    assert [len(view(doc)[3]) for doc in expected] == [2, 0, 1, 0]


def test_a_file_without_docs_has_none(tmp_path):
    assert list(read_stored_docs(write(tmp_path / "part.spacy", []))) == []


def test_a_doc_makes_its_own_strings_known_and_a_memory_zone_forgets_them(tmp_path):
    docs = [NLP.make_doc("zyx1"), NLP.make_doc("zyx2")]
    docs[0].set_ents([Span(docs[0], 0, 1, "ZYX_LABEL")])
    stored = list(read_stored_docs(write(tmp_path / "part.spacy", docs)))
    nlp = spacy.blank("en")
    with nlp.memory_zone():
        assert stored[0].to_doc(nlp.vocab)[0].text == "zyx1"
        assert ("zyx1" in nlp.vocab.strings, "zyx2" in nlp.vocab.strings) == (True, False)
    assert "zyx1" not in nlp.vocab.strings
    assert stored[0].to_doc(nlp.vocab)[0].ent_type_ == "ZYX_LABEL"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not compressed",
        zlib.compress(b"\xc1 no msgpack"),
        zlib.compress(srsly.msgpack_dumps([1, 2])),
        zlib.compress(srsly.msgpack_dumps({"tokens": b""})),
        DocBin(attrs=["LEMMA"], docs=[NLP.make_doc("a")]).to_bytes(),
        DocBin(attrs=["ENT_TYPE"], docs=[NLP.make_doc("a")]).to_bytes(),
        DocBin(attrs=["ENT_IOB", "ENT_TYPE"], docs=[NLP.make_doc("a b c")]).to_bytes()[:-9],
    ],
    ids=["empty", "text", "no msgpack", "list", "other keys", "no entities", "no ENT_IOB", "cut off"],
)
def test_a_file_of_another_kind_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / "part-7.spacy").write_bytes(content)
    with pytest.raises(InputError, match=r"part-7\.spacy: not a \.spacy file with entities .*; run the merge again"):
        list(read_stored_docs(tmp_path / "part-7.spacy"))


def lengths(*values: int) -> bytes:
    return np.array(values, "<i4").tobytes()


def reach_out(content: dict) -> None:
    """Let a span end behind its text, at a token that the file has."""
    group = encode({"name": "gold", "attrs": {}, "spans": [SPAN.pack(0, 0, 0, 0, 4, 0, 9)]})
    content["span_groups"][1] = encode({group: ["gold"]})


DAMAGED = {
    "tokens that are cut": lambda content: content.update(tokens=content["tokens"][:-8]),
    "a token less": lambda content: content.update(tokens=content["tokens"][: -8 * len(content["attrs"])]),
    "fewer lengths": lambda content: content.update(lengths=content["lengths"][:-4]),
    "longer lengths": lambda content: content.update(lengths=lengths(2, 9)),
    "shorter lengths": lambda content: content.update(lengths=lengths(1, 1)),
    "negative lengths": lambda content: content.update(lengths=lengths(6, -1)),
    "odd lengths": lambda content: content.update(lengths=content["lengths"][:-1]),
    "fewer spaces": lambda content: content.update(spaces=content["spaces"][:-1]),
    "no strings": lambda content: content.update(strings=[]),
    "strings that are none": lambda content: content.update(strings=[1, None]),
    "fewer groups": lambda content: content.update(span_groups=content["span_groups"][:-1]),
    "groups that are none": lambda content: content.update(span_groups=[b"\xc1", b"\xc1"]),
    "user data that is none": lambda content: content.update(user_data=[b"x"]),
    "attributes that are none": lambda content: content.update(attrs="abc"),
    "everything else": lambda content: content.update(tokens=5, lengths=None),
}


def write_damaged(path, damage) -> None:
    docs = [NLP.make_doc("Ann met"), NLP.make_doc("Bob in Rome")]
    whole = DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True, docs=docs).to_bytes()
    content = srsly.msgpack_loads(zlib.decompress(whole))
    damage(content)
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content)))


@pytest.mark.parametrize("damage", DAMAGED)
def test_arrays_that_do_not_fit_together_are_an_error(tmp_path, damage):
    path = tmp_path / "a.spacy"
    write_damaged(path, DAMAGED[damage])
    with pytest.raises(InputError, match=r"a\.spacy: not a \.spacy file with entities .*; run the merge again"):
        list(read_stored_docs(path))
    with pytest.raises(InputError, match=r"a\.spacy: spaCy can't read it: .*; make it again"):
        list(read_items(path))


def test_a_span_outside_of_its_text_is_an_error(tmp_path):
    write_damaged(tmp_path / "a.spacy", reach_out)
    with pytest.raises(InputError, match=r"text 2 has a span that isn't inside it"):
        list(read_stored_docs(tmp_path / "a.spacy"))
