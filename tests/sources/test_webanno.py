import json
import re

import msgspec
import pytest

from labelwise.annotations import Problem
from labelwise.base.errors import InputError
from labelwise.sources.formats import read_items
from tests.conftest import Merging
from tests.sources.reading import read, write
from tests.sources.second_count import lost_of_webanno

NER = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value"
POS = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue|coarseValue"


def tsv(*lines: str, end: str = "\n") -> str:
    return end.join(("#FORMAT=WebAnno TSV 3.3", *lines)) + end


def emoji(width: int) -> list[str]:
    rows = [f"1-1\t0-{width}\t\U0001f600\t_\t_\t", f"1-2\t{width + 1}-{width + 4}\tAnn\t_\tPER\t"]
    return [NER, "", "#Text=\U0001f600 Ann", *rows, "", "#Text=Bob", f"2-1\t{width + 5}-{width + 8}\tBob\t_\tPER\t"]


WHOLE = "[it\\s] \tabc_"
STACKED = [
    *("#T_SP=webanno.custom.Thing|kind|note", "#T_CH=de.x.CoreferenceLink|referenceRelation|referenceType"),
    *("#T_SP=webanno.custom.Bare|", "#T_RL=webanno.custom.Rel|type|BT_webanno.custom.Thing", ""),
    "#Text=[it\\\\s] \\tabc\\_",
    "1-1\t0-6\t[it\\\\s]\tA[1]|B\\|C\\[1\\][2]\tn[1]|n[2]\t*->1-1\t_\t*[3]\t_\t_\t",
    "1-2\t8-12\tabc_\tA[1]\tn[1]\t_\t_\t*[3]|*[4]\t_\t_\t",
    *("1-2.1\t9-11\tbc\tA\t_\t_\t_\t_\t_\t_\t", "1-2.2\t12-12\t\tZ[5]\t_\t_\t_\t_\t_\t_\t"),
]
# INCEpTION calls a new layer custom.*, WebAnno webanno.custom.*; without a value, a span has its layer's name.
LAYERS = [
    *(POS, NER.replace("|value", ""), "#T_SP=webanno.custom.Drug|kind|dose"),
    "#T_RL=custom.Relation|label|BT_custom.Drug",
    "#T_SP=custom.Host|ROLE_custom.Host:links_custom.Link|uima.tcas.Annotation",
    *("", "#Text=Ann took aspirin", "1-1\t0-3\tAnn\tNP\tX\thttp://x\t_\t_\t_\t_\t_\t_\t"),
    *("1-2\t4-8\ttook\tV\tX\t_\t*\t_\t_\t_\tpr2;pr1\t1-1\t", "1-3\t9-16\taspirin\tN\tX\t_\tNSAID\t5\tby\t1-1\t_\t_\t"),
]
# INCEpTION escapes the text of sentences, and not that of tokens.
TOKENS = [NER, "", "#Text=\\\\textbf \\\\no\\f", "1-1\t0-7\t\\textbf\t_\tA\t", "1-2\t8-11\t\\\\no\t_\tB\t"]
SENTENCES = [
    *(POS, NER, "", "", "#Text=Ann moved to New York .", "1-1\t0-3\tAnn\tNP\tX\thttp://a[1]\tPER[1]\t"),
    *("1-2\t4-9\tmoved\tV\tX\t_\t_\t", "1-3\t10-12\tto\tP\tX\t_\t_\t", "1-4\t13-16\tNew\tNP\tX\t_\tLOC[2]\t"),
    *("1-5\t17-21\tYork\tNP\tX\t_\tLOC[2]\t", "1-6\t22-23\t.\t_\t_\t_\t_\t", "", "#Text=So did Bob"),
    *("2-1\t26-28\tSo\t_\t_\t_\t_\t", "2-2\t29-32\tdid\t_\t_\t_\t_\t", "2-3\t33-36\tBob\t_\t_\t*\tPER\t"),
]
COUNTED = [(SENTENCES, (3,)), (STACKED, (0, 4)), (TOKENS, (1,))]  # with the columns that have labels


def cell(value: str) -> list[str]:
    return [NER, "", "#Text=Ann", f"1-1\t0-3\tAnn\t_\t{value}\t"]


UNESCAPED = "invalid: {!r}: a [, ] or \\ that belongs to a value has a \\ before it"


@pytest.mark.guarantee("second-count")
@pytest.mark.parametrize(
    ("lines", "text", "spans", "invalid"),
    [
        (SENTENCES, "Ann moved to New York .\n  So did Bob", [("Ann", "PER"), ("New York", "LOC"), ("Bob", "PER")], []),
        (
            STACKED,
            WHOLE,
            [
                (WHOLE, "A"),
                ("[it\\s]", "B|C[1]"),
                (WHOLE, "Bare"),
                ("abc_", "Bare"),
                ("bc", "A"),
                "invalid: Z 12 12: its end isn't after its start",
            ],
            [],
        ),
        (
            LAYERS,
            "Ann took aspirin",
            [("Ann", "NamedEntity"), ("took", "Drug"), ("took", "Host"), ("aspirin", "NSAID")],
            [],
        ),
        (TOKENS, "\\textbf \\no\f", [("\\textbf", "A"), ("\\no", "B")], []),
        *((emoji(width), "\U0001f600 Ann\nBob", [("Ann", "PER"), ("Bob", "PER")], []) for width in (1, 2)),
        # Values are escaped as INCEpTION's class Escaping says: https://github.com/inception-project/inception.
        (cell("PER\\[1"), "Ann", [("Ann", "PER[1")], []),
        (cell("a\\_b\\->c\\;\\*\\\\|B[2]"), "Ann", [("Ann", "a_b->c;*\\"), ("Ann", "B")], []),
        (cell("X[a]|B"), "Ann", [("Ann", "B")], [UNESCAPED.format("X[a]")]),
        (
            cell("A|B]|C[1][2]|D[]|E\\"),
            "Ann",
            [("Ann", "A")],
            [UNESCAPED.format(one) for one in ("B]", "C[1][2]", "D[]", "E\\")],
        ),
        ([*cell("")[:-1], "1-1\t0-3\tAnn\t_"], "Ann", [], ["invalid: no column for NamedEntity"]),
    ],
)
@pytest.mark.parametrize(("name", "begin", "end"), [("a.tsv", "", "\n"), ("a.conll", "\ufeff", "\r\n")])
def test_the_spans_of_all_layers_of_a_project_are_read(tmp_path, lines, text, spans, invalid, name, begin, end):
    assert read(tmp_path / name, begin + tsv(*lines, end=end)) == [(text, spans), *invalid]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        *(
            ("a.tsv", tsv(NER, "", *rows), rf"{line}: malformed: .*{why}")
            for rows, line, why in (
                (["#Text=Ann", "1-1\tx\tAnn"], 5, "no token with its offsets"),
                (["#Text=Ann", "1-1\t0-9\tAnn\t_\t_"], 5, "'Ann' isn't at 0-9"),
                (
                    ["#Text=Ann", "1-1\t0-3\tAnn\t_\t_", "", "#Text=Bob", "2-1\t1-4\tBob\t_\t_"],
                    *(8, "is in the sentence before"),
                ),
                (["1-1\t0-3\tAnn\t_\tPER"], 4, "a token before the first #Text="),
                (["#Text=Ann Bob", "1-2\t44-7\tBob\t_\tPER\t"], 5, "'Bob' isn't at 44-7"),
                (["#Text=Ann Bob", "1-2\t\u0663-\u0666\tBob\t_\tPER\t"], 5, "no token with its offsets"),
                (
                    ["#Text=A", "1-1\t0-1\tA\t_\t_", "", "#Text=B", "2-1\t900000000-900000001\tB\t_\t_"],
                    *(8, "after the sentence"),
                ),
            )
        ),
        ("a.tsv", b"#FORMAT=WebAnno TSV 2\n", "1: malformed: it doesn't begin with #FORMAT=WebAnno TSV 3; export"),
        ("a.tsv", b"#FORMAT=WebAnno TSV 3.3\n\xff", "0: malformed: not UTF-8"),
        ("a.tsv", tsv(NER, "", "#Text= ", "1-1\t0-1\t \t_\t_\t"), "1: no text"),
        (
            "a.txt/INITIAL_CAS.tsv",
            tsv(*TOKENS),
            "1: not annotated: INITIAL_CAS is the document before anyone annotated it",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path, name, content, why):
    (problem,) = read_items(write(tmp_path / name, content))
    assert isinstance(problem, Problem)
    assert re.match(why, f"{problem.line}: {problem}")


@pytest.mark.guarantee("second-count")
@pytest.mark.parametrize(("lines", "columns"), COUNTED)
def test_a_second_count_finds_nothing_that_is_not_read(tmp_path, lines, columns):
    path = write(tmp_path / "a.tsv", tsv(*lines))
    items = list(read_items(path))
    assert not lost_of_webanno(path, items, columns)
    fewer = msgspec.structs.replace(items[0], spans=items[0].spans[:-1])
    assert lost_of_webanno(path, [fewer, *items[1:]], columns)["annotations"] == 1, "it would find a span"


@pytest.mark.guarantee("second-count")
def test_a_last_sentence_without_tokens_is_counted_and_fails_no_merge(merging: Merging):
    merging.add("a", ["PER"], [], path="annotation/*/*.tsv")
    merging.add("b", ["X"], [{"text": "x", "spans": []}])
    for who, lines in (("ann", [*cell("PER"), "", "#Text=lost"]), ("bob", cell("_"))):
        write(merging.root / "tasks/annotation/one.txt" / f"{who}.tsv", tsv(*lines))
    ledger = merging.run()
    assert (ledger.rows, ledger.problems) == ({"merged": 3, "incomplete read": 1}, 1)
    assert ledger.agreement["PER"] == {"texts": 1, "both": 0, "spans": 1}
    file = "annotation/one.txt/ann.tsv"
    assert merging.problems() == [("a", file, 0, "incomplete read: only 1 of 2 sentences were read")]


PROJECT = {
    "name": "Akten",
    "source_documents": [
        {"name": "one.txt", "format": "text", "state": "CURATION_IN_PROGRESS"},
        {"name": "Akte 2", "format": "text", "state": "CURATION_FINISHED"},
    ],
    "annotation_documents": [
        {"name": "one.txt", "user": "ann", "state": "FINISHED", "annotatorState": None},
        {"name": "one.txt", "user": "bob", "state": "FINISHED", "annotatorState": "IN_PROGRESS"},
        {"name": "Akte 2", "user": "ann", "state": "IN_PROGRESS", "annotatorState": None},
    ],
}


def test_of_a_project_what_its_people_have_finished_is_read(merging: Merging):
    """An unfinished document would count as complete."""
    merging.add("a", ["PER"], [], path=["x/annotation/*/*.tsv", "x/curation/*/*.tsv"])
    for number, name in enumerate(("one.txt", "Akte 2")):
        for file in ("annotation/%s/ann.tsv", "annotation/%s/bob.tsv", "curation/%s/CURATION_USER.tsv"):
            lines = cell("PER" if "ann" in file.rpartition("/")[2] else "_")
            content = tsv(*lines, "", f"#Text={number}", f"2-1\t4-5\t{number}\t_\t_\t")
            write(merging.root / "tasks/x" / (file % name), content)
    ledger = merging.run()
    assert (ledger.rows, ledger.spans) == ({"merged": 6}, {"outvoted": 2})
    assert merging.docs().keys() == {"Ann\n0", "Ann\n1"}
    project = write(merging.root / "tasks/x/exportedproject.json", json.dumps(PROJECT))
    ledger = merging.run()
    assert (ledger.rows, ledger.spans) == ({"merged": 4, "not annotated": 2}, {"entity": 1})
    assert {text: bool(doc.ents) for text, (_, doc) in merging.docs().items()} == {"Ann\n0": True, "Ann\n1": False}
    why = "not annotated: exportedproject.json says that it is in progress; finish it in INCEpTION, or delete that file"
    assert [said.partition(", and")[0] for *_, said in merging.problems()] == [why] * 2
    write(project, "[]")
    with pytest.raises(InputError, match=r"exportedproject\.json: Expected `object`, got `array`; unpack the export"):
        merging.run()
