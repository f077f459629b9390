"""WebAnno TSV 3: documents of INCEpTION, with layers, stacked and partial annotations, escapes, and UTF-16 offsets."""

import pytest

from labelwise.sources import webanno
from labelwise.sources.formats import read_items
from labelwise.sources.undeclared import declare_folder
from tests.conftest import Merging
from tests.sources.webanno_count import count_lost

NER = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value"
POS = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue|coarseValue"


def write(path, *lines: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#FORMAT=WebAnno TSV 3.3", *lines)) + "\n", encoding="utf8")
    return path


def read(path) -> tuple[str, list[tuple[str, str]]]:
    (item,) = read_items(path)
    assert item.task, item
    return item.task.text, [(item.task.text[span.start : span.end], span.label) for span in item.task.spans]


def test_entities_of_several_tokens_and_sentences(tmp_path):
    path = write(
        tmp_path / "a.tsv",
        *(POS, NER, "", "", "#Text=Ann moved to New York ."),
        "1-1\t0-3\tAnn\tNP\tX\thttp://a[1]\tPER[1]\t",
        "1-2\t4-9\tmoved\tV\tX\t_\t_\t",
        "1-3\t10-12\tto\tP\tX\t_\t_\t",
        "1-4\t13-16\tNew\tNP\tX\t_\tLOC[2]\t",
        "1-5\t17-21\tYork\tNP\tX\t_\tLOC[2]\t",
        "1-6\t22-23\t.\t_\t_\t_\t_\t",
        *("", "#Text=So did Bob", "2-1\t26-28\tSo\t_\t_\t_\t_\t", "2-2\t29-32\tdid\t_\t_\t_\t_\t"),
        "2-3\t33-36\tBob\t_\t_\t*\tPER\t",
    )
    assert read(path) == (
        "Ann moved to New York .\n  So did Bob",
        [("Ann", "PER"), ("New York", "LOC"), ("Bob", "PER")],
    )
    (item,) = read_items(path)
    assert (item.task.meta, item.task.annotator_id) == ({"doc": "a.tsv"}, None)


def test_custom_layers_stacked_parts_of_tokens_and_escapes(tmp_path):
    path = write(
        tmp_path / "a.tsv",
        "#T_SP=webanno.custom.Thing|kind|note",
        "#T_CH=de.x.CoreferenceLink|referenceRelation|referenceType",
        "#T_SP=webanno.custom.Bare|",
        "#T_RL=webanno.custom.Rel|type|BT_webanno.custom.Thing",
        "",
        "#Text=[it\\\\s] \\tabc\\_",
        "1-1\t0-6\t[it\\\\s]\tA[1]|B\\|C\\[1\\][2]\tn[1]|n[2]\t*->1-1\t_\t*[3]\t_\t_\t",
        "1-2\t8-12\tabc_\tA[1]\tn[1]\t_\t_\t*[3]|*[4]\t_\t_\t",
        "1-2.1\t9-11\tbc\tA\t_\t_\t_\t_\t_\t_\t",
        "1-2.2\t12-12\t\tZ[5]\t_\t_\t_\t_\t_\t_\t",
    )
    text = "[it\\s] \tabc_"
    assert read(path) == (
        text,
        [(text, "A"), ("[it\\s]", "B|C[1]"), (text, "Bare"), ("abc_", "Bare"), ("bc", "A"), ("", "Z")],
    )


@pytest.mark.parametrize("units", ["utf16", "code points"])
def test_offsets_behind_an_emoji(tmp_path, units):
    more = 2 if units == "utf16" else 1
    path = write(
        tmp_path / "a.tsv",
        *(NER, "", "#Text=\U0001f600 Ann", f"1-1\t0-{more}\t\U0001f600\t_\t_\t"),
        f"1-2\t{more + 1}-{more + 4}\tAnn\t_\tPER\t",
        *("", "#Text=Bob", f"2-1\t{more + 5}-{more + 8}\tBob\t_\tPER\t"),
    )
    assert read(path) == ("\U0001f600 Ann\nBob", [("Ann", "PER"), ("Bob", "PER")])


def test_layers_of_a_projects_own_are_read_beside_entities(tmp_path):
    """INCEpTION calls a new layer custom.*, WebAnno webanno.custom.*; without a value, a span has its layer's name."""
    path = write(
        tmp_path / "a.tsv",
        *(POS, NER.replace("|value", ""), "#T_SP=webanno.custom.Drug|kind|dose"),
        "#T_RL=custom.Relation|label|BT_custom.Drug",
        "#T_SP=custom.Host|ROLE_custom.Host:links_custom.Link|uima.tcas.Annotation",
        *("", "#Text=Ann took aspirin"),
        "1-1\t0-3\tAnn\tNP\tX\thttp://x\t_\t_\t_\t_\t_\t_\t",
        "1-2\t4-8\ttook\tV\tX\t_\t*\t_\t_\t_\tpr2;pr1\t1-1\t",
        "1-3\t9-16\taspirin\tN\tX\t_\tNSAID\t5\tby\t1-1\t_\t_\t",
    )
    assert read(path)[1] == [("Ann", "NamedEntity"), ("took", "Drug"), ("took", "Host"), ("aspirin", "NSAID")]


@pytest.mark.parametrize(
    ("rows", "line", "why"),
    [
        (["#Text=Ann", "1-1\tx\tAnn"], 5, "no token with its offsets"),
        (["#Text=Ann", "1-1\t0-9\tAnn\t_\t_"], 5, "'Ann' isn't at 0-9"),
        (["#Text=Ann", "1-1\t0-3\tAnn\t_\t_", "", "#Text=Bob", "2-1\t1-4\tBob\t_\t_"], 8, "is in the sentence before"),
        (["1-1\t0-3\tAnn\t_\tPER"], 4, "a token before the first #Text="),
        (["#Text=Ann Bob", "1-2\t44-7\tBob\t_\tPER\t"], 5, "'Bob' isn't at 44-7"),
        (["#Text=Ann Bob", "1-2\t99999999999999999999-3\tBob\t_\tPER\t"], 5, "no token with its offsets"),
        (["#Text=Ann Bob", "1-2\t\u0663-\u0666\tBob\t_\tPER\t"], 5, "no token with its offsets"),
        (
            ["#Text=A", "1-1\t0-1\tA\t_\t_", "", "#Text=B", "2-1\t900000000-900000001\tB\t_\t_"],
            8,
            "behind the sentence",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_told(tmp_path, rows, line, why):
    (item,) = read_items(write(tmp_path / "a.tsv", NER, "", *rows))
    assert (item.task, item.line) == (None, line)
    assert item.problem.startswith("malformed: ")
    assert why in item.problem


@pytest.mark.parametrize("content", [b"#FORMAT=WebAnno TSV 2\n", b"#FORMAT=WebAnno TSV 3.3\n\xff", b"\xff"])
def test_another_file_is_told(tmp_path, content):
    (tmp_path / "a.tsv").write_bytes(content)
    (item,) = read_items(tmp_path / "a.tsv")
    assert item.problem.startswith("malformed: ")


def test_a_document_that_nobody_has_opened_is_not_annotated(tmp_path):
    path = write(tmp_path / "one.txt" / "INITIAL_CAS.tsv", NER, "", "#Text=Bob", "1-1\t0-3\tBob\t_\t_\t")
    (item,) = read_items(path)
    assert (item.task, item.problem) == (None, "not annotated: INITIAL_CAS is the document before anyone annotated it")


@pytest.mark.parametrize("suffix", ["tsv", "iob", "conll", "bio"])
def test_tables_are_told_apart_by_what_they_begin_with(tmp_path, suffix):
    """NCBI, AnatEM and Turku publish CoNLL as .tsv."""
    conll, tsv = tmp_path / f"conll.{suffix}", tmp_path / f"webanno.{suffix}"
    conll.write_text("Ann\tB-PER\nmoved\tO\n\n")
    write(tsv, NER, "", "#Text=Ann moved", "1-1\t0-3\tAnn\t_\tPER\t", "1-2\t4-9\tmoved\t_\t_\t")
    tsv.write_text("\ufeff" + tsv.read_text())
    assert read(conll) == read(tsv) == ("Ann moved", [("Ann", "PER")])
    assert [found.entry.labels for found in declare_folder(tmp_path)] == [("PER",), ("PER",)]


def test_annotators_of_an_export_are_compared(merging: Merging):
    for who, tag in (("ann", "PER"), ("bob", "_")):
        write(
            merging.root / "tasks/annotation/one.txt" / f"{who}.tsv", NER, "", "#Text=Bob", f"1-1\t0-3\tBob\t_\t{tag}\t"
        )
    merging.add("a", ["PER"], [])
    merging.declared[0]["path"] = "annotation/*/*.tsv"
    merging.add("b", ["X"], [{"text": "x"}])
    ledger = merging.run()
    assert ledger.rows == {"merged": 3}
    assert ledger.agreement["PER"] == {"texts": 1, "both": 0, "spans": 1}


@pytest.mark.parametrize(
    ("cell", "labels", "written"),
    [
        ("PER\\[1", ["PER[1"], []),
        ("X\\[a\\]", ["X[a]"], []),
        ("a\\_b\\->c\\;\\*\\\\|B[2]", ["a_b->c;*\\", "B"], []),
        ("PER[1", [], ["PER[1"]),
        ("X[a]|B", ["B"], ["X[a]"]),
        ("A|B]|C[1][2]|D[]|E\\", ["A"], ["B]", "C[1][2]", "D[]", "E\\"]),
    ],
)
def test_values_are_escaped_as_inception_escapes_them_or_else_counted(tmp_path, cell, labels, written):
    """As its class Escaping says: https://github.com/inception-project/inception."""
    path = write(tmp_path / "a.tsv", NER, "", "#Text=Ann", f"1-1\t0-3\tAnn\t_\t{cell}\t")
    document, *problems = read_items(path)
    assert [span.label for span in document.task.spans] == labels
    why = "a [, ] or \\ that belongs to a value has a \\ before it"
    assert [(item.line, item.problem) for item in problems] == [(5, f"invalid: {one!r}: {why}") for one in written]


def test_tokens_are_as_in_the_text_or_escaped(tmp_path):
    """INCEpTION escapes the text of sentences, and not that of tokens."""
    path = write(
        tmp_path / "a.tsv",
        *(NER, "", "#Text=\\\\textbf \\\\no\\f"),
        *("1-1\t0-7\t\\textbf\t_\tA\t", "1-2\t8-11\t\\\\no\t_\tB\t"),
    )
    assert read(path) == ("\\textbf \\no\f", [("\\textbf", "A"), ("\\no", "B")])


def test_a_row_without_the_column_of_a_layer_is_counted(tmp_path):
    document, problem = read_items(write(tmp_path / "a.tsv", NER, "", "#Text=Ann", "1-1\t0-3\tAnn\t_"))
    assert document.task.text == "Ann"
    assert (problem.line, problem.problem) == (5, "invalid: no column for NamedEntity")


WHOLE = (
    *(NER, "#T_SP=custom.Drug|kind", "", "#Text=Ann took", "#Text=a pill"),
    *("1-1\t0-3\tAnn\t_\tPER\t_\t", "1-2\t4-8\ttook\t_\t_\t_\t"),
    *("1-3\t9-10\ta\t_\t_\tX[1]|Y[2]\t", "1-4\t11-15\tpill\t_\tA\\|B\tX[1]|*\t"),
    *("", "#Text=So did Bob", "2-1\t17-19\tSo\t_\t_\t_\t", "2-2\t20-23\tdid\t_\t_\t_\t", "2-3\t24-27\tBob\t_\tPER\t_"),
)
LABELED = (1, 2)  # the columns of features that have labels


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_second_count_finds_nothing_that_is_not_read(tmp_path, end):
    path = tmp_path / "a.tsv"
    path.write_bytes(end.join(("#FORMAT=WebAnno TSV 3.3", *WHOLE)).encode())
    (item,) = read_items(path)
    assert [span.label for span in item.task.spans] == ["PER", "X", "Y", "A|B", "Drug", "PER"]
    assert not count_lost(path, [item], LABELED)


parse, join, make_spans = webanno._parse, webanno._join, webanno._spans


def lose_a_row(lines):
    columns, sentences = parse(lines)
    del sentences[0].rows[-1]
    return columns, sentences


def lose_a_sentence(sentences):
    text, places = join(sentences)
    return text.replace("So did Bob", ""), places


def lose_a_span(columns, rows, places):
    spans, problems = make_spans(columns, rows, places)
    return spans[:-1], problems


@pytest.mark.parametrize(
    ("function", "lossy", "lost"),
    [
        ("_parse", lose_a_row, {"annotations": 2, "characters": 13}),
        ("_join", lose_a_sentence, {"sentences": 1}),
        ("_spans", lose_a_span, {"annotations": 1, "characters": 3}),
    ],
)
def test_the_second_count_sees_what_a_reader_loses(tmp_path, monkeypatch, function, lossy, lost):
    path = write(tmp_path / "a.tsv", *WHOLE)
    monkeypatch.setattr(webanno, function, lossy)
    assert count_lost(path, read_items(path), LABELED) == lost


def test_a_last_sentence_without_tokens_is_counted_and_fails_no_merge(merging: Merging):
    lines = (NER, "", "#Text=Ann", "1-1\t0-3\tAnn\t_\tPER\t", "", "#Text=lost")
    merging.add("a", ["PER"], [])
    merging.declared[0]["path"] = write(merging.root / "tasks" / "a.tsv", *lines).name
    merging.add("b", ["X"], [{"text": "Paris"}])
    ledger = merging.run()
    assert (ledger.rows, ledger.problems) == ({"merged": 2, "miscounted": 1}, 1)
    (problem,) = (merging.root / "corpus" / "problems.jsonl").read_text(encoding="utf8").splitlines()
    assert '"file":"a.tsv","line":0,"reason":"miscounted: 2 sentences, of which 1 were read"' in problem
