import hashlib
import json
from collections import Counter
from functools import partial
from typing import Any

import pytest

from labelwise.base.errors import InputError
from labelwise.base.text import text_key
from labelwise.corpus.answers import AnswerPlace, read_answers
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.import_checks import IMPORT_CHECKS
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.tables import TABLES
from labelwise.datasets.convert_brat import convert_brat
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from tests.conftest import Merging, task, words_of, write_jsonl
from tests.sources.reading import write

TEXT = "big cat sat on a mat"
BIG, CAT, BIG_CAT, MAT = [0, 3], [4, 7], [0, 7], [17, 20]
WRONG, RIGHT, POLICY = "gold is wrong", "gold is right", "policy"
answer = partial(task, TEXT)


def key(text: str) -> str:
    return text_key(text).hex()


def digest(*spans: list[int]) -> str:
    return hashlib.blake2b(json.dumps(spans, separators=(",", ":")).encode(), digest_size=6).hexdigest()


def row(verdict: str, removed: list[int] | None, added: list[int] | None, answer: str = "", **more: Any) -> dict:
    decision = {"dataset": "a", "text": key(TEXT), "label": "A", "answer": answer or digest(BIG, CAT)}
    return decision | {"verdict": verdict, "removed": removed, "added": added} | more


def decide(merging: Merging, *rows: Any, name: str = "decisions.jsonl") -> None:
    write_jsonl(merging.root / "decisions" / name, list(rows))


def gold(merging: Merging, out: str = "corpus") -> dict[str, list]:
    docs = [doc for file in (merging.root / out).glob("*/*.spacy") for doc in read_stored_docs(file)]
    return {doc.text: [doc.annotation.gold, doc.annotation.rejected, doc.annotation.uncovered] for doc in docs}


def problems(merging: Merging) -> list[tuple]:
    rows = sorted(merging.problems())
    return [(dataset, file, line, reason.partition(":")[0]) for dataset, file, line, reason in rows]


def test_answers_that_count_have_line_and_annotator(merging):
    cat, big = (4, 7), (0, 3)
    rows = [
        task("one", _annotator_id="ann"),
        task("big cat", answer="ignore"),
        task("one", _session_id="bob"),
        task("three", answer="reject"),
        task("big cat", (3, 7), _timestamp=1),
        task("big cat", (3, 7), big, _timestamp=2),
        task("one", _view_id="classification"),
    ]
    merging.add("a", ["A"], rows)
    both = task("big cat", cat, big, (*big, "B"), (0, 7, "A", "reject"))
    merging.add("b", ["B", "A"], [both], kind="complete")
    judged = [task("big cat", cat, _view_id="ner", answer=answer) for answer in ("accept", "reject")]
    merging.add("c", ["A"], judged)
    merging.run()
    corpus = merging.root / "corpus"
    assert read_manifest(corpus).declared == {"a": ("A",), "b": ("B", "A"), "c": ("A",)}
    two = digest([0, 3], [4, 7])
    assert dict(read_answers(corpus, [key("one"), key("big cat"), "gone"])) == {
        key("one"): [AnswerPlace("a", "a.jsonl", 1, "ann"), AnswerPlace("a", "a.jsonl", 3, "bob")],
        key("big cat"): [
            AnswerPlace("a", "a.jsonl", 6, digests={"A": two}),
            AnswerPlace("b", "b.jsonl", 1, digests={"A": two, "B": digest([0, 3])}),
            AnswerPlace("c", "c.jsonl", 2, judged=[(4, 7)]),
        ],
    }


@pytest.mark.guarantee("decisions")
def test_a_decision_about_a_brat_corpus_changes_the_one_span_as_its_file_would(merging):
    """brat's answers have no time."""
    brat, tasks, text = merging.root / "brat", merging.root / "tasks", f"{TEXT} 7"
    for number in range(30):
        write(brat / f"{number}.txt", f"{TEXT} {number}")
        write(brat / f"{number}.ann", "T1\tA 0 3\tbig\nT2\tA 4 7\tcat\n")
    convert_brat(brat, tasks)
    merging.run(docs_per_partition=8)
    before = gold(merging)
    decide(merging, row(WRONG, CAT, MAT, dataset="brat", text=key(text)))
    ledger = merging.run(docs_per_partition=8)
    assert (ledger.rows["corrected"], ledger.spans["removed by a decision"]) == (1, 1)
    after, decided = gold(merging), merging.files()
    assert {other for other in before if before[other] != after[other]} == {text}
    assert [[start, end] for start, end, *_ in after[text][0]] == [BIG, MAT]

    (merging.root / "decisions" / "decisions.jsonl").unlink()
    write(brat / "7.ann", "T1\tA 0 3\tbig\nT2\tA 17 20\tmat\n")
    convert_brat(brat, tasks)
    merging.run("corrected", docs_per_partition=8)
    corrected = merging.files("corrected")
    assert {name for name in decided if decided[name] != corrected[name]} <= {*TABLES, "manifest.json"}
    assert len([name for name in decided if name.endswith(".spacy")]) > 3


@pytest.mark.guarantee("decisions")
@pytest.mark.parametrize(
    ("rows", "expected", "outcomes"),
    [
        ([(WRONG, CAT, None)], [BIG], ["corrected"]),
        ([(WRONG, None, MAT)], [BIG, CAT, MAT], ["corrected"]),
        ([(WRONG, CAT, MAT)], [BIG, MAT], ["corrected"]),
        ([(RIGHT, CAT, None)], [BIG, CAT], ["confirmed"]),
        # white space at an edge, which gold never has
        ([(WRONG, None, [16, 20])], [BIG, CAT, MAT], ["corrected"]),
        # of different spans of one answer, all
        ([(WRONG, CAT, None), (WRONG, BIG, BIG_CAT)], [BIG_CAT], ["corrected", "corrected"]),
        # about the same span, the later one
        ([(WRONG, CAT, None), (WRONG, CAT, MAT)], [BIG, MAT], ["replaced decision", "corrected"]),
        # about what an earlier one made: in a later report
        ([(WRONG, None, MAT), (WRONG, MAT, None)], [BIG, CAT], ["corrected", "corrected"]),
        (
            [(WRONG, CAT, None), (WRONG, None, CAT), (WRONG, CAT, None)],
            [BIG],
            ["replaced decision", *["corrected"] * 2],
        ),
    ],
)
def test_decisions_are_followed_in_their_order_and_each_has_an_outcome(merging, rows, expected, outcomes):
    merging.add("a", ["A"], [answer(BIG, CAT), task("a mat, a hat, a big cat", MAT)])
    made = [row(*one) for one in rows]
    decide(merging, *made[1:], name="later.jsonl")  # files are read by name
    decide(merging, made[0], name="earlier.jsonl")
    ledger = merging.run()
    accepted, *others = gold(merging)[TEXT]
    assert ([[start, end] for start, end, *_ in accepted], others) == (expected, [[], {}])
    assert ledger.rows == Counter(merged=2) + Counter(outcomes)
    assert ledger.rows.total() == 2 + len(rows)


@pytest.mark.guarantee("decisions")
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"answer": digest(BIG)}, WRONG),
        ({"text": key("gone")}, WRONG),
        ({"dataset": "b"}, RIGHT),
        ({"label": "gone"}, POLICY),
    ],
)
def test_a_decision_whose_answer_is_gone_is_superseded_counted_and_located(merging, change, verdict):
    merging.add("a", ["A"], [answer(BIG, CAT)])
    merging.add("b", ["B"], [answer()])
    merging.run()
    before, tables = merging.files(), [merging.table(name) for name in ("texts", "spans")]
    decide(merging, row(RIGHT, BIG, None), row(verdict, CAT, None, **change))
    ledger = merging.run()
    assert ledger.rows == Counter({"merged": 2, "confirmed": 1, "stale decision": 1})
    assert problems(merging) == [(change.get("dataset", "a"), "decisions.jsonl", 2, "stale decision")]
    assert {name for name, content in merging.files().items() if content != before[name]} <= {*TABLES, IMPORT_CHECKS}
    assert [merging.table(name) for name in ("texts", "spans")] == tables, "rows without a text have a row group"
    assert "1 decision no longer applies" in "".join(words_of(ledger.checks))
    assert not ledger.problems
    decide(merging, "{oops", "", row(WRONG, None, [17, 21]), row(WRONG, CAT, None))
    assert merging.run().rows == Counter({"merged": 2, "bad JSON": 1, "malformed": 1, "corrected": 1})
    file = "decisions.jsonl"
    removed = ("a", "a.jsonl", 1, "removed by a decision")
    assert problems(merging) == [("", file, 1, "bad JSON"), removed, ("a", file, 3, "malformed")]
    with pytest.raises(InputError, match=r"2 rows or spans can't be used.*decisions\.jsonl, line 1: bad JSON"):
        merging.run(strict=True)
    declared = [merging.root / "tasks" / "datasets.yml"]
    with pytest.raises(InputError, match="gone: there is no such folder; create it, or leave out --decisions"):
        merge_data(declared, merging.root / "corpus", Settings(), decisions=merging.root / "gone")


@pytest.mark.guarantee("decisions")
@pytest.mark.parametrize("annotators", ["half", "all", "union"])
@pytest.mark.parametrize("others", [[BIG, CAT, MAT], [], [BIG_CAT]])
def test_a_decision_changes_its_span_whatever_other_annotators_say(merging, annotators, others):
    tasks = [answer(BIG, CAT, _annotator_id="ann"), answer(*others, _annotator_id="bob"), answer(_annotator_id="eve")]
    merging.add("a", ["A"], tasks)
    judged = [answer(MAT, _view_id="ner", answer="reject", _timestamp=5), answer(CAT, _view_id="ner", _timestamp=5)]
    merging.add("b", ["A"], judged)
    merging.add("c", ["A"], [answer(*others)])
    policies = Policies(annotators=annotators, conflicts="reject-wins")
    merging.run(policies=policies)
    before = [[start, end] for start, end, *_ in gold(merging)[TEXT][0]]
    decide(merging, row(WRONG, CAT, MAT))
    merging.run(policies=policies)
    after = [[start, end] for start, end, *_ in gold(merging)[TEXT][0]]
    assert after == sorted([*(span for span in before if span not in (CAT, MAT)), MAT])
    outvoted = [span for span in merging.table("spans") if span["reason"] == "outvoted"]
    assert not [span for span in outvoted if span["start"] in (CAT[0], MAT[0])], "what is decided isn't outvoted"


@pytest.mark.parametrize("others", [0, 1])
def test_a_span_removed_from_binary_answers_is_rejected(merging, others):
    answers = [answer(CAT, _view_id="ner"), answer(BIG, _view_id="ner", answer="reject"), answer(_view_id="ner")]
    merging.add("a", ["A", "B"], answers)
    merging.add("b", ["A"], [answer(CAT, _view_id="ner", answer="reject")] * others)
    decide(
        merging,
        row(WRONG, CAT, None, digest(CAT)),
        row(WRONG, None, BIG, digest()),
        row(WRONG, None, MAT, digest(CAT), label="B"),
        row(WRONG, None, MAT, digest(), label="B"),
    )
    ledger = merging.run()
    accepted, rejected, uncovered = gold(merging)[TEXT]
    assert [span[:3] for span in accepted] == [(*BIG, "A"), (*MAT, "B")]
    assert rejected == [(*CAT, "A")]
    assert uncovered == {"A": "partial", "B": "partial"}
    assert ledger.rows["stale decision"] == 1, "no answer has CAT as B"
    assert +ledger.spans == Counter({"entity": 2, "rejected": 1, "conflict": 1, "duplicate": others})


def test_a_policy_question_without_a_note_is_listed_by_its_words(merging):
    merging.add("a", ["A"], [task("text 7", [0, 4])])
    decide(merging, row(POLICY, None, [5, 6], text=key("text 7"), answer=digest([0, 4])))
    merging.run()
    assert merging.problems() == [("a", "decisions.jsonl", 1, "policy question: A '7'")]


@pytest.mark.guarantee("decisions")
def test_decisions_change_what_they_touch_and_leave_nothing_when_they_go(merging):
    merging.add("a", ["A"], [task(f"text {number}", [0, 4]) for number in range(100)])
    merging.run(docs_per_partition=10)
    before = merging.files()
    made = {"text": key("text 7"), "answer": digest([0, 4])}
    decide(merging, row(WRONG, [0, 4], [0, 6], **made), row(POLICY, None, [5, 6], note="is\nthis one?", **made))
    assert merging.run(docs_per_partition=10).rows["corrected"] == 1
    after = merging.files()
    changed = {name for name in after if after[name] != before.get(name)}
    assert len([name for name in changed if name.endswith(".spacy")]) == 1, "the partition of the text"
    assert {name for name in changed if not name.endswith(".spacy")} == {
        "manifest.json",
        "rows.parquet",
        "spans.parquet",
    }
    assert sorted(merging.problems()) == [
        ("a", "a.jsonl", 8, "removed by a decision: decisions.jsonl:1"),
        ("a", "decisions.jsonl", 2, "policy question: A '7': is\nthis one?"),
    ]
    merging.run(docs_per_partition=10)
    assert merging.files() == after
    merging.run("fresh", docs_per_partition=10)
    assert merging.files("fresh") == after
    (merging.root / "decisions" / "decisions.jsonl").unlink()
    merging.run(docs_per_partition=10)
    assert merging.files() == before
