"""Comparisons of revisions, against hand counts."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import msgspec
import pytest
from pyarrow.parquet import read_table, write_table

from labelwise.base.errors import InputError
from labelwise.compare.changed_spans import changed_spans
from labelwise.compare.comparison import Change, compare, count_against
from labelwise.compare.revisions import Revision
from labelwise.compare.summary import notes, tabulate
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import Seen
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import GROUP, Tables
from tests.evaluate.test_scoring import keyed, write
from tests.evaluate.written import write_rows

FOLDER = TemporaryDirectory()
A, A2, B = (0, 3, "A"), (4, 7, "A"), (4, 7, "B")


def make_doc(key, predicted, gold, **more):
    return PredictedDoc(key, "abc def ghi", sorted(predicted), sorted(gold), **more)


def make_results(revision, docs, labels=("A", "B")):
    """Results as an evaluation would have them."""
    tables = write(Path(mkdtemp(dir=FOLDER.name)), docs, labels=sorted(labels))
    return Revision(revision, measure(tables, sorted(labels)), tables)


def compare_docs(labels=("A", "B"), **docs):
    return compare([make_results(name, some, labels) for name, some in docs.items()])


def f(right, predicted, gold):
    return pytest.approx(2 * right / (predicted + gold))


def test_hand_counted():
    golds = {"1": [A, B], "2": [A], "3": [B]}
    base = [make_doc("1", [A], golds["1"]), make_doc("2", [], golds["2"]), make_doc("3", [A2], golds["3"])]
    other = [make_doc("1", [A, B], golds["1"]), make_doc("2", [A], golds["2"]), make_doc("3", [B], golds["3"])]
    made = compare_docs(main=base, branch=other)
    assert (made.revisions, made.texts, made.gold_differs) == (["main", "branch"], 3, 0)
    assert made.labels["A"].f == {"main": f(1, 2, 2), "branch": 1.0}
    assert made.labels["B"].f == {"main": 0.0, "branch": 1.0}
    assert made.micro.f == {"main": f(1, 2, 4), "branch": 1.0}
    assert made.macro.f == {"main": 0.25, "branch": 1.0}
    assert [made.labels["A"].support, made.labels["B"].support, made.micro.support] == [2, 2, 4]
    assert made.labels["B"].changes["branch"].difference == 1.0
    assert made.labels["A"].changes["branch"].difference == 0.5


def random_docs(quality, count):
    rng = random.Random(count)
    docs = []
    for number in range(count):
        gold = [(4 * i, 4 * i + 3, rng.choice("AB")) for i in range(rng.randint(1, 5))]
        draw = random.Random(f"{quality}/{number}")
        predicted = [span if draw.random() < quality else (span[0], span[1], "A") for span in gold]
        docs.append(make_doc(f"{number:03d}", predicted, gold))
    return docs


def test_spans_are_those_of_the_docs_and_counted_as_each_is_scored():
    """More texts than a row group has, gold that nests, and coverage of all kinds."""
    docs = keyed(random_docs(0.7, GROUP + 50))
    states: list[dict[str, str]] = [{}, {"A": "none"}, {"A": "partial"}, {"A": "none", "B": "partial"}]
    for number, doc in enumerate(docs):
        doc.gold = sorted({*doc.gold, (0, 7, "A")})
        doc.rejected = sorted({(0, 3, "A")}.difference(doc.gold))
        doc.uncovered = states[number % 4]
    groups = make_results("main", docs, "ABC").tables.docs()
    read = {doc.key: doc for group in groups for doc in group}
    assert list(read) == [doc.key for doc in docs]
    for doc in docs:
        gold, predicted = doc.scored(doc.gold), doc.scored(doc.predicted)
        for label, row in zip("ABC", count_against(read[doc.key], read[doc.key], "ABC").tolist(), strict=True):
            kept = (gold & predicted, predicted, gold)
            assert row == [sum(span[2] == label for span in spans) for spans in kept]


def test_a_real_difference_is_found_and_its_sign_is_right_and_equal_results_differ_by_nothing():
    base, other = random_docs(0.5, 150), random_docs(0.9, 150)
    made = compare_docs(main=base, branch=other, same=base)
    change = made.micro.changes["branch"]
    assert 0 < change.low < change.difference < change.high
    assert change.significant
    for row in (*made.labels.values(), made.micro, made.macro):
        assert row.changes["same"] == Change(0.0, 0.0, 0.0)
    back = compare_docs(branch=other, main=base).micro.changes["main"]
    assert back.difference == -change.difference
    assert (back.low, back.high) == (pytest.approx(-change.high), pytest.approx(-change.low))


@pytest.mark.parametrize("known", [True, False])
def test_documents_of_the_last_revision_are_the_units_and_texts_where_its_tables_have_none(known):
    """Ten texts of each document are equal, so that texts are surer than documents by the root of ten."""
    texts = {"main": random_docs(0.6, 20), "branch": random_docs(0.8, 20)}
    made = []
    for times in (1, 10):
        some = {
            name: keyed([msgspec.structs.replace(doc, unit=f"{doc.key}") for doc in docs for _ in range(times)])
            for name, docs in texts.items()
        }
        results = [make_results(name, docs) for name, docs in some.items()]
        if not known:
            file = results[-1].tables.texts
            write_table(read_table(file).drop_columns(["unit"]), file)
        made.append(compare(results))
    one, ten = (each.micro.changes["branch"] for each in made)
    wide, narrow = one.high - one.low, ten.high - ten.low
    assert [each.units for each in made] == ([20, 20] if known else [20, 200])
    assert narrow == pytest.approx(wide) if known else narrow < 0.4 * wide
    assert [notes(each)[0] for each in made][1] == f"200 texts{' of 20 documents' * known}, gold of branch"


def test_of_many_labels_more_than_an_interval_without_0_is_asked_for():
    """The same docs and label, alone and beside thirty others; the average over all isn't one of them."""
    some = {"main": random_docs(0.6, 40), "branch": random_docs(0.75, 40)}
    alone, beside = (compare_docs(names, **some) for names in ("B", ["B", *map(str, range(30))]))
    one, other = (made.labels["B"].changes["branch"] for made in (alone, beside))
    assert 0 < one.low == other.low
    assert (one.significant, other.significant, beside.micro.changes["branch"].significant) == (True, False, True)


def test_the_gold_and_the_coverage_of_the_last_revision_count():
    """The annotation was corrected: both are judged by the new one."""
    made = compare_docs(main=[make_doc("1", [A2], [A2])], branch=[make_doc("1", [B], [B])])
    assert (made.micro.f, made.gold_differs) == ({"main": 0.0, "branch": 1.0}, 1)
    unknown, known = [make_doc("1", [A], [], uncovered={"A": "none"})], [make_doc("1", [A], [])]
    made = compare_docs(branch=known, main=unknown)
    assert made.labels["A"].f == {"main": None, "branch": None}
    assert made.labels["A"].changes["main"] == Change()
    assert made.gold_differs == 1
    assert compare_docs(main=unknown, branch=known).labels["A"].f == {"main": 0.0, "branch": 0.0}


def test_of_dev_and_test_those_of_test_are_compared_and_spans_of_either_are_listed():
    """On dev, the branch finds nothing, and main everything; on test it's the other way round."""
    right, wrong = [make_doc("1", [A], [A])], [make_doc("1", [], [A])]
    on_dev = [(make_doc("0", doc.predicted, [A, B]), {}) for doc in (*right, *wrong)]
    revisions = []
    for name, docs, dev in (("main", wrong, on_dev[:1]), ("branch", right, on_dev[1:])):
        tables = Tables.of(Path(mkdtemp(dir=FOLDER.name)))
        write_rows(((doc, {}) for doc in docs), "test", ["A", "B"], tables, dev=dev)
        revisions.append(Revision(name, measure(tables, ["A", "B"], "test"), tables))
    made = compare(revisions)
    assert (made.texts, made.micro.f, made.micro.support) == (1, {"main": 0.0, "branch": 1.0}, 1)
    assert [(one.change, one.text) for one in changed_spans(*revisions)] == [("won", "1")]
    assert [(one.change, one.text) for one in changed_spans(*revisions, dev=True)] == [("lost", "0")]


def test_labels_that_one_revision_has_alone():
    base = [make_doc("1", [A, B], [A, B], uncovered={"C": "none"})]
    other = [make_doc("1", [A], [A])]
    made = compare([make_results("main", base, "ABC"), make_results("branch", other, "AD")])
    assert list(made.labels) == ["A"]
    assert made.only == {"main": ["B", "C"], "branch": ["D"]}
    assert made.gold_differs == 0
    assert made.micro.f == {"main": 1.0, "branch": 1.0}
    with pytest.raises(InputError, match="main, branch: there is no label that all of them have"):
        compare([make_results("main", base, "AB"), make_results("branch", [], "C")])
    for names in (["main"], ["main", "main"], []):
        with pytest.raises(InputError, match="give two revisions or more, each once"):
            compare([make_results(name, []) for name in names])


def test_test_sets_that_differ_are_compared_on_what_is_common_and_that_is_said():
    base = [make_doc(key, [A], [A]) for key in "1245"]
    other = [make_doc(key, [] if key in "34" else [A], [A]) for key in "2346"]
    made = compare_docs(main=base, branch=other)
    assert made.texts == 2
    assert made.micro.f == {"main": 1.0, "branch": f(1, 1, 2)}
    said = [note for note in notes(made) if "test sets differ" in note]
    assert said == [
        f"The test sets differ: 2 texts of {name} left out, as not all revisions have them" for name in made.revisions
    ]
    with pytest.raises(InputError, match="no text that all of them have"):
        compare_docs(main=base[:1], branch=other)


def test_pipelines_that_were_trained_on_their_test_sets_or_may_have_been_are_named():
    docs = random_docs(0.7, 10)
    results = [make_results(name, docs) for name in ("old", "main", "leaky")]
    results[1].metrics.seen = Seen(0, 0.5)
    results[2].metrics.seen = Seen(9, 0.25)
    said = [note for note in notes(compare(results)) if "trained on" in note]
    assert said[0].startswith("old: Unknown whether the pipeline was trained on some of the 10 texts")
    assert said[1].startswith("leaky: The pipeline was trained on 9 of the 10 texts")
    assert said[1].endswith("without them 0.250")


def test_what_is_won_and_lost_is_listed_span_by_span():
    """A gold span that is found now, one that isn't any more, and a prediction that is gone; not what gold changed."""
    base = [make_doc("1", [A, (8, 11, "B")], [A, B]), make_doc("2", [A2], [A2]), make_doc("3", [], [A])]
    other = [make_doc("1", [A, B], [A, B]), make_doc("2", [B], [A2], doc="b.txt"), make_doc("3", [], [A, B])]
    one, two = (make_results(name, docs) for name, docs in (("main", base), ("branch", other)))
    assert changed_spans(one, two) == [
        ("lost", "label", "A", "def", "b.txt", "abc ", " ghi", "label"),
        ("won", "missed", "B", "def", "1", "abc ", " ghi", "new"),
        ("won", "spurious", "B", "ghi", "1", "abc def ", "", ""),
    ]
    back = [(row.change, *row[1:4]) for row in changed_spans(two, one)]
    assert sorted(back) == [
        ("lost", "missed", "B", "def"),
        ("lost", "spurious", "B", "ghi"),
        ("won", "label", "A", "def"),
    ]
    assert changed_spans(one, one) == []


def sure_docs():
    gold = [(4 * n, 4 * n + 3, "A") for n in range(3)]
    return [[make_doc(f"{key:02}", gold if better else gold[:1], gold) for key in range(20)] for better in (0, 1)]


SETTINGS = {"vars": {"seed": 0, "steps": 600}, "merge": {"lang": "en"}}


@pytest.mark.parametrize(
    ("settings", "corpus", "undertrained", "why"),
    [
        (SETTINGS, "c", {}, None),
        (SETTINGS | {"vars": {"seed": 1, "steps": 600}}, "c", {}, "differs from main in its seed alone"),
        (SETTINGS | {"vars": {"seed": 1, "steps": 900}}, "c", {}, None),
        (SETTINGS | {"vars": {"seed": 1, "steps": 600}}, "d", {}, None),
        (SETTINGS | {"vars": {"seed": 1, "steps": 600}, "merge": {"lang": "de"}}, "c", {}, None),
        (SETTINGS, "c", {"main": "F1 still rises"}, "the training of main stopped too early: F1 still rises"),
        (SETTINGS, "c", {"branch": "F1 still rises"}, "the training of branch stopped too early: F1 still rises"),
    ],
)
def test_where_it_may_be_the_training_alone_no_difference_has_a_star(settings, corpus, undertrained, why):
    base, better = (make_results(name, docs) for name, docs in zip(("main", "branch"), sure_docs(), strict=True))
    base = base._replace(settings=SETTINGS, corpus="c")
    made = compare([base, better._replace(settings=settings, corpus=corpus)], undertrained)
    stars = {row.changes["branch"].significant for row in (made.labels["A"], made.micro, made.macro)}
    assert stars == {why is None}
    said = [one for one in notes(made) if "has no star" in one]
    assert [why in one for one in said] == [True] * (why is not None)


def test_three_revisions_have_a_row_each_in_eighty_columns():
    docs = sure_docs()
    long = {f"a-branch-with-a-long-name-{n}": docs[n % 2] for n in range(4)}
    header, *rows = tabulate(compare_docs(**long))
    assert header == ["Label", "Revision", "F1", "Difference", "95%", "Support"]
    assert [row[:2] for row in rows[:4]] == [["A" * (n == 0), name] for n, name in enumerate(long)]
    assert len(rows) == 4 * len(long)
    assert max(sum(max(len(cell), 4) + 1 for cell in row) for row in rows) <= 80
    assert rows[1][2:5] == ["1.000", "+0.500", "+0.500 to +0.500*"]
