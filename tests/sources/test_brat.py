"""One case for each row of real brat corpora; every T line has one outcome."""

from pathlib import Path

import pytest

from labelwise.sources.brat import BratOptions, Document, read_document
from tests.sources.reading import write


def read(root: Path, text: str | bytes | None, ann: str | bytes | None, **options) -> Document:
    for suffix, content in (("txt", text), ("ann", ann)):
        if content is not None:
            write(root / f"d.{suffix}", content)
    return read_document(root / "d", root, BratOptions(**options))


def spans(document: Document) -> list[tuple[str, str]]:
    return [(document.task.text[span.start : span.end], span.label) for span in document.task.spans]


def located(document: Document) -> list[str]:
    return [f"{problem.file}:{problem.line} {problem}" for problem in document.problems]


def reading(name: str) -> dict[str, int]:
    return {f"reading: {name}": 1} if name else {}


@pytest.mark.parametrize(
    ("text", "ann", "expected", "notes"),
    [
        # Offsets are read as most mentions agree with them. A line end that isn't counted doesn't get into a span.
        ("a\r\ncat", "T1\tX 3 6\tcat\n", ["cat"], {}),
        ("a\r\ncat", "T1\tX 2 5\tcat\n", ["cat"], reading("crlf")),
        ("a\n\ncat", "T1\tX 5 8\tcat\n", ["cat"], reading("lf as two")),
        ("a\r\ncat\r\n", "T1\tX 2 5\tcat\n", ["cat"], reading("crlf")),
        ("\U0001f600 cat", "T1\tX 2 5\tcat\n", ["cat"], {}),
        ("\U0001f600 cat", "T1\tX 3 6\tcat\n", ["cat"], reading("utf-16")),
        ("\ufeffa cat", "T1\tX 2 5\tcat\n", ["cat"], reading("bom")),
        ("\ufeff\U0001f600\U0001f600\U0001f600\r\ncat", "T1\tX 7 10\tcat\n", ["cat"], reading("crlf+utf-16+bom")),
        # A mention may have tabs, and line ends, which are quoted as spaces; one may not be quoted at all.
        ("a big\tcat", "T1\tX 2 9\tbig\tcat\n", ["big\tcat"], {}),
        ("Bad\n  Nauheim", "T1\tX 0 13\tBad Nauheim\n", ["Bad\n  Nauheim"], {}),
        ("a\u2028b", "T1\tX 0 3\ta\u2028b\r\n", ["a\u2028b"], {}),
        ("one\rtwo three", "T1\tX 0 7\tone\rtwo\nT2\tX 8 13\tthree\n", ["one\rtwo", "three"], {}),
        ("a cat", "T1\tX 2 5\n", ["cat"], {"unverified": 1}),
        # Spans in pieces with only white space between, with white space at the edges, and inside a token.
        ("big\ncat", "T1\tX 0 3;4 7\tbig cat\n", ["big\ncat"], {"joined": 1}),
        ("a\r\nb cat", "T1\tX 3 3;4 7\tcat\n", ["cat"], reading("crlf")),
        ("a \xa0cat\xa0 b", "T1\tX 1 8\t \xa0cat\xa0 \n", ["cat"], {"trimmed": 1}),
        ("at 60degC", "T1\tX 3 5\t60\nT2\tX 5 9\tdegC\n", ["60", "degC"], {}),
        # Lines of annotations may end in CR alone.
        ("a cat", "T1\tX 0 1\ta\rT2\tX 2 5\tcat\r", ["a", "cat"], {}),
        ("a cat", "T1\tX 0 1\ta\r\nT2\tX 2 5\tcat\r", ["a", "cat"], {}),
    ],
)
def test_a_mention_is_found_however_it_is_written(tmp_path, text, ann, expected, notes):
    document = read(tmp_path, text, ann, discontinuous="cover")
    assert spans(document) == [(span, "X") for span in expected]
    assert (document.task.text, document.problems) == (text.replace("\ufeff", " "), [])
    assert +document.notes == notes


PAST = "mention differs: past the end of the text: "
EMPTY = "invalid: empty, or white space alone: "
MALFORMED = "invalid: not `ID<TAB>LABEL START END[;START END...]<TAB>MENTION` with START <= END: "


@pytest.mark.parametrize(
    ("text", "row", "options", "reason"),
    [
        ("the cat sat", "T1\tX 3 6\tcat", {}, "mention differs: "),
        ("cat x cat", "T1\tX 3 6\tcat", {"shifted": "nearest"}, "mention differs: "),  # both are 3 away
        ("the dog", "T1\tX 3 6\tcat", {"shifted": "nearest"}, "mention differs: "),
        ("the cat", "T1\tX 40 43\tcat", {}, PAST),
        ("a\r\nb cat", "T1\tX 0 50;1 3\tfoo", {"discontinuous": "cover"}, PAST),
        ("a cat", "T1\tX 2 2\t", {}, EMPTY),
        ("a \xa0 cat", "T1\tX 1 3\t \xa0", {}, EMPTY),
        ("left and right arm", "T1\tX 15 18;0 4\tleft arm", {}, "discontinuous: "),
        *(("a cat", f"T1\tX {what}\tcat", {}, MALFORMED) for what in ("2", "5 2", "2 5;", "a b")),
        ("a cat", "T1 X 2 5 cat", {}, MALFORMED),
        ("a cat", "T1\tY 2 5\tcat", {"labels": ("X",)}, "other label: "),
        # An offset would be within a pair of UTF-16.
        ("\U0001f600\U0001f600cat", "T1\tX 1 4\t\U0001f600\U0001f600", {}, "mention differs: "),
    ],
)
def test_a_line_that_is_no_mention_has_a_reason_and_costs_itself_alone(tmp_path, text, row, options, reason):
    document = read(tmp_path, text, f"{row}\nT2\tX 0 1\t{text[0]}\n", **options)
    assert spans(document) == [(text[0], "X")]
    assert located(document) == [f"d.ann:1 {reason}{row!r}"]
    assert document.lines == {"T": 2}


def test_a_long_line_is_quoted_in_part(tmp_path):
    (problem,) = located(read(tmp_path, "a cat", f"T1\tX 2 {'9' * 5000}\tcat\n"))
    assert problem == f"d.ann:1 {MALFORMED}'T1\\tX 2 {'9' * 193}'"


def test_policies_for_discontinuous_and_shifted_spans_and_missing_files(tmp_path):
    assert read(tmp_path, "a cat", None, missing_ann="empty").task.text == "a cat"
    for policy, expected in (("first", "left"), ("cover", "left and right arm")):
        document = read(tmp_path, "left and right arm", "T1\tX 15 18;0 4\tleft arm\n", discontinuous=policy)
        assert spans(document) == [(expected, "X")]
        assert +document.notes == {"made one": 1}
    for offsets in ("3 6", "40 43"):
        document = read(tmp_path, "the cat sat", f"T1\tX {offsets}\tcat\n", shifted="nearest")
        moved = [(span.start, span.end) for span in document.task.spans]
        assert (moved, +document.notes) == ([(4, 7)], {"moved": 1})


NESTED = "T1\tX 0 7\tbig cat\nT2\tX 4 7\tcat\nT3\tY 4 11\tcat sat\nT4\tY 0 7\tbig cat\nT5\tX 4 7\tcat\n"
KINDS = (
    "T1\tProtein 0 3\tp53\nE1\tBinding:T2 Theme:T1\nR1\tEquiv Arg1:T1 ARG2:T2\nT-shirts are no annotation\n"
    "A1\tNegation E1\nM1\tSpeculation E1\nN1\tReference T1 Taxonomy:9606\thuman\n#3\tAnnotatorNotes E23\t??\tx\n"
    "*\tEquiv T1 T2\nhello world\n\n"
)
ONE = "T1\tX 0 1\ta\nE1\tX:T1\n"
T1 = r"'T1\tX 0 1\ta'"
GONE = "no .txt beside it, or an empty one"
UTF_16S = ("utf-16", "utf-16-le")
UTF_16 = "UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8"
NOT_UTF_8 = "not utf-8; declare the files' `encoding` in the section brat of project.yml"


@pytest.mark.parametrize(
    ("text", "ann", "expected", "lines", "problems"),
    [
        # Nested, crossing and equal spans survive.
        (
            *("big cat sat", NESTED),
            [("big cat", "X"), ("big cat", "Y"), ("cat", "X"), ("cat", "X"), ("cat sat", "Y")],
            *({"T": 5}, []),
        ),
        (
            *("p53 binds", KINDS, [("p53", "Protein")], {**dict.fromkeys("TERAMN#*", 1), "stray": 2, "blank": 1}),
            [
                "d.ann:4 invalid: not an annotation: 'T-shirts are no annotation'",
                "d.ann:10 invalid: not an annotation: 'hello world'",
            ],
        ),
        # An empty file of annotations is complete, and a missing one isn't, whatever its text is.
        ("a cat", "", [], {}, []),
        *((text, None, None, {}, ["d.txt:0 not annotated: no annotation file"]) for text in ("a cat", b"\xe9", "")),
        *(
            (text, ONE, None, {"T": 1, "E": 1}, [f"d.txt:0 no text: {GONE}", f"d.ann:1 invalid: {GONE}: {T1}"])
            for text in (None, "", " \n")
        ),
        *(("a", ONE.encode(name), None, {}, [f"d.ann:0 malformed: {UTF_16}"]) for name in UTF_16S),
        *(
            (
                *("a".encode(name), ONE, None, {"T": 1, "E": 1}),
                [f"d.txt:0 malformed: {UTF_16}", f"d.ann:1 invalid: {UTF_16}: {T1}"],
            )
            for name in UTF_16S
        ),
    ],
)
def test_every_line_is_counted_and_what_is_not_converted_is_located(tmp_path, text, ann, expected, lines, problems):
    document = read(tmp_path, text, ann)
    assert (None if document.task is None else spans(document)) == expected
    assert +document.lines == lines
    assert located(document) == problems


@pytest.mark.guarantee("one-bad-line")
def test_wrong_encoding_costs_what_it_spoils_only(tmp_path):
    spoiled = read(tmp_path, "caf\xe9".encode("latin-1"), ONE)
    assert located(spoiled) == [f"d.txt:0 malformed: {NOT_UTF_8}", f"d.ann:1 not decodable: {NOT_UTF_8}: {T1}"]
    line = read(tmp_path, "a caf\xe9", b"T1\tX 2 6\tcaf\xe9\nT2\tX 0 1\ta\n")
    assert spans(line) == [("a", "X")]
    assert located(line) == [f"d.ann:1 not decodable: {NOT_UTF_8}: " + r"'T1\tX 2 6\tcaf\\xe9'"]
    latin = read(tmp_path, "a caf\xe9".encode("latin-1"), b"T1\tX 2 6\tcaf\xe9\n", encoding="latin-1")
    assert spans(latin) == [("caf\xe9", "X")]


@pytest.mark.guarantee("opaque")
@pytest.mark.parametrize("label", ["Amount-Unit", "Größe", "名", "B-cell.line"])
def test_labels_are_opaque(tmp_path, label):
    document = read(tmp_path, "a cat", f"T1\t{label} 2 5\tcat\n")
    assert (spans(document), document.labels) == ([("cat", label)], {label: 1})
