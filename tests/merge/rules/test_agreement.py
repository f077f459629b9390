"""Agreement where texts were annotated twice: counted by hand, by brute force, and in the ledger of a merge."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwise.commands.merge import print_ledger
from labelwise.corpus.ledger import Ledger, pairwise_f
from labelwise.merge.commit import ANNOTATORS, AnnotatorPair
from labelwise.merge.rules.agreement import count_agreement, kappa
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, TaskSpan, check_task, parse_task
from tests.merge.rules.texts import make_answer

TEXT = "Add 5 mL of Jordan water."
AMOUNT, JORDAN, WATER = (4, 8, "R"), (12, 18, "R"), (12, 24, "R")
PLACE = (12, 18, "P")


def read_annotators(corpus: Path) -> list[AnnotatorPair]:
    return msgspec.json.decode((corpus / ANNOTATORS).read_bytes(), type=list[AnnotatorPair])


def answer(*spans, data="a", labels="R", line=1, who=None, session=None, time=None, split="auto", **task) -> Answer:
    """One answer, complete if nothing else is said; a span is (start, end, label) or (start, end, label, answer)."""
    marked = [TaskSpan(*span) for span in spans]
    dataset = DataSet(data, (Path(f"{data}.jsonl"),), tuple(labels), "auto", split)
    fields = {"view_id": "ner_manual", "annotator_id": who, "session_id": session, "timestamp": time} | task
    return make_answer(dataset, line, Task(TEXT, marked, **fields))


def agreement(answers, split=None, **policies) -> dict[str, tuple[int, int, int]]:
    """Merge, and give (texts, both, spans) by label."""
    found = count_agreement(merge_text(TEXT, answers, Policies(**policies), split).versions)
    return {label: (n["texts"], n["both"], n["spans"]) for label, n in found.items()}


CASES: dict[str, tuple[list[Answer], dict[str, tuple[int, int, int]]]] = {
    "one answer": ([answer(AMOUNT)], {}),
    "two data sets": ([answer(AMOUNT, JORDAN), answer(AMOUNT, WATER, data="b")], {"R": (1, 1, 4)}),
    "two annotators of one data set": (
        [answer(AMOUNT, JORDAN, who="ann"), answer(AMOUNT, line=2, who="bob")],
        {"R": (1, 1, 3)},
    ),
    # Spans in both: 1, 1 and 1. Spans: 2 + 1, 2 + 2 and 1 + 2.
    "three versions are three pairs": (
        [
            answer(AMOUNT, JORDAN, who="ann"),
            answer(AMOUNT, line=2, who="bob"),
            answer(AMOUNT, WATER, data="b", who="carol"),
        ],
        {"R": (1, 3, 10)},
    ),
    # Of 6 pairs, the span is on both sides in 3; each of 3 spans is in 3 pairs.
    "four versions are six pairs": (
        [answer(JORDAN, data="a"), answer(JORDAN, data="b"), answer(JORDAN, data="c"), answer(data="d")],
        {"R": (1, 3, 9)},
    ),
    "a redo is no second opinion": ([answer(AMOUNT, who="ann"), answer(JORDAN, line=2, who="ann")], {}),
    "nor is one by nobody in particular": ([answer(AMOUNT), answer(JORDAN, line=2)], {}),
    "nor is one in another data set": ([answer(AMOUNT, who="ann"), answer(JORDAN, data="b", who="ann")], {}),
    "the latest answer of each counts, by time": (
        [answer(AMOUNT, who="ann", time=5), answer(JORDAN, line=2, who="ann", time=3), answer(AMOUNT, line=3, who="b")],
        {"R": (1, 1, 2)},
    ),
    "by line, where there is no time": (
        [answer(AMOUNT, who="ann"), answer(JORDAN, line=2, who="ann"), answer(JORDAN, line=3, who="bob")],
        {"R": (1, 1, 2)},
    ),
    "by time between data sets": (
        [
            answer(JORDAN, who="ann", time=9),
            answer(AMOUNT, data="b", line=8, who="ann", time=1),
            answer(JORDAN, data="c"),
        ],
        {"R": (1, 1, 2)},
    ),
    "a session names who has no other name": (
        [answer(AMOUNT, session="ann"), answer(AMOUNT, line=2, who="", session="bob")],
        {"R": (1, 1, 2)},
    ),
    "the annotator goes before the session": (
        [answer(AMOUNT, who="ann", session="1"), answer(AMOUNT, line=2, who="ann", session="2")],
        {},
    ),
    "somebody and nobody are two": ([answer(AMOUNT, who="ann"), answer(AMOUNT, line=2)], {"R": (1, 1, 2)}),
    "an annotator and a data set of one name are two": (
        [answer(AMOUNT, who="b"), answer(AMOUNT, data="b")],
        {"R": (1, 1, 2)},
    ),
    **{
        f"no name: {who!r}": ([answer(AMOUNT, who=who), answer(AMOUNT, line=2, session=who)], {})
        for who in (3, True, ["ann"], {"name": "ann"}, 10**30, 1.5, "")
    },
    "a rejected task": ([answer(AMOUNT), answer(AMOUNT, data="b", answer="reject")], {}),
    "an ignored task": ([answer(AMOUNT), answer(AMOUNT, data="b", answer="ignore")], {}),
    "an unknown answer": ([answer(AMOUNT), answer(AMOUNT, data="b", answer="yes")], {}),
    "a binary task": ([answer(AMOUNT), answer(AMOUNT, data="b", view_id="ner")], {}),
    "another interface": ([answer(AMOUNT), answer(AMOUNT, data="b", view_id="choice")], {}),
    "a rejection takes no version back": (
        [answer(AMOUNT, who="ann"), answer(line=2, who="ann", answer="reject"), answer(AMOUNT, data="b", who="bob")],
        {"R": (1, 1, 2)},
    ),
    "a label that one of them wasn't shown": (
        [answer(AMOUNT, PLACE, labels="RP"), answer(AMOUNT, data="b", labels="R")],
        {"R": (1, 1, 2)},
    ),
    "several labels": (
        [answer(AMOUNT, PLACE, labels="RP"), answer(AMOUNT, JORDAN, data="b", labels="PR")],
        {"R": (1, 1, 3), "P": (1, 0, 1)},
    ),
    "a label that isn't declared": ([answer(AMOUNT, PLACE), answer(AMOUNT, PLACE, data="b")], {"R": (1, 1, 2)}),
    "labels that an earlier merge doesn't cover": (
        [answer(AMOUNT, labels="RP"), answer(AMOUNT, data="b", labels="RP", uncovered={"R": "partial", "P": "none"})],
        {},
    ),
    "white space at the edges": ([answer((11, 19, "R")), answer(JORDAN, data="b")], {"R": (1, 1, 2)}),
    "nearly the same offsets": ([answer(WATER), answer(JORDAN, data="b")], {"R": (1, 0, 2)}),
    "a span that is there twice": ([answer(AMOUNT, AMOUNT), answer(AMOUNT, data="b")], {"R": (1, 1, 2)}),
    "spans that can't be used": (
        [
            answer(AMOUNT, (8, 4, "R"), (0, 99, "R"), ("0", 3, "R"), (3, 4, "R"), (0, 3, None), (0, 3, ["R"])),
            answer(AMOUNT, data="b"),
        ],
        {"R": (1, 1, 2)},
    ),
    "spans that aren't accepted": (
        [answer((*AMOUNT, "accept"), (*JORDAN, "reject"), (*WATER, "ignore")), answer(AMOUNT, JORDAN, data="b")],
        {"R": (1, 1, 3)},
    ),
    "nothing marked by either": ([answer(), answer(data="b")], {"R": (1, 0, 0)}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("policy", ["latest", "union"])
def test_versions_counted_by_hand(name, policy):
    answers, expected = CASES[name]
    assert agreement(answers, duplicates=policy) == expected
    assert agreement(answers[::-1], duplicates=policy) == expected


def test_an_answer_of_another_split_is_no_version():
    answers = [answer(AMOUNT, split="test"), answer(AMOUNT, data="b", split="train")]
    assert agreement(answers, "test") == {}
    assert agreement(answers) == {"R": (1, 1, 2)}


@pytest.mark.parametrize(
    ("both", "spans", "f"), [(1, 4, 0.5), (3, 10, 0.6), (2, 4, 1.0), (0, 2, 0.0), (0, 0, None), (1, 3, 2 / 3)]
)
def test_pairwise_f(both, spans, f):
    assert pairwise_f(both, spans) == f


@pytest.mark.parametrize("value", [3, True, ["ann"], {"name": "ann"}, 10**30, 1.5, "", None])
@pytest.mark.parametrize("key", ["_annotator_id", "_session_id"])
def test_a_malformed_name_does_not_cost_the_row(key, value):
    task, problem = parse_task(json.dumps({"text": "x", key: value}))
    assert (task is not None, problem) == (True, "")
    check_task(task)
    assert task.annotator_id is None


def rows_of(texts: range, who: Any, *spans: tuple[int, int, str], marked: range = range(1000)) -> list[dict]:
    """Tasks of several texts by one annotator; spans are marked in some of them."""
    listed = [{"start": start, "end": end, "label": label} for start, end, label in spans]
    return [
        {"text": f"text {i} cat", "spans": listed if i in marked else [], "_annotator_id": who, "_session_id": who}
        for i in texts
    ]


# Of 60 texts in both data sets, "text" is marked in 60 by ann, in 40 by bob. B: nobody marks anything. There are texts
# enough for several partitions, and for several in a portion.
EXPECTED = {
    "A": {"both": 40, "spans": 100, "texts": 60, "f": 0.8},
    "B": {"both": 0, "spans": 0, "texts": 20, "f": None},
}


def declare(merging) -> None:
    """Declare three data sets; a fourth is new in an incremental merge."""
    merging.add("c", ["C"], [*rows_of(range(90), 10**30, (0, 4, "C")), *rows_of(range(90), ["ann"])])
    merging.add("b", ["B"], [*rows_of(range(30), "ann"), *rows_of(range(20), "bob")])
    merging.add("a", ["A"], rows_of(range(120), "ann", (0, 4, "A")))


def test_the_ledger_has_it_whatever_the_workers_and_what_was_there(merging):
    settings = Settings(docs_per_partition=50)
    metrics = merging.root / "merge.json"

    def run(out: str, workers: int = 1) -> bytes:
        merge_data(
            [merging.root / "tasks/datasets.yml"], merging.root / out, settings, workers=workers, metrics=metrics
        )
        return metrics.read_bytes()

    declare(merging)
    assert json.loads(run("again"))["agreement"] == {"B": EXPECTED["B"]}
    merging.add("bob", ["A"], rows_of(range(60), "bob", (0, 4, "A"), marked=range(40)))
    written = run("one")
    ledger = json.loads(written)
    assert ledger["agreement"] == EXPECTED
    assert [list(ledger["agreement"]), *map(list, ledger["agreement"].values())] == [
        ["A", "B"],
        *[["both", "spans", "texts", "f"]] * 2,
    ]
    # What was superseded: the first answers of c; not ann's in b, where bob answered later.
    assert ledger["rows"] == {"merged": 90 + 30 + 120 + 60 + 20, "superseded": 90}
    assert run("three", workers=3) == written
    assert run("again") == written
    assert run("again") == written


def test_the_table_is_in_the_order_of_the_labels(capsys):
    counts = {"A": Counter(texts=1200, both=4, spans=10), "B": Counter(texts=2, both=0, spans=0)}
    ledger = Ledger(labels={label: Counter() for label in "BCA"}, agreement=counts)
    print_ledger(ledger)
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    start = printed.index("Agreement where texts were annotated twice Texts F")
    assert printed[start + 2 : start + 4] == ["B 2 -", "A 1,200 0.800"]


def test_each_two_annotators_are_compared(merging):
    """Tokens: text, the number, cat. The sessions that nobody named are their data set's."""
    people = {
        "ann": [(0, 4, "A")],
        "bob": [(0, 4, "A"), (7, 10, "A")],
        "2024-03-01_10-00-00": [],
    }
    rows = [row for who, spans in people.items() for row in rows_of(range(10), who, *spans)]
    merging.add("a", ["A"], rows)
    merging.run(docs_per_partition=4)
    found = {(pair.one, pair.other): pair for pair in read_annotators(merging.root / "corpus")}
    assert set(found) == {("ann", "bob"), ("a", "ann"), ("a", "bob")}
    assert {(pair.label, pair.texts) for pair in found.values()} == {("A", 10)}
    both, nobody = found["ann", "bob"], found["a", "ann"]
    assert (both.spans, both.f) == (30, pytest.approx(2 / 3))
    # Of 30 tokens, 10 are in both and 10 in neither: chance would have them agree on 1/3 * 2/3 + 2/3 * 1/3 of them.
    assert both.kappa == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert (nobody.spans, nobody.f, nobody.kappa) == (10, 0.0, 0.0)


def test_tokens_that_touch_a_span_are_not_in_it(merging):
    """Ann marks `cat` of `cat's`, and Bob nothing: one token of two is marked."""
    rows = [
        {"text": "cat's", "_annotator_id": who, "_view_id": "ner_manual", "spans": spans}
        for who, spans in (
            ("ann", [{"start": 0, "end": 3, "label": "A"}]),
            ("bob", [{"start": 3, "end": 5, "label": "A"}]),
        )
    ]
    merging.add("a", ["A"], rows)
    merging.run()
    (pair,) = read_annotators(merging.root / "corpus")
    # They agree on no token; chance would have them agree on half.
    assert pair.kappa == pytest.approx((0 - 1 / 2) / (1 - 1 / 2))


def test_names_of_annotators_are_not_in_the_metrics(merging):
    merging.add("a", ["A"], [*rows_of(range(5), "ann", (0, 4, "A")), *rows_of(range(5), "bob")])
    metrics = merging.root / "merge.json"
    merge_data([merging.root / "tasks/datasets.yml"], merging.root / "corpus", Settings(), metrics=metrics)
    assert len(read_annotators(merging.root / "corpus")) == 1
    assert "bob" not in metrics.read_text()


@settings(max_examples=20, deadline=None, database=None)
@given(st.integers(0, 2**32))
def test_kappa_is_that_of_the_table(seed):
    """Against the definition, by the four cells of the table."""
    rng = random.Random(seed)
    one, other = ([rng.random() < rng.random() for _ in range(40)] for _ in range(2))
    cells = Counter(zip(one, other, strict=True))
    seen = (cells[True, True] + cells[False, False]) / 40
    chance = sum(
        (cells[x, True] + cells[x, False]) / 40 * (cells[True, x] + cells[False, x]) / 40 for x in (True, False)
    )
    same = sum(x == y for x, y in zip(one, other, strict=True))
    assert kappa(40, sum(one), sum(other), same) == pytest.approx((seen - chance) / (1 - chance))


def test_kappa_of_people_who_mark_nothing_is_none():
    assert kappa(10, 0, 0, 10) is None
    assert kappa(10, 10, 10, 10) is None
    assert kappa(0, 0, 0, 0) is None


def test_what_people_marked_differently_is_listed(merging):
    """By label, with who marked what, where; what they agree on isn't."""
    rows = [
        *rows_of(range(2), "ann", (0, 4, "A")),
        *rows_of(range(2), "bob", (0, 4, "A"), (0, 6, "A"), marked=range(1)),
    ]
    rows[0]["meta"] = {"doc": "one.txt"}
    merging.add("a", ["A"], rows)
    merging.add("b", ["B"], [row | {"spans": []} for row in rows])
    merging.run()
    lines = [json.loads(line) for line in merging.files()["disagreements.jsonl"].splitlines()]
    found = {task["text"]: task for task in lines}
    assert set(found) == {"text 0 cat", "text 1 cat"}
    first = found["text 0 cat"]
    assert [(span["start"], span["end"], span["annotators"]) for span in first["spans"]] == [
        (0, 4, ["ann", "bob"]),
        (0, 6, ["bob"]),
    ]
    assert first["meta"] == {
        "label": "A",
        "annotators": "ann, bob",
        "doc": "one.txt",
        "from": "a.jsonl:1, a.jsonl:3, b.jsonl:1, b.jsonl:3",
    }
    assert [span["annotators"] for span in found["text 1 cat"]["spans"]] == [["ann"]]


def test_sessions_that_nobody_named_are_one_annotators(merging):
    """Prodigy names a session after its time each time it is started: that is no second person."""
    rows = [row for time in ("2024-03-01_10-00-00", "2024-03-02_10-00-00") for row in rows_of(range(3), time)]
    merging.add("a", ["A"], rows)
    merging.run()
    assert list(read_annotators(merging.root / "corpus")) == []
