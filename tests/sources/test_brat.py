"""One case for each row of what real brat corpora contain; every T line has one outcome."""

from collections import Counter
from pathlib import Path

import pytest

from labelwise.errors import InputError
from labelwise.sources.brat import NOT_CONVERTED, find_documents, read_document
from tests.conftest import real_corpus


def write(root: Path, name: str, text: str | bytes | None, **annotations: str | bytes) -> Path:
    """Write name.txt and name.SUFFIX files; nothing is translated."""
    stem = root / name
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix, content in {"txt": text, **annotations}.items():
        if content is not None:
            data = content.encode() if isinstance(content, str) else content
            stem.with_name(f"{stem.name}.{suffix}").write_bytes(data)
    return stem


def read(root: Path, text, ann, **options):
    return read_document(write(root, "d", text, ann=ann), root, **options)


def spans(document) -> list[tuple[str, str]]:
    return [(document.text[m.start : m.end], m.label) for m in document.mentions]


def reasons(document) -> dict[str, int]:
    return dict(Counter(problem.reason for problem in document.problems))


@pytest.mark.parametrize(
    ("text", "ann", "found", "reading"),
    [
        ("a\r\ncat", "T1\tX 3 6\tcat\n", "cat", ""),
        ("a\r\ncat", "T1\tX 2 5\tcat\n", "cat", "crlf"),
        ("a\n\ncat", "T1\tX 5 8\tcat\n", "cat", "lf as two"),
        ("a\r\ncat\r\n", "T1\tX 2 5\tcat\n", "cat", "crlf"),
        ("\U0001f600 cat", "T1\tX 2 5\tcat\n", "cat", ""),
        ("\U0001f600 cat", "T1\tX 3 6\tcat\n", "cat", "utf16"),
        ("\ufeffa cat", "T1\tX 2 5\tcat\n", "cat", "bom"),
        ("\ufeff\U0001f600\U0001f600\U0001f600\r\ncat", "T1\tX 7 10\tcat\n", "cat", "crlf+utf16+bom"),
    ],
)
def test_the_reading_that_agrees_with_the_mentions_is_used(tmp_path, text, ann, found, reading):
    document = read(tmp_path, text, ann)
    assert spans(document) == [(found, "X")]
    assert document.text == text
    # Nothing else is noted: a line end that isn't counted doesn't get into the span, to be trimmed off again.
    assert document.notes == (Counter({f"reading: {reading}": 1}) if reading else Counter())


def test_a_reading_that_fewer_mentions_agree_with_is_not_used(tmp_path):
    document = read(tmp_path, "cat\r\ncat dog", "T1\tX 5 8\tcat\nT2\tX 9 12\tdog\nT3\tX 8 11\tdog\n")
    assert spans(document) == [("cat", "X"), ("dog", "X")]
    assert reasons(document) == {"mention differs": 1}


@pytest.mark.parametrize(
    ("text", "ann", "shifted", "expected"),
    [
        ("the cat sat", "T1\tX 3 6\tcat\n", "drop", {"mention differs": 1}),
        ("the cat sat", "T1\tX 3 6\tcat\n", "nearest", (4, 7)),
        ("cat x cat", "T1\tX 3 6\tcat\n", "nearest", {"mention differs": 1}),  # both are 3 away
        ("the dog", "T1\tX 3 6\tcat\n", "nearest", {"mention differs": 1}),
        ("the cat", "T1\tX 40 43\tcat\n", "drop", {"out of range": 1}),
        ("the cat", "T1\tX 40 43\tcat\n", "nearest", (4, 7)),
    ],
)
def test_shifted_mentions(tmp_path, text, ann, shifted, expected):
    document = read(tmp_path, text, ann, shifted=shifted)
    if isinstance(expected, tuple):
        assert [m[:2] for m in document.mentions] == [expected]
        assert document.notes == Counter({"moved": 1})
    else:
        assert document.mentions == []
        assert reasons(document) == expected


def test_stray_lines_are_located_and_harm_nothing(tmp_path):
    document = read(tmp_path, "a cat", "T1\tX 2 5\tcat\nhello world\n\nT-shirts are no annotation\n")
    assert spans(document) == [("cat", "X")]
    assert [problem[:3] for problem in document.problems] == [
        ("d.ann", 2, "stray line"),
        ("d.ann", 4, "stray line"),
    ]
    assert document.lines == Counter({"T": 1, "stray": 2, "blank": 1})


@pytest.mark.parametrize("row", ["T1\tX 2\tcat", "T1\tX 5 2\tcat", "T1\tX 2 5;\tcat", "T1 X 2 5 cat", "T1\tX a b\tcat"])
def test_malformed_t_lines(tmp_path, row):
    document = read(tmp_path, "a cat", row + "\nT2\tX 2 5\tcat\n")
    assert spans(document) == [("cat", "X")]
    assert document.problems == [("d.ann", 1, "malformed", row)]
    assert document.lines["T"] == 2


def test_tab_inside_the_mention(tmp_path):
    assert spans(read(tmp_path, "a big\tcat", "T1\tX 2 9\tbig\tcat\n")) == [("big\tcat", "X")]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("drop", {"discontinuous": 1}), ("first", "left"), ("cover", "left and right arm")],
)
def test_discontinuous_spans_with_fragments_out_of_order(tmp_path, policy, expected):
    document = read(tmp_path, "left and right arm", "T1\tX 15 18;0 4\tleft arm\n", discontinuous=policy)
    if policy == "drop":
        assert reasons(document) == expected
    else:
        assert spans(document) == [(expected, "X")]
        assert document.mentions[0].fragments == [(0, 4), (15, 18)]
        assert document.notes == Counter({"made one": 1})


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("a\r\nb cat", "T1\tX 0 50;1 3\tfoo", {"out of range": 1}),  # a fragment inside another that is out of range
        ("a cat", "T1\tX 2 50;3 4", {"out of range": 1}),
        ("a\r\nb cat", "T1\tX 3 3;4 7\tcat", [("cat", "X")]),  # an empty fragment is none
        ("a cat", "T1\tX 2 2\t", {"white space": 1}),
        ("a cat", f"T1\tX 2 {'9' * 5000}\tcat", {"malformed": 1}),
    ],
)
def test_odd_fragments(tmp_path, text, row, expected):
    document = read(tmp_path, text, row + "\n", discontinuous="cover")
    assert (spans(document) or reasons(document)) == expected


def test_fragments_with_only_white_space_between_are_one_span(tmp_path):
    document = read(tmp_path, "big\ncat", "T1\tX 0 3;4 7\tbig cat\n")
    assert spans(document) == [("big\ncat", "X")]
    assert document.mentions[0].fragments == []
    assert document.notes == Counter({"joined": 1})


def test_nested_crossing_and_same_spans_survive_and_duplicates_are_counted(tmp_path):
    ann = "T1\tX 0 7\tbig cat\nT2\tX 4 7\tcat\nT3\tY 4 11\tcat sat\nT4\tY 0 7\tbig cat\nT5\tX 4 7\tcat\n"
    document = read(tmp_path, "big cat sat", ann)
    assert [m[:3] for m in document.mentions] == [(0, 7, "X"), (0, 7, "Y"), (4, 7, "X"), (4, 11, "Y")]
    assert document.problems == [("d.ann", 5, "duplicate", "T5\tX 4 7\tcat")]


def test_white_space_at_the_edges_is_trimmed(tmp_path):
    document = read(tmp_path, "a \xa0cat\xa0 b", "T1\tX 1 8\t \xa0cat\xa0 \nT2\tX 1 3\t \xa0\n")
    assert spans(document) == [("cat", "X")]
    assert document.notes == Counter({"trimmed": 1})
    assert reasons(document) == {"white space": 1}


def test_spans_inside_a_token_survive(tmp_path):
    assert spans(read(tmp_path, "at 60degC", "T1\tN 3 5\t60\nT2\tU 5 9\tdegC\n")) == [("60", "N"), ("degC", "U")]


def test_a_line_without_mention_is_taken_at_its_word(tmp_path):
    document = read(tmp_path, "a cat", "T1\tX 2 5\n")
    assert spans(document) == [("cat", "X")]
    assert document.notes == Counter({"unverified": 1})


def test_newline_inside_the_span_is_quoted_as_a_space(tmp_path):
    document = read(tmp_path, "Bad\n  Nauheim", "T1\tX 0 13\tBad Nauheim\n")
    assert spans(document) == [("Bad\n  Nauheim", "X")]
    assert document.problems == []


def test_other_kinds_are_counted_and_triggers_are_filtered_by_label(tmp_path):
    ann = (
        "T1\tProtein 0 3\tp53\nT2\tBinding 4 9\tbinds\nE1\tBinding:T2 Theme:T1\nR1\tEquiv Arg1:T1 ARG2:T2\n"
        "A1\tNegation E1\nM1\tSpeculation E1\nN1\tReference T1 Taxonomy:9606\thuman\n#3\tAnnotatorNotes E23\t??\tx\n"
        "*\tEquiv T1 T2\n"
    )
    document = read(tmp_path, "p53 binds", ann, labels=frozenset(["Protein"]))
    assert document.lines == Counter({"T": 2, "E": 1, "R": 1, "A": 1, "M": 1, "N": 1, "#": 1, "*": 1})
    assert spans(document) == [("p53", "Protein")]
    assert document.problems == [("d.ann", 2, "other label", "T2\tBinding 4 9\tbinds")]


def test_a1_and_a2_are_both_read(tmp_path):
    stem = write(tmp_path, "d", "p53 binds", a1="T1\tProtein 0 3\tp53\n", a2="T2\tBinding 4 9\tbinds\nE1\tBinding:T2\n")
    assert spans(read_document(stem, tmp_path)) == [("p53", "Protein"), ("binds", "Binding")]
    assert find_documents(tmp_path) == [stem]


def test_an_empty_ann_is_complete_and_a_missing_one_is_not(tmp_path):
    empty = read_document(write(tmp_path, "empty", "a cat", ann=""), tmp_path)
    assert (empty.text, empty.mentions, empty.problems) == ("a cat", [], [])
    stem = write(tmp_path, "missing", "a cat")
    missing = read_document(stem, tmp_path)
    assert missing.text is None
    assert missing.problems == [("missing.txt", 0, "no annotation file", "")]
    assert read_document(stem, tmp_path, missing_ann="empty").text == "a cat"


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_ann_without_text_is_counted(tmp_path, text):
    document = read(tmp_path, text, "T1\tX 0 1\ta\nE1\tX:T1\n")
    assert document.text is None
    assert document.lines["T"] == 1
    assert [problem[:3] for problem in document.problems] == [("d.txt", 0, "no text"), ("d.ann", 1, "no text")]


def test_wrong_encoding_costs_what_it_spoils_only(tmp_path):
    spoiled = read(tmp_path, "caf\xe9".encode("latin-1"), "T1\tX 0 3\tcaf\n")
    assert reasons(spoiled) == {"not decodable": 2}
    line = read(tmp_path, "a caf\xe9", b"T1\tX 2 6\tcaf\xe9\nT2\tX 0 1\ta\n")
    assert spans(line) == [("a", "X")]
    assert [problem[1:3] for problem in line.problems] == [(1, "not decodable")]
    latin = read(tmp_path, "a caf\xe9".encode("latin-1"), b"T1\tX 2 6\tcaf\xe9\n", encoding="latin-1")
    assert spans(latin) == [("caf\xe9", "X")]


def test_line_separators_inside_a_line_do_not_end_it(tmp_path):
    assert spans(read(tmp_path, "a\u2028b", "T1\tX 0 3\ta\u2028b\r\n")) == [("a\u2028b", "X")]


@pytest.mark.parametrize(
    ("ann", "lines"),
    [
        ("T1\tX 0 3\tone\rT2\tX 4 7\ttwo\rT3\tX 8 13\tthree\r", {"T": 3}),
        ("T1\tX 0 3\tone\rT2\tX 4 7\ttwo\rT3\tX 8 13\tthree", {"T": 3}),
        ("T1\tX 0 3\tone\rT2\tX 4 7\ttwo\rT3\tX 8 13\tthree\n", {"T": 3}),
        ("T1\tX 0 3\tone\r\nT2\tX 4 7\ttwo\rT3\tX 8 13\tthree\r\n\r\n", {"T": 3, "blank": 1}),
        (
            "T1\tX 0 3\tone\roops\rT2\tX 4 7\ttwo\r\r#1\tNote T1\tx\rT3\tX 8 13\tthree",
            {"T": 3, "#": 1, "stray": 1, "blank": 1},
        ),
    ],
)
def test_lines_that_end_in_cr_alone(tmp_path, ann, lines):
    document = read(tmp_path, "one\rtwo three", ann)
    assert spans(document) == [("one", "X"), ("two", "X"), ("three", "X")]
    assert document.lines == lines
    assert document.labels == {"X": 3}


def test_a_cr_inside_a_mention_does_not_end_its_line(tmp_path):
    document = read(tmp_path, "one\rtwo three", "T1\tX 0 7\tone\rtwo\nT2\tX 8 13\tthree\n")
    assert spans(document) == [("one\rtwo", "X"), ("three", "X")]


@pytest.mark.parametrize(("txt", "ann"), [("TXT", "ANN"), ("txt", "ANN"), ("TXT", "ann"), ("TXT", "A1")])
def test_suffixes_in_capitals_are_read(tmp_path, txt, ann):
    (tmp_path / f"d.{txt}").write_text("a cat")
    (tmp_path / f"d.{ann}").write_text("T1\tX 2 5\tcat\n")
    (stem,) = find_documents(tmp_path)
    assert spans(read_document(stem, tmp_path)) == [("cat", "X")]


def test_the_document_is_named_by_its_path_from_the_root(tmp_path):
    stems = [write(tmp_path, f"{folder}/same", "a", ann="") for folder in ("b", "a")]
    assert find_documents(tmp_path) == stems[::-1]
    assert [read_document(stem, tmp_path).path for stem in find_documents(tmp_path)] == ["a/same.txt", "b/same.txt"]


@pytest.mark.parametrize("label", ["Amount-Unit", "v-fin", "Größe", "名", "B-cell.line"])
def test_labels_are_opaque(tmp_path, label):
    stem = write(tmp_path, "d", "a cat", ann=f"T1\t{label} 2 5\tcat\n")
    document = read_document(stem, tmp_path)
    assert spans(document) == [("cat", label)]
    assert document.labels == {label: 1}


def test_no_document_is_an_error_that_names_the_folder(tmp_path):
    assert find_documents(tmp_path) == []
    with pytest.raises(InputError, match=r"nothing: there is no such folder"):
        find_documents(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("corpus", "documents", "lines"),
    [
        ("wnut2020_wlp/train", 370, 48197),
        ("wnut2020_wlp/dev", 122, 15972),
        ("litbank", 100, 13912),
        ("materials_syntheses", 230, 21345),
    ],
)
def test_real_corpora_balance(corpus, documents, lines):
    root = real_corpus(corpus)
    read_documents = [read_document(stem, root) for stem in find_documents(root)]
    assert sum(document.text is not None for document in read_documents) == documents
    assert sum(document.lines["T"] for document in read_documents) == lines
    lost = sum(problem.reason in NOT_CONVERTED for document in read_documents for problem in document.problems)
    assert sum(len(document.mentions) for document in read_documents) + lost == lines
    # Nothing in these corpora is beyond conversion, so a bug that drops a mention shows here.
    assert lost == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("suffix", [".ann", ".txt"])
def test_utf_16_is_named(tmp_path, encoding, suffix):
    (tmp_path / "d.txt").write_text("big cat")
    (tmp_path / "d.ann").write_text("T1\tX 4 7\tcat\n")
    file = tmp_path / f"d{suffix}"
    file.write_bytes(file.read_text().encode(encoding))
    document = read_document(tmp_path / "d", tmp_path)
    assert (document.text, document.mentions) == (None, [])
    assert (f"d{suffix}", 0, "UTF-16", "") in document.problems
    assert {problem.reason for problem in document.problems} == {"UTF-16"}
    assert document.lines["T"] == (0 if suffix == ".ann" else 1)
