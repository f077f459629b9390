"""Comparisons of revisions, against hand counts and against enumerating all swaps."""

import random
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import msgspec
import pytest

from labelwise.compare.comparison import Change, compare
from labelwise.compare.revisions import Revision
from labelwise.compare.spans import count_spans, read_spans
from labelwise.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import Seen
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import GROUP, Tables, write_rows
from scripts.compare import notes, table, to_markdown
from tests.evaluate.test_scoring import random_docs as random_coverage
from tests.evaluate.test_tables import keyed

FOLDER = TemporaryDirectory()
A, A2, B = (0, 3, "A"), (4, 7, "A"), (4, 7, "B")


def make_doc(key, predicted, gold, **more):
    return PredictedDoc(key, "abc def ghi", sorted(predicted), sorted(gold), sorted(gold), **more)


def make_results(revision, docs, labels=("A", "B"), digest="same"):
    """Results as an evaluation would have them."""
    tables = Tables.of(Path(mkdtemp(dir=FOLDER.name)))
    write_rows(((doc, {}) for doc in docs), "test", sorted(labels), tables)
    metrics = measure(tables, sorted(labels))
    metrics.texts_digest = digest
    return Revision(revision, metrics, tables)


def f(right, predicted, gold):
    return pytest.approx(2 * right / (predicted + gold))


def test_hand_counted():
    golds = {"1": [A, B], "2": [A], "3": [B]}
    base = [make_doc("1", [A], golds["1"]), make_doc("2", [], golds["2"]), make_doc("3", [A2], golds["3"])]
    other = [make_doc("1", [A, B], golds["1"]), make_doc("2", [A], golds["2"]), make_doc("3", [B], golds["3"])]
    made = compare([make_results("main", base), make_results("branch", other)])
    assert (made.revisions, made.gold, made.texts, made.gold_differs) == (["main", "branch"], "branch", 3, 0)
    assert made.labels["A"].f == {"main": f(1, 2, 2), "branch": 1.0}
    assert made.labels["B"].f == {"main": 0.0, "branch": 1.0}
    assert made.micro.f == {"main": f(1, 2, 4), "branch": 1.0}
    assert made.macro.f == {"main": 0.25, "branch": 1.0}
    assert [made.labels["A"].support, made.labels["B"].support, made.micro.support] == [2, 2, 4]
    assert made.labels["B"].changes["branch"].difference == 1.0
    assert made.labels["A"].changes["branch"].difference == 0.5


def test_spans_are_those_of_the_docs_and_counted_as_each_is_scored():
    """More texts than a row group has, gold that nests, and coverage of all kinds."""
    docs = [
        msgspec.structs.replace(doc, found=[(*span, 0.5) for span in {*doc.predicted, *doc.gold[:1]}])
        for doc in keyed(random_coverage(7, GROUP + 50))
    ]
    revision = make_results("main", docs, "ABC")
    spans = read_spans(revision.tables, "ABC")
    assert spans.keys == {doc.key for doc in docs}
    for all_spans in (False, True):
        counts = count_spans(spans.found if all_spans else spans.entities, spans, [doc.key for doc in docs], "ABC")
        for doc, count in zip(docs, counts, strict=True):
            gold, predicted = doc.scored(doc.gold), doc.scored(doc.all_spans() if all_spans else doc.predicted)
            for label, row in zip("ABC", count.tolist(), strict=True):
                kept = (gold & predicted, predicted, gold)
                assert row == [sum(span[2] == label for span in spans) for spans in kept]


def random_docs(seed, quality, count):
    rng = random.Random(seed)
    docs = []
    for number in range(count):
        gold = [(4 * i, 4 * i + 3, rng.choice("AB")) for i in range(rng.randint(1, 5))]
        draw = random.Random(f"{quality}/{seed}/{number}")
        predicted = [span if draw.random() < quality else (span[0], span[1], "A") for span in gold]
        docs.append(make_doc(f"{number:03d}", predicted, gold))
    return docs


def scores_of(docs):
    counts = {label: [0, 0, 0] for label in "AB"}
    for doc in docs:
        for column, spans in enumerate((set(doc.predicted) & set(doc.gold), doc.predicted, doc.gold)):
            for span in spans:
                counts[span[2]][column] += 1
    f_of = {label: 2 * right / (predicted + gold) for label, (right, predicted, gold) in counts.items()}
    right, predicted, gold = (sum(column) for column in zip(*counts.values(), strict=True))
    return {**f_of, "micro": 2 * right / (predicted + gold), "macro": sum(f_of.values()) / 2}


def test_p_is_that_of_all_swaps():
    """With 9 docs, all 512 ways to swap them can be tried."""
    base, other = random_docs(1, 0.4, 9), random_docs(1, 0.8, 9)
    seen = {name: scores_of(other)[name] - score for name, score in scores_of(base).items()}
    as_large = dict.fromkeys(seen, 0)
    for swaps in product([False, True], repeat=9):
        ones = [b if swap else a for a, b, swap in zip(base, other, swaps, strict=True)]
        others = [a if swap else b for a, b, swap in zip(base, other, swaps, strict=True)]
        by_chance = scores_of(others)
        for name, score in scores_of(ones).items():
            as_large[name] += abs(by_chance[name] - score) >= abs(seen[name]) - 1e-9
    exact = {name: n / 512 for name, n in as_large.items()}
    made = compare([make_results("main", base), make_results("branch", other)])
    assert 0 < exact["micro"] < 0.5  # there is something to get wrong
    for name, row in (("micro", made.micro), ("macro", made.macro)):
        assert row.changes["branch"].p == pytest.approx(exact[name], abs=0.02)
    smaller, larger = sorted(exact[label] for label in "AB")
    corrected = sorted(made.labels[label].changes["branch"].p for label in "AB")
    # Holm: the smaller of two is doubled, the larger is no less than that.
    assert corrected == pytest.approx([min(1, 2 * smaller), max(2 * smaller, larger)], abs=0.04)


def test_the_same_results_differ_by_nothing():
    docs = random_docs(2, 0.7, 40)
    made = compare([make_results("main", docs), make_results("branch", docs)])
    for row in (*made.labels.values(), made.micro, made.macro):
        assert row.changes == {"branch": Change(0.0, 0.0, 0.0, 1.0, 1.0)}


def test_a_real_difference_is_found_and_its_sign_is_right():
    base, other = random_docs(3, 0.5, 150), random_docs(3, 0.9, 150)
    made = compare([make_results("main", base), make_results("branch", other), make_results("same", base)])
    change = made.micro.changes["branch"]
    assert 0 < change.low < change.difference < change.high
    assert change.p < 0.001
    assert made.micro.changes["same"] == Change(0.0, 0.0, 0.0, 1.0, 1.0)
    back = compare([make_results("branch", other), make_results("main", base)]).micro.changes["main"]
    assert back.difference == -change.difference
    assert (back.low, back.high) == (pytest.approx(-change.high), pytest.approx(-change.low))


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("last", {"main": 0.0, "branch": 1.0}),  # the annotation was corrected: both are judged by the new one
        ("own", {"main": 1.0, "branch": 1.0}),
    ],
)
def test_whose_gold_counts(gold, expected):
    base, other = [make_doc("1", [A2], [A2])], [make_doc("1", [B], [B])]
    made = compare([make_results("main", base), make_results("branch", other)], gold=gold)
    assert made.micro.f == expected
    assert made.gold_differs == 1
    assert made.gold == {"last": "branch", "own": "own"}[gold]


def test_coverage_counts_as_gold_does():
    unknown = make_results("main", [make_doc("1", [A], [], uncovered={"A": "none"})])
    known = make_results("branch", [make_doc("1", [A], [])])
    made = compare([known, unknown])
    assert made.labels["A"].f == {"main": None, "branch": None}
    assert made.labels["A"].changes["main"] == Change()
    assert made.gold_differs == 1
    assert compare([unknown, known]).labels["A"].f == {"main": 0.0, "branch": 0.0}


def test_where_gold_overlaps_all_spans_are_compared_as_well():
    """The base has entities alone; the branch finds the nested span, too."""
    both, nested = [A, (0, 7, "B")], [(0, 7, "B")]
    base = [PredictedDoc(key, "abc def ghi", [A], both, nested) for key in "12"]
    found = [(*span, 0.9) for span in both]
    other = [PredictedDoc(key, "abc def ghi", nested, both, nested, found=found) for key in "12"]
    made = compare([make_results("main", base), make_results("branch", other)])
    assert made.micro.f == {"main": f(2, 2, 4), "branch": f(2, 2, 4)}
    assert made.all_spans.f == {"main": f(2, 2, 4), "branch": 1.0}
    change = made.all_spans.changes["branch"]
    assert (change.difference, made.all_spans.support) == (pytest.approx(1 / 3), 4)
    assert change.p is not None
    assert ["all spans (micro)", "0.667", "1.000", "+0.333"] in [row[:4] for row in table(made)]
    flat = [make_doc("1", [A], [A], found=[(*A, 0.9)])]
    assert compare([make_results("main", flat), make_results("branch", flat)]).all_spans is None


def test_labels_that_one_revision_has_alone():
    base = [make_doc("1", [A, B], [A, B], uncovered={"C": "none"})]
    other = [make_doc("1", [A], [A])]
    results = [make_results("main", base, "ABC"), make_results("branch", other, "AD")]
    made = compare(results)
    assert list(made.labels) == ["A"]
    assert {name: list(labels) for name, labels in made.only.items()} == {"main": ["B", "C"], "branch": ["D"]}
    assert made.gold_differs == 0
    assert made.micro.f == {"main": 1.0, "branch": 1.0}
    with pytest.raises(InputError, match="main, branch: there is no label that all of them have"):
        compare([make_results("main", base, "AB"), make_results("branch", [], "C")])


def test_test_sets_that_differ_are_refused_or_compared_on_what_is_common():
    base = [make_doc(key, [A], [A]) for key in "1245"]
    other = [make_doc(key, [] if key in "34" else [A], [A]) for key in "2346"]
    results = [make_results("main", base, digest="one"), make_results("branch", other, digest="other")]
    with pytest.raises(InputError, match=r"main has 4 texts, branch has 4 texts\. .*--common"):
        compare(results)
    made = compare(results, common=True)
    assert made.texts == 2
    assert made.left_out == {"main": 2, "branch": 2}
    assert made.micro.f == {"main": 1.0, "branch": f(1, 1, 2)}
    nothing = [make_results("main", base[:1], digest="one"), make_results("branch", other, digest="other")]
    with pytest.raises(InputError, match="no text that all of them have"):
        compare(nothing, common=True)


def test_pipelines_that_were_trained_on_their_test_sets_or_may_have_been_are_named():
    docs = random_docs(5, 0.7, 10)
    results = [make_results(name, docs) for name in ("old", "main", "leaky")]
    results[1].metrics.seen = Seen(0, 0.5, whole=True)
    results[2].metrics.seen = Seen(9, 0.25, whole=True)
    made = compare(results)
    said = [note for note in notes(made) if "trained on" in note]
    assert said[0].startswith("old: Unknown whether the pipeline was trained on some of the 10 texts")
    assert said[1].startswith("leaky: The pipeline was trained on 9 of the 10 texts")
    assert said[1].endswith("without them 0.250")
    assert [note for note in to_markdown(made, "cpu").splitlines() if "trained on" in note] == [f"- {n}" for n in said]


@pytest.mark.parametrize("names", [["main"], ["main", "main"], []])
def test_two_revisions_at_least_each_once(names):
    with pytest.raises(InputError, match="give two revisions or more, each once"):
        compare([make_results(name, []) for name in names])
