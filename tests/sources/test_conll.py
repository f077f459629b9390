"""CoNLL files: sentences become texts, and tags of every scheme the spans that they stand for."""

import pytest
from spacy.training.converters import conll_ner_to_docs

from labelwise.sources import conll
from labelwise.sources.conll import decode_tags
from labelwise.sources.formats import read_items
from tests.conftest import Merging, real_corpus
from tests.sources.conll_count import count_lost


def read(path) -> list[tuple]:
    """Line, text and marked words of each sentence, or the problem."""
    return [
        (
            item.line,
            item.task.text,
            [(item.task.text[span.start : span.end], span.label) for span in item.task.spans or ()],
        )
        if item.task
        else (item.line, item.problem)
        for item in read_items(path)
    ]


def test_columns_documents_and_blank_lines(tmp_path):
    """The first column is the token, the last one the tag; lines are those of the file."""
    path = tmp_path / "a.conll"
    path.write_text(
        "-DOCSTART- -X- -X- O\n\nU.N. NNP I-NP I-ORG\nofficial NN I-NP O\nEkeus NNP I-NP I-PER\n \n\n"
        "-DOCSTART- -X- -X- O\n\r\nNew NNP I-NP I-LOC\r\nYork NNP I-NP I-LOC\r\n"
    )
    assert read(path) == [
        (3, "U.N. official Ekeus", [("U.N.", "ORG"), ("Ekeus", "PER")]),
        (10, "New York", [("New York", "LOC")]),
    ]
    assert [item.task.meta for item in read_items(path)] == [{"doc": "1"}, {"doc": "2"}]


def test_columns_that_are_named_and_comments(tmp_path):
    path = tmp_path / "a.iob"
    path.write_text(
        "# global.columns = ID FORM MISC:NER LEMMA\n# sent_id = 1\n"
        "1\tNew York\tB-LOC\tnew york\n2\t#\tO\t#\n\n#\tO\tO\tx\n"
    )
    assert read(path) == [(3, "New York #", [("New York", "LOC")]), (6, "O", [])]


def test_a_line_that_cannot_be_read_costs_its_sentence_alone(tmp_path):
    path = tmp_path / "a.bio"
    path.write_bytes(b"\xef\xbb\xbfone O\n\ntwo\nthree O\n\nfour\xff O\n\nfive B-X\n\n\t\n\nAnn O\nNew York O\n")
    assert read(path) == [
        (1, "one", []),
        (3, "malformed: no tag; a line has a token and its tag"),
        (6, "malformed: not UTF-8"),
        (8, "five", [("five", "X")]),
        (13, "malformed: 3 columns, where the sentence's first line has 2"),
    ]


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-A I-A O", [(0, 2, "A")]),
        ("I-A I-A B-A", [(0, 2, "A"), (2, 3, "A")]),  # IOB1
        ("B-A L-A U-B", [(0, 2, "A"), (2, 3, "B")]),  # BILOU
        ("B-A E-A S-B", [(0, 2, "A"), (2, 3, "B")]),  # IOBES
        ("B-A S-A O", [(0, 1, "A"), (1, 2, "A")]),
        ("S-A S-A I-A", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        ("A A B", [(0, 2, "A"), (2, 3, "B")]),
        ("I-A I-B O", [(0, 1, "A"), (1, 2, "B")]),
        ("E-A I-A _", [(0, 1, "A"), (1, 2, "A")]),
        ("B-Measure-Type I-Measure-Type O", [(0, 2, "Measure-Type")]),
        ("O O O", []),
    ],
)
def test_tags_of_each_scheme(tags, spans):
    assert list(decode_tags(tags.split())) == spans


@pytest.mark.parametrize("name", ["emerging.dev.conll", "wnut17train.conll"])
@pytest.mark.long
def test_a_public_corpus_has_what_spacy_finds_in_it(name):
    path = real_corpus("formats") / "conll" / name
    items = list(read_items(path))
    assert {item.problem for item in items} == {""}
    assert not count_lost(path, items)
    (whole,) = list(conll_ner_to_docs(path.read_text(encoding="utf8"), n_sents=0, no_print=True)) or [None]
    found = [(item.task.text[span.start : span.end], span.label) for item in items for span in item.task.spans]
    assert found == [(" ".join(token.text for token in ent), ent.label_) for ent in whole.ents]
    assert len(found) > 800


def test_it_is_merged_and_the_ledger_balances(merging: Merging):
    (merging.root / "tasks").mkdir()
    (merging.root / "tasks" / "a.conll").write_text("New B-LOC\nYork I-LOC\n\nbad\n\nParis B-LOC\n")
    merging.add("a", ["LOC"], [])
    (merging.root / "tasks" / "a.jsonl").unlink()
    merging.declared[0]["path"] = "a.conll"
    merging.add("b", ["X"], [{"text": "Paris"}])
    ledger = merging.run()
    assert (ledger.rows["merged"], ledger.rows["malformed"], ledger.spans["entity"]) == (3, 1, 2)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# id 5b4a domain=train\nAnn _ _ B-PER\nran _ _ O\n", ("Ann ran", ["Ann"])),
        ("# newdoc\n# newdoc id = x\nAnn B-PER\nran O\n", ("Ann ran", ["Ann"])),
        ("#begin document (bc/x); part 000\nAnn B-PER\nran O\n", ("Ann ran", ["Ann"])),
        ("# B-PER\nran O\n", ("# ran", ["#"])),
        ("# O\nAnn B-PER\n", ("# Ann", ["Ann"])),
        ("1\tAnn\tB-PER\t-\t-\n2\tran\tO\t-\t-\n", ("Ann ran", ["Ann"])),
        ("1\tAnn\t_\tB-PER\n2\tran\t_\tO\n", ("Ann ran", ["Ann"])),
        ("1 CD B-PER\n\n2 CD O\n", ("1", ["1"])),
        ("Ann\tB-PER\t\nran\tO\t\n", ("Ann ran", ["Ann"])),
        ("10\u00a0000 CD B-PER\nran X O\n", ("10\u00a0000 ran", ["10\u00a0000"])),
    ],
)
def test_comments_numbers_and_spaces_are_no_tokens(tmp_path, content, expected):
    """As MultiCoNER, CoNLL-U, OntoNotes and Universal NER write them."""
    (tmp_path / "a.conll").write_text(content, encoding="utf8")
    item = next(read_items(tmp_path / "a.conll"))
    assert item.task, item
    assert (item.task.text, [item.task.text[span.start : span.end] for span in item.task.spans]) == expected
    assert {span.label for span in item.task.spans} == {"PER"}


TWO = "EU NNP B-ORG\nin X O\nNew NNP B-LOC\nYork NNP I-LOC\n\n# id = 1\nAnn NNP B-PER\n\n\nran VB O\n"


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_whatever_ends_lines_they_are_read_alike(tmp_path, end):
    """CR alone is what old Macs write."""
    (tmp_path / "a.conll").write_bytes(TWO.encode())
    (tmp_path / "b.conll").write_bytes(TWO.replace("\n", end).encode())
    assert read(tmp_path / "b.conll") == read(tmp_path / "a.conll")
    assert [line for line, *_ in read(tmp_path / "a.conll")] == [1, 7, 10]


@pytest.mark.parametrize(
    ("content", "words", "labels"),
    [
        ("#win=now\tB-TAG\n!\tO\n", ["#win=now", "!"], ["TAG"]),
        ("#url?a=1 NN B-X\nis VB O\n", ["#url?a=1", "is"], ["X"]),
        ("#end document\tB-X\nran\tO\n", ["#end document", "ran"], ["X"]),
        ("Ann O\n\n#win=now B-TAG\n", ["#win=now"], ["TAG"]),
        ("#win=now\tB-TAG\n", ["#win=now"], ["TAG"]),
        ("#win=now\t B-TAG\nis\tO\n", ["#win=now", "is"], ["TAG"]),
        ("# global.columns = FORM NER\n# global.columns = x\tB-X\nAnn\tO\n", ["# global.columns = x", "Ann"], ["X"]),
        # Comments, as their columns don't fit, or their last word is no tag of the file.
        ("# text = to B-12\nAnn\tB-PER\n", ["Ann"], ["PER"]),
        ("# text = B-12\nAnn _ B-PER\n", ["Ann"], ["PER"]),
        ("# sent_id = 3\nAnn NNP X B-PER\n", ["Ann"], ["PER"]),
        ("# newpar\nAnn PER\n", ["Ann"], ["PER"]),
        ("# text = Ann\nAnn X X PER\n", ["Ann"], ["PER"]),
        ("# global.columns = FORM NER\n# id = O\nAnn B-PER\n", ["Ann"], ["PER"]),
    ],
)
def test_a_line_that_looks_like_a_comment_is_a_token_where_the_columns_fit(tmp_path, content, words, labels):
    (tmp_path / "a.conll").write_text(content)
    *_, (_, text, spans) = read(tmp_path / "a.conll")
    assert (text, [label for _, label in spans]) == (" ".join(words), labels)


def test_tokens_that_are_numbers_do_not_number_the_tokens(tmp_path):
    """Unless each sentence begins with 1."""
    (tmp_path / "a.conll").write_text("1 CD O\n2 CD B-N\n\nAnn NNP B-PER\nsat VBD O\n")
    assert read(tmp_path / "a.conll") == [(1, "1 2", [("2", "N")]), (4, "Ann sat", [("Ann", "PER")])]
    (tmp_path / "b.conll").write_text("1 Ann B-PER\n2 sat O\n\n1-2 Du _\n1 De B-LOC\n2 le I-LOC\n")
    assert read(tmp_path / "b.conll")[0] == (1, "Ann sat", [("Ann", "PER")])


@pytest.mark.parametrize(
    ("content", "tag"),
    [
        (TWO, -1),
        ("-DOCSTART- -X- O\n\n# Ann B-PER\nran VB O\n\nbad\n\nBob\tS-PER\t\nand\tO\n", -1),
        ("# global.columns = FORM MISC:NER LEMMA\nAnn\tB-PER\tB-x\nBob\tU-PER\tU-y\n\nran\tO\trun\n", 1),
        ("1\tAnn\tB-PER\tx\n2\tran\tO\ty\n\n1\tBob\tB-PER\tz\n", 2),
    ],
)
def test_a_second_count_finds_nothing_that_is_not_read(tmp_path, content, tag):
    (tmp_path / "a.conll").write_bytes(content.encode())
    assert not count_lost(tmp_path / "a.conll", read_items(tmp_path / "a.conll"), tag)


read_sentence = conll._read_sentence


def lose_a_sentence(rows, columns, document):
    item = read_sentence(rows, columns, document)
    return item if item.line != 7 else item._replace(line=0)


def lose_tokens(rows, columns, document):
    return read_sentence(rows[:1], columns, document)


def lose_a_span(rows, columns, document):
    item = read_sentence(rows, columns, document)
    del item.task.spans[1:]
    return item


@pytest.mark.parametrize(
    ("lossy", "lost"),
    [
        (lose_a_sentence, {"sentences": 1}),
        (lose_tokens, {"tokens": 3, "tags": 1}),
        (lose_a_span, {"tags": 1}),
    ],
)
def test_the_second_count_sees_what_a_reader_loses(tmp_path, monkeypatch, lossy, lost):
    (tmp_path / "a.conll").write_text(TWO)
    monkeypatch.setattr(conll, "_read_sentence", lossy)
    assert count_lost(tmp_path / "a.conll", read_items(tmp_path / "a.conll")) == lost
