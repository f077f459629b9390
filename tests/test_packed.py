"""What is read, split and completed as arrays, against spaCy's own Docs."""

import zlib

import pytest
import spacy
import srsly
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span

from labelwise.errors import InputError
from labelwise.packed import PackedDoc, is_covered, read_packed, split, without_missing

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


def pack(doc: Doc) -> PackedDoc:
    """Pack a Doc without a file."""
    words, iob, labels, spaces = (doc.to_array(name) for name in ("ORTH", "ENT_IOB", "ENT_TYPE", "SPACY"))
    rejected = [(span.start, span.end, span.label) for span in doc.spans.get(REJECTED, ())]
    strings = {key: doc.vocab.strings[key] for key in {*words.tolist(), *labels.tolist(), *(r[2] for r in rejected)}}
    user_data = srsly.msgpack_dumps(dict(doc.user_data))
    return PackedDoc(words, spaces.astype(bool), iob, labels, rejected, strings, user_data)


def write(path, docs, attrs=("ENT_IOB", "ENT_TYPE"), user_data=True):
    DocBin(attrs=list(attrs), store_user_data=user_data, docs=docs).to_disk(path)
    return path


@pytest.mark.parametrize("user_data", [True, False])
@pytest.mark.parametrize("attrs", [["ENT_IOB", "ENT_TYPE"], ["LEMMA", "ENT_TYPE", "TAG", "ENT_IOB"]])
def test_docs_are_those_that_spacy_reads(tmp_path, attrs, user_data):
    file = write(tmp_path / "part.spacy", make_docs(), attrs, user_data)
    expected = list(DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab))
    packed = list(read_packed(file))
    vocab = spacy.blank("xx").vocab
    assert [view(doc.to_doc(vocab)) for doc in packed] == [view(doc) for doc in expected]
    assert [doc.text for doc in packed] == [doc.text for doc in expected]
    assert [len(doc) for doc in packed] == [8, 0, 4, 2]
    # The file has something to get wrong.
    assert [token[2] for token in view(expected[0])[1]] == [3, 1, 0, 2, 2, 3, 2, 2]
    assert [len(view(doc)[3]) for doc in expected] == [2, 0, 1, 0]


def test_a_file_without_docs_has_none(tmp_path):
    assert list(read_packed(write(tmp_path / "part.spacy", []))) == []


def test_a_doc_makes_its_own_strings_known_and_a_memory_zone_forgets_them(tmp_path):
    docs = [NLP.make_doc("zyx1"), NLP.make_doc("zyx2")]
    docs[0].set_ents([Span(docs[0], 0, 1, "ZYX_LABEL")])
    packed = list(read_packed(write(tmp_path / "part.spacy", docs)))
    nlp = spacy.blank("en")
    with nlp.memory_zone():
        assert packed[0].to_doc(nlp.vocab)[0].text == "zyx1"
        assert ("zyx1" in nlp.vocab.strings, "zyx2" in nlp.vocab.strings) == (True, False)
    assert "zyx1" not in nlp.vocab.strings
    assert packed[0].to_doc(nlp.vocab)[0].ent_type_ == "ZYX_LABEL"


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
        list(read_packed(tmp_path / "part-7.spacy"))


@pytest.mark.parametrize(("uncovered", "covered"), [({}, True), ({"A": "none"}, False), ({"A": "partial"}, False)])
def test_a_text_is_covered_if_no_label_is_uncovered(uncovered, covered):
    doc = NLP.make_doc("a")
    doc.user_data["labelwise"] = {"gold": [], "uncovered": uncovered}
    assert is_covered(pack(doc)) is covered


@pytest.mark.parametrize(
    ("gold", "iob"),
    [
        ([], [2, 2, 3, 1, 2, 2]),
        ([(12, 24)], [2, 2, 3, 1, 2, 2]),
        ([(0, 5)], [0, 2, 3, 1, 2, 2]),
        ([(7, 8)], [0, 2, 3, 1, 2, 2]),
        ([(8, 9)], [2, 2, 3, 1, 2, 2]),  # the space between two tokens
        ([(9, 10)], [2, 0, 3, 1, 2, 2]),
        ([(7, 10)], [0, 0, 3, 1, 2, 2]),
        ([(10, 14)], [2, 0, 3, 1, 2, 2]),
        ([(28, 30), (1, 2)], [0, 2, 3, 1, 0, 0]),
        ([(29, 30)], [2, 2, 3, 1, 2, 2]),  # has token boundaries, but lost against another span
    ],
)
def test_unmarked_tokens_are_outside_unless_gold_without_boundaries_touches_them(gold, iob):
    doc = NLP.make_doc("Smithers of Mercury Labs came.")
    doc.set_ents([doc.char_span(12, 24, "COMPANY")], default="missing")
    doc.user_data["labelwise"] = {"gold": [[*span, "A", ["a set"]] for span in gold], "uncovered": {"B": "none"}}
    before = pack(doc)
    after = without_missing(before)
    assert [token.ent_iob for token in after.to_doc(NLP.vocab)] == iob
    assert [(ent.text, ent.label_) for ent in after.to_doc(NLP.vocab).ents] == [("Mercury Labs", "COMPANY")]
    assert before.iob.tolist() == [0, 0, 3, 1, 0, 0]


def make_doc(text: str, ents: list[str], rejected: list[str]) -> Doc:
    """A Doc of a text; its spans are given by the words that they have."""
    doc = Doc(NLP.vocab, words=(words := text.split(" ")), spaces=[True] * (len(words) - 1) + [False])

    def span(of: str) -> Span:
        start = text.index(of)
        return doc.char_span(start, start + len(of), "A")

    doc.set_ents([span(of) for of in ents])
    doc.spans[REJECTED] = [span(of) for of in rejected]
    return doc


@pytest.mark.parametrize(
    ("text", "ents", "rejected", "longest", "pieces"),
    [
        ("a b c d", [], [], 4, ["a b c d"]),
        ("a b c d", [], [], 3, ["a b c ", "d"]),
        ("a b c d e f g", [], [], 2, ["a b ", "c d ", "e f ", "g"]),
        ("a b . d e f", [], [], 4, ["a b . ", "d e f"]),
        ("a b . d . f", [], [], 5, ["a b . d . ", "f"]),
        ("a . c d e f g", [], [], 4, ["a . ", "c d e f ", "g"]),  # exactly half of the longest
        ("a . c d e f g", [], [], 5, ["a . c d e ", "f g"]),  # less than half of it
        ("a b ! d ? f …", [], [], 4, ["a b ! ", "d ? f …"]),
        ("a b c d e", ["c d"], [], 3, ["a b ", "c d e"]),
        ("a b c d e", [], ["c d"], 3, ["a b ", "c d e"]),
        ("a b . d e", ["b . d"], [], 4, ["a b . d ", "e"]),  # a full stop inside an entity ends no sentence
        ("a b c d e f", ["a b c d"], [], 2, ["a b c d ", "e f"]),
        ("a b c d e f", [], ["a b c d", "d e"], 2, ["a b c d e ", "f"]),
        ("a b c d e f", ["c d e f"], [], 3, ["a b ", "c d e f"]),
        ("a b c d", ["a b", "c d"], [], 1, ["a b ", "c d"]),
    ],
)
def test_texts_are_cut(text, ents, rejected, longest, pieces):
    found = split(pack(make_doc(text, ents, rejected)), longest)
    assert [piece.text for piece in found] == pieces
    docs = [piece.to_doc(NLP.vocab) for piece in found]
    assert [ent.text for doc in docs for ent in doc.ents] == ents
    assert [span.text for doc in docs for span in doc.spans.get(REJECTED, ())] == rejected


def test_texts_are_cut_only_behind_white_space():
    doc = NLP.make_doc("don't re-test.\nit's")
    assert len(doc) > 6
    assert [piece.text for piece in split(pack(doc), 1)] == ["don't ", "re-test.\n", "it's"]


def test_a_line_break_ends_a_sentence():
    doc = Doc(NLP.vocab, words=["a", "b", "\n\n", "c", "d"], spaces=[True, False, False, True, False])
    assert [piece.text for piece in split(pack(doc), 4)] == ["a b\n\n", "c d"]


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
    sentence_ends = [place for place in places if doc[place - 1].text in (".", "\n")]
    pieces = split(pack(doc), longest)

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
            good = [place for place in within if place in sentence_ends and 2 * (place - start) >= longest]
            wanted = max(good) if good else max(within) if within else min(beyond, default=len(doc))
        start += len(piece)
        assert start == wanted
    assert sorted(survived) == sorted(found_in(doc))
