import re
from collections import Counter

import pytest
from spacy.training.converters import conll_ner_to_docs

from labelwise.annotations import Task
from labelwise.base.errors import InputError
from labelwise.sources.formats import read_items
from labelwise.sources.tags import decode_tags, find_scheme
from tests.conftest import real_corpus
from tests.sources.reading import read, write
from tests.sources.second_count import lost_of_conll

DOCUMENTS = (
    "-DOCSTART- -X- -X- O\n\nU.N. NNP I-NP I-ORG\nofficial NN I-NP O\nEkeus NNP I-NP I-PER\n \n\n"
    "-DOCSTART- -X- -X- O\n\nNew NNP I-NP I-LOC\nYork NNP I-NP I-LOC\n"
)


@pytest.mark.parametrize(("end", "suffix"), [("\n", "tsv"), ("\r", "iob"), ("\r\n", "bio")])
def test_columns_documents_and_blank_lines(tmp_path, end, suffix):
    """Lines may end as on old Macs, names as in NCBI's corpus."""
    tasks = list(read_items(write(tmp_path / f"a.{suffix}", DOCUMENTS.replace("\n", end))))
    assert [(task.line, task.doc) for task in tasks] == [(3, "1"), (10, "2")]
    assert read(tmp_path / f"a.{suffix}") == [
        ("U.N. official Ekeus", [("U.N.", "ORG"), ("Ekeus", "PER")]),
        ("New York", [("New York", "LOC")]),
    ]


@pytest.mark.parametrize(
    "comment",
    ["# newdoc id = {}", "#begin document ({}); part 000", "# hipe2022:document_id = {}", "# document_id = {}"],
)
def test_a_document_is_named_by_the_comment_before_its_sentences(tmp_path, comment):
    begins = [comment.format(name) + "\n# text = x\n" for name in ("EXP-1824-i0024", "b/c 1")]
    content = f"Eve O\n\n{begins[0]}Ann B-PER\n\nran O\n\n{begins[1]}\nBob B-PER\n"
    tasks = list(read_items(write(tmp_path / "a.conll", content)))
    assert [(task.text, task.doc) for task in tasks] == [
        *(("Eve", ""), ("Ann", "EXP-1824-i0024"), ("ran", "EXP-1824-i0024"), ("Bob", "b/c 1"))
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
    ],
)
def test_tags_of_each_scheme(tags, spans):
    assert list(decode_tags(tags.split())) == spans


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-A M-A M-A E-A S-B O", [(0, 4, "A"), (4, 5, "B")]),  # BMES
        ("W-A B-A E-A M-B O O", [(0, 1, "A"), (1, 3, "A"), (3, 4, "B")]),  # BMEWO
        ("M-A M-A F-A O O O", [(0, 2, "M-A"), (2, 3, "F-A")]),  # no other prefix
        ("person-other person-other O", [(0, 2, "person-other")]),
        ("B-cell T-cell T-cell O", [(0, 1, "B-cell"), (1, 3, "T-cell")]),
        ("B-A 0 0 0", [(0, 1, "A")]),
        ("A A None None None null", [(0, 2, "A"), (5, 6, "null")]),
        ("A A OTHER", [(0, 2, "A"), (2, 3, "OTHER")]),  # it is not the most frequent
        ("B-A I-A O NONE NONE NONE", [(0, 2, "A"), (3, 6, "NONE")]),  # O is outside
        ("B-A|B-B I-A|O O|B-B I-B O", [(0, 1, "B"), (0, 2, "A"), (2, 4, "B")]),
        ("B-A I-A|B-A I-A|I-A O", [(1, 3, "A"), (0, 3, "A")]),
        ("B-A,B-B I-A;O O+B-B I-B B-A/B-B", [(0, 1, "B"), (0, 2, "A"), (2, 4, "B"), (4, 5, "A"), (4, 5, "B")]),
        ("B-A/B I-A/B O", [(0, 2, "A/B")]),
        ("B-A B-A|x O", [(0, 1, "A"), (1, 2, "A|x")]),
        ("B-A I-A B- O", [(0, 2, "A"), (2, 3, "")]),
        ("b-a i-a O", [(0, 2, "a")]),
        ("B- I- O B-", [(0, 2, "(no label)"), (3, 4, "(no label)")]),
        ("(A* *) * (B)", [(0, 2, "A"), (3, 4, "B")]),
    ],
)
def test_tags_are_read_by_what_the_file_shows(tags, spans):
    scheme = find_scheme(Counter(tags.split()))
    assert sorted(decode_tags(tags.split(), scheme)) == sorted(spans)


def test_the_scheme_is_that_of_the_whole_file(tmp_path):
    """M-A is a prefix and a label because B-A occurs 1,000 lines later."""
    content = "Ann M-A\nran O\n\n" * 400 + "Bob B-A\nNy M-A\nLee E-A\nran O\n"
    *_, last = read(tmp_path / "a.conll", content)
    assert last == ("Bob Ny Lee ran", [("Bob Ny Lee", "A")])
    assert read(tmp_path / "a.conll")[0] == ("Ann ran", [("Ann", "A")])


def test_tags_without_a_label_among_others_are_counted(tmp_path):
    assert read(tmp_path / "a.conll", "Ann B-A\nran U-\n") == [
        ("Ann ran", [("Ann", "A"), "invalid: None 4 7: no label"])
    ]


WORDS = [f"w{'abcdefghijkl'[n]}" for n in range(12)]


def test_what_can_not_be_told_names_the_columns(tmp_path):
    lines = [f"{n * 7 % 5}\t{word}\tB-A\n" for n, word in enumerate(WORDS)]
    with pytest.raises(InputError, match=r"column 1 has no words.*global.columns = _ FORM NER.*1: 0, 2, 4, 1; 2: wa, "):
        read(tmp_path / "a.conll", "".join(lines))
    lines = ["# global.columns = _ FORM NER\n", *lines]
    assert read(tmp_path / "a.conll", "".join(lines))[0][0] == " ".join(WORDS)


SENTENCES = [
    # A line that can't be read costs its sentence alone.
    (
        b"\xef\xbb\xbfone O\n\ntwo\nthree O\n\nfour\xff O\n\nfive B-X\n\n\t\n\nAnn O\nNew York O\n",
        [
            ("one", []),
            "malformed: no tag; a line has a token and its tag",
            "malformed: not UTF-8; save the file as UTF-8",
            ("five", [("five", "X")]),
            "malformed: 3 columns, where the sentence's first line has 2",
        ],
    ),
    # Named columns, comments and numbers, as MultiCoNER, CoNLL-U, OntoNotes and Universal NER write them.
    (
        "# global.columns = ID FORM MISC:NER LEMMA\n# sent_id = 1\n"
        "1\tNew York\tB-PER\tnew york\n2\t#\tO\t#\n\n#\tO\tO\tx\n",
        [("New York #", [("New York", "PER")]), ("O", [])],
    ),
    ("# id 5b4a domain=train\nAnn _ _ B-PER\nran _ _ O\n", ["Ann ran"]),
    ("# newdoc\n# newdoc id = x\nAnn B-PER\nran O\n", ["Ann ran"]),
    ("#begin document (bc/x); part 000\nAnn B-PER\nran O\n", ["Ann ran"]),
    ("1\tAnn\tB-PER\t-\t-\n2\tran\tO\t-\t-\n", ["Ann ran"]),
    ("1\tAnn\t_\tB-PER\n2\tran\t_\tO\n", ["Ann ran"]),
    ("1 Ann B-PER\n2 ran O\n\n1-2 Du _\n1 De B-LOC\n2 le I-LOC\n", ["Ann ran", ("De le", [("De le", "LOC")])]),
    (
        "1 Ann B-PER\n2 ran O\n\n1-2 Du B-LOC\n1 De O\n2 le O\n",
        ["Ann ran", "malformed: 1-2 has a tag; tag the words that it stands for"],
    ),
    ("Ann\tB-PER\t\nran\tO\t\n", ["Ann ran"]),
    ("Ann\u00a0B. CD B-PER\nran X O\n", [("Ann\u00a0B. ran", [("Ann\u00a0B.", "PER")])]),
    # Tokens that are numbers don't number the tokens, unless each sentence begins with 1.
    ("1 CD B-PER\n\n2 CD O\n", [("1", [("1", "PER")]), ("2", [])]),
    ("1 CD O\n2 CD B-N\n\nAnn NNP B-PER\nran VBD O\n", [("1 2", [("2", "N")]), "Ann ran"]),
    # `_` is outside of spans, but in files with O it marks untagged sentences, as in HIPE-2022.
    (
        "TOKEN\tNE-COARSE-LIT\tMISC\n# document_id = 1\nAnn\t_\t_\n\n# document_id = 2\nAnn\tB-PER\t_\nran\tO\t_\n\n"
        "ran\t_\t_\nBob\tB-PER\t_\n",
        ["not annotated: its tags are all _", "Ann ran", ("ran Bob", [("Bob", "PER")])],
    ),
    ("Ann B-PER\nran O\n\nran _\n", ["Ann ran", "not annotated: its tags are all _"]),
    ("Ann B-PER\nran _\n\nran _\n", ["Ann ran", ("ran", [])]),
    # A line that looks like a comment is a token where the columns fit,
    ("# B-PER\nran O\n", [("# ran", [("#", "PER")])]),
    ("# O\nAnn B-PER\n", [("# Ann", [("Ann", "PER")])]),
    ("#url?a=1 NN B-X\nis VB O\n", [("#url?a=1 is", [("#url?a=1", "X")])]),
    ("#end document\tB-X\nran\tO\n", [("#end document ran", [("#end document", "X")])]),
    ("ran O\n\n#win=now B-TAG\n", [("ran", []), ("#win=now", [("#win=now", "TAG")])]),
    ("#win=now\t B-TAG\nis\tO\n", [("#win=now is", [("#win=now", "TAG")])]),
    # and a comment where they don't, or its last word is no tag of the file.
    ("# text = to B-12\nAnn\tB-PER\nran\tO\n", ["Ann ran"]),
    ("# text = B-12\nAnn _ B-PER\nran _ O\n", ["Ann ran"]),
    ("# newpar\nAnn PER\nran O\n", ["Ann ran"]),
    ("# global.columns = FORM NER\n# id = O\nAnn B-PER\nran O\n", ["Ann ran"]),
]


@pytest.mark.parametrize(("content", "sentences"), SENTENCES)
def test_a_sentence_is_its_tokens_without_comments_and_numbers(tmp_path, content, sentences):
    whole = {"Ann ran": ("Ann ran", [("Ann", "PER")])}
    assert read(tmp_path / "a.conll", content) == [
        whole.get(sentence, sentence) if isinstance(sentence, str) else sentence for sentence in sentences
    ]


TWO = "EU NNP B-ORG\nin X O\nNew NNP B-LOC\nYork NNP I-LOC\n\n# id = 1\nAnn NNP B-PER\n\n\nran VB O\n"


@pytest.mark.guarantee("second-count")
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
    path = write(tmp_path / "a.conll", content)
    items = list(read_items(path))
    assert not lost_of_conll(path, items, tag)
    assert lost_of_conll(path, items[:-1], tag) == {"sentences": 1}, "it would find a sentence"


@pytest.mark.guarantee("second-count")
@pytest.mark.parametrize("name", ["emerging.dev.conll", "wnut17train.conll"])
@pytest.mark.long
def test_a_public_corpus_has_what_spacy_finds_in_it(name):
    path = real_corpus("formats") / "conll" / name
    items = list(read_items(path))
    assert all(isinstance(item, Task) for item in items)
    assert not lost_of_conll(path, items)
    sentences = re.sub(
        r"\n\s*\n", "\n\n", path.read_text(encoding="utf8")
    )  # else spaCy takes many for one, in a minute
    docs = conll_ner_to_docs(sentences, n_sents=1, no_print=True)
    spans = [(item.text[span.start : span.end], span.label) for item in items for span in item.spans]
    assert spans == [(" ".join(token.text for token in ent), ent.label_) for doc in docs for ent in doc.ents]
    assert len(spans) > 800
