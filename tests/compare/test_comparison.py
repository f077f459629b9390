import math
import random
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.parquet import read_table, write_table

from benchmarks.seeds import simulate
from labelwise.base.errors import InputError
from labelwise.compare.changed_spans import changed_spans
from labelwise.compare.comparison import Change, compare, count_against
from labelwise.compare.print_comparison import notes, tabulate
from labelwise.compare.revisions import Revision
from labelwise.compare.seeds import make_table
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import Seen, SplitMetrics
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import GROUP, Tables
from tests.evaluate.test_scoring import keyed, write
from tests.evaluate.written import write_rows

FOLDER = TemporaryDirectory()
A, A2, B = (0, 3, "A"), (4, 7, "A"), (4, 7, "B")


def make_doc(key, predicted, gold, **more):
    return PredictedDoc(key, "abc def ghi", sorted(predicted), sorted(gold), **more)


def make_results(revision, docs, labels=("A", "B"), *, dev=(), seeds=(), weights=""):
    """Make results as an evaluation would.

    dev (Sequence): docs of dev, if evaluated.
    seeds (Sequence): docs of each training with another seed.
    """
    labels, folder = sorted(labels), Path(mkdtemp(dir=FOLDER.name))
    tables = write(folder, docs, labels=labels)
    metrics = measure(tables, labels)
    metrics.weights_digest = weights
    if dev:
        (folder / "dev").mkdir()
        (folder / "both").mkdir()
        own = Tables.of(folder / "dev")
        write_rows(((doc, {}) for doc in dev), "dev", labels, own)
        tables = join(Tables.of(folder / "both"), own, tables)
        metrics.dev = msgspec.convert(msgspec.to_builtins(measure(tables._replace(split="dev"), labels)), SplitMetrics)
        metrics.split = "test"
    counts = [
        make_table(split, seed, labels, ((doc.key, count_against(doc, doc, labels)) for doc in some))
        for seed, own in enumerate(seeds)
        for split, some in (own.items() if isinstance(own, dict) else [("test", own)])
    ]
    table = pa.concat_tables(counts).unify_dictionaries() if counts else None
    return Revision(revision, metrics, tables, seeds=table, remedy="run `dvc repro seeds@cpu`")


def join(both, *parts):
    for files in zip(*(tables.files for tables in (both, *parts)), strict=True):
        opened = [parquet.ParquetFile(file) for file in files[1:]]
        with parquet.ParquetWriter(files[0], opened[0].schema_arrow) as writer:
            for table in opened:
                for number in range(table.num_row_groups):
                    writer.write_table(table.read_row_group(number))
    return both


def compare_docs(labels=("A", "B"), **docs):
    return compare([make_results(name, some, labels) for name, some in docs.items()])


def f(right, predicted, gold):
    return pytest.approx(2 * right / (predicted + gold))


def test_hand_counted():
    golds = {"1": [A, B], "2": [A], "3": [B]}
    base = [make_doc("1", [A], golds["1"]), make_doc("2", [], golds["2"]), make_doc("3", [A2], golds["3"])]
    other = [make_doc("1", [A, B], golds["1"]), make_doc("2", [A], golds["2"]), make_doc("3", [B], golds["3"])]
    comparison = compare_docs(main=base, branch=other)
    assert (comparison.revisions, comparison.texts, comparison.gold_differs) == (["main", "branch"], 3, 0)
    assert comparison.labels["A"].f == {"main": f(1, 2, 2), "branch": 1.0}
    assert comparison.labels["B"].f == {"main": 0.0, "branch": 1.0}
    assert comparison.micro.f == {"main": f(1, 2, 4), "branch": 1.0}
    assert comparison.macro.f == {"main": 0.25, "branch": 1.0}
    assert [comparison.labels["A"].support, comparison.labels["B"].support, comparison.micro.support] == [2, 2, 4]
    assert comparison.labels["B"].changes["branch"].difference == 1.0
    assert comparison.labels["A"].changes["branch"].difference == 0.5


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
            sets = (gold & predicted, predicted, gold)
            assert row == [sum(span[2] == label for span in spans) for spans in sets]


def test_a_real_difference_is_found_and_its_sign_is_right_and_equal_results_differ_by_nothing():
    base, other = random_docs(0.5, 150), random_docs(0.9, 150)
    comparison = compare(
        [make_results(name, docs, weights="w") for name, docs in (("main", base), ("branch", other), ("same", base))]
    )
    change = comparison.micro.changes["branch"]
    assert 0 < change.low < change.difference < change.high
    assert change.significant
    for row in (*comparison.labels.values(), comparison.micro, comparison.macro):
        assert row.changes["same"] == Change(0.0, 0.0, 0.0)
    back = compare_docs(branch=other, main=base).micro.changes["main"]
    assert back.difference == -change.difference
    assert (back.low, back.high) == (pytest.approx(-change.high), pytest.approx(-change.low))


def test_an_interval_of_few_texts_is_clipped_to_possible_differences():
    comparison = compare_docs(main=random_docs(0.2, 6), branch=random_docs(1.0, 6))
    assert max(score.changes["branch"].high for score in (*comparison.labels.values(), comparison.micro)) == 1


@pytest.mark.parametrize("known", [True, False])
def test_units_are_the_last_revisions_documents_or_texts_without_documents(known):
    """A document's ten texts are equal, so intervals over texts are narrower by sqrt(10)."""
    texts = {"main": random_docs(0.6, 20), "branch": random_docs(0.8, 20)}
    comparisons = []
    for times in (1, 10):
        some = {
            name: keyed([msgspec.structs.replace(doc, unit=f"{doc.key}") for doc in docs for _ in range(times)])
            for name, docs in texts.items()
        }
        results = [make_results(name, docs) for name, docs in some.items()]
        if not known:
            file = results[-1].tables.texts
            write_table(read_table(file).drop_columns(["unit"]), file)
        comparisons.append(compare(results))
    one, ten = (comparison.micro.changes["branch"] for comparison in comparisons)
    wide, narrow = one.high - one.low, ten.high - ten.low
    assert [comparison.units for comparison in comparisons] == ([20, 20] if known else [20, 200])
    assert narrow == pytest.approx(wide) if known else narrow < 0.4 * wide
    assert [notes(comparison)[0] for comparison in comparisons][
        1
    ] == f"200 texts{' of 20 documents' * known}, gold of branch"


def test_many_labels_need_a_wider_interval_for_a_star():
    some = {"main": random_docs(0.6, 40), "branch": random_docs(0.75, 40)}
    alone, beside = (
        compare([make_results(name, docs, names, weights="w") for name, docs in some.items()])
        for names in ("B", ["B", *map(str, range(30))])
    )
    single, other = (comparison.labels["B"].changes["branch"] for comparison in (alone, beside))
    assert other.low < 0 < single.low
    assert (single.significant, other.significant, beside.micro.changes["branch"].significant) == (True, False, True)


def test_the_gold_and_the_coverage_of_the_last_revision_count():
    comparison = compare_docs(main=[make_doc("1", [A2], [A2])], branch=[make_doc("1", [B], [B])])
    assert (comparison.micro.f, comparison.gold_differs) == ({"main": 0.0, "branch": 1.0}, 1)
    unknown, known = [make_doc("1", [A], [], uncovered={"A": "none"})], [make_doc("1", [A], [])]
    comparison = compare_docs(branch=known, main=unknown)
    assert comparison.labels["A"].f == {"main": None, "branch": None}
    assert comparison.labels["A"].changes["main"] == Change()
    assert comparison.gold_differs == 1
    assert compare_docs(main=unknown, branch=known).labels["A"].f == {"main": 0.0, "branch": 0.0}


def test_test_is_compared_and_spans_of_either_split_are_listed():
    right, wrong = [make_doc("1", [A], [A])], [make_doc("1", [], [A])]
    on_dev = [(make_doc("0", doc.predicted, [A, B]), {}) for doc in (*right, *wrong)]
    revisions = []
    for name, docs, dev in (("main", wrong, on_dev[:1]), ("branch", right, on_dev[1:])):
        tables = Tables.of(Path(mkdtemp(dir=FOLDER.name)))
        write_rows(((doc, {}) for doc in docs), "test", ["A", "B"], tables, dev=dev)
        revisions.append(Revision(name, measure(tables._replace(split="test"), ["A", "B"]), tables))
    comparison = compare(revisions)
    assert (comparison.texts, comparison.micro.f, comparison.micro.support) == (1, {"main": 0.0, "branch": 1.0}, 1)
    assert [(change.change, change.text) for change in changed_spans(*revisions)] == [("fixed", "1")]
    assert [(change.change, change.text) for change in changed_spans(*revisions, dev=True)] == [("new", "0")]


def test_labels_that_one_revision_has_alone():
    base = [make_doc("1", [A, B], [A, B], uncovered={"C": "none"})]
    other = [make_doc("1", [A], [A])]
    comparison = compare([make_results("main", base, "ABC"), make_results("branch", other, "AD")])
    assert list(comparison.labels) == ["A"]
    assert comparison.only == {"main": ["B", "C"], "branch": ["D"]}
    assert comparison.gold_differs == 0
    assert comparison.micro.f == {"main": 1.0, "branch": 1.0}
    with pytest.raises(InputError, match="main, branch: they have no label in common"):
        compare([make_results("main", base, "AB"), make_results("branch", [], "C")])
    for names in (["main"], ["main", "main"], []):
        with pytest.raises(InputError, match="give two revisions or more, each once"):
            compare([make_results(name, []) for name in names])


@pytest.mark.guarantee("compared")
def test_test_sets_that_differ_are_compared_on_what_is_common_and_that_is_said():
    base = [make_doc(key, [A], [A]) for key in "1245"]
    other = [make_doc(key, [] if key in "34" else [A], [A]) for key in "2346"]
    comparison = compare_docs(main=base, branch=other)
    assert comparison.texts == 2
    assert comparison.micro.f == {"main": 1.0, "branch": f(1, 1, 2)}
    matching = [note for note in notes(comparison) if "test sets differ" in note]
    assert matching == [
        f"The test sets differ: 2 texts of {name} left out, because other revisions lack them"
        for name in comparison.revisions
    ]
    with pytest.raises(InputError, match="they have no text in common"):
        compare_docs(main=base[:1], branch=other)


@pytest.mark.guarantee("seen-texts")
def test_pipelines_that_were_trained_on_their_test_sets_or_may_have_been_are_named():
    docs = random_docs(0.7, 10)
    results = [make_results(name, docs) for name in ("old", "main", "leaky")]
    results[1].metrics.seen = Seen(0, 0.5)
    results[2].metrics.seen = Seen(9, 0.25)
    matching = [note for note in notes(compare(results)) if "training data" in note or "train or dev set" in note]
    assert matching[0].startswith("old: Unknown whether some of the 10 texts were in the training data")
    assert matching[1].startswith("leaky: 9 of 10 texts were in the pipeline's train or dev set")
    assert matching[1].endswith("without them 0.250")


def test_what_is_fixed_and_what_is_new_is_listed_span_by_span():
    base = [make_doc("1", [A, (8, 11, "B")], [A, B]), make_doc("2", [A2], [A2]), make_doc("3", [], [A])]
    other = [make_doc("1", [A, B], [A, B]), make_doc("2", [B], [A2], doc="b.txt"), make_doc("3", [], [A, B])]
    one, two = (make_results(name, docs) for name, docs in (("main", base), ("branch", other)))
    assert changed_spans(one, two) == [
        ("new", "label", "A", "def", "b.txt", "abc ", " ghi", "label"),
        ("fixed", "missed", "B", "def", "1", "abc ", " ghi", "unseen"),
        ("fixed", "spurious", "B", "ghi", "1", "abc def ", "", ""),
    ]
    back = [(row.change, *row[1:4]) for row in changed_spans(two, one)]
    assert sorted(back) == [
        ("fixed", "label", "A", "def"),
        ("new", "missed", "B", "def"),
        ("new", "spurious", "B", "ghi"),
    ]
    assert changed_spans(one, one) == []


def sure_docs():
    gold = [(4 * n, 4 * n + 3, "A") for n in range(3)]
    return [[make_doc(f"{key:02}", gold if better else gold[:1], gold) for key in range(20)] for better in (0, 1)]


def better_docs(right, texts=20, split=""):
    gold = [(4 * n, 4 * n + 3, "A") for n in range(3)]
    return [
        make_doc(f"{split}{key:02}", gold[: right[key % len(right)] if isinstance(right, tuple) else right], gold)
        for key in range(texts)
    ]


def stars(split, name="branch"):
    return {row.changes[name].significant for row in (split.labels["A"], split.micro, split.macro)}


WEAK, STRONG = (1, 1, 2, 1), (3, 2, 3, 3)
BETTER_SEEDS = [better_docs((3, 2, 3, 3)), better_docs((3, 2, 3, 2)), better_docs((3, 3, 2))]
SEEDS = [better_docs((1, 1, 2, 1)), better_docs((1, 2, 1, 1, 1)), better_docs((1, 1, 1, 2))]


@pytest.mark.guarantee("intervals")
@pytest.mark.parametrize(
    ("seeds", "weights", "undertrained", "why"),
    [
        (({}, {}), ("v", "w"), {}, "its interval is for these two trainings; other seeds may differ as much: run `dvc"),
        (({}, {}), ("", ""), {}, "its interval is for these two trainings"),
        (({"seeds": SEEDS}, {}), ("v", "w"), {}, None),
        (({}, {"seeds": BETTER_SEEDS}), ("v", "w"), {}, None),
        (({}, {}), ("w", "w"), {}, None),
        (({"seeds": SEEDS}, {}), ("v", "w"), {"main": "F1 rises"}, "the training of main stopped too early: F1 rises"),
        (({}, {}), ("w", "w"), {"branch": "F1 rises"}, "the training of branch stopped too early: F1 rises"),
    ],
)
def test_a_star_needs_other_seeds_unless_the_weights_are_equal(seeds, weights, undertrained, why):
    comparison = compare(
        [
            make_results(name, better_docs(right), weights=own, **more)
            for name, right, own, more in zip(("main", "branch"), (WEAK, STRONG), weights, seeds, strict=True)
        ],
        undertrained,
    )
    assert comparison.micro.changes["branch"].low > 0
    assert stars(comparison) == {why is None}
    matching = [note for note in notes(comparison) if "has no star" in note]
    assert [why in note for note in matching] == [True] * (why is not None)
    shared = any("both use the variance between seeds" in note for note in notes(comparison))
    assert shared == any(seeds)


def test_an_interval_has_the_variance_of_texts_and_that_between_seeds():
    """The oracle leaves out each text and pools over trainings."""
    rng = random.Random(5)
    sides = [
        [better_docs(tuple(rng.choice(draw) for _ in range(20))) for _ in range(n)]
        for draw, n in (((0, 1, 2), 2), ((1, 2, 3), 3))
    ]

    def f1(docs):
        right, predicted, gold = (
            sum(spans) for spans in zip(*(count_against(doc, doc, "A")[0] for doc in docs), strict=True)
        )
        return 2 * right / (predicted + gold)

    def difference(left_out=None):
        means = [statistics.mean(f1([doc for doc in docs if doc.key != left_out]) for docs in side) for side in sides]
        return means[1] - means[0]

    comparison = compare(
        [make_results(name, side[0], "A", seeds=side) for name, side in zip(("main", "branch"), sides, strict=True)]
    )
    gaps = [difference(f"{n:02}") - difference() for n in range(20)]
    texts = 19 / 20 * sum(gap**2 for gap in gaps)
    squares = sum(sum((f1(docs) - statistics.mean(map(f1, side))) ** 2 for docs in side) for side in sides)
    runs = squares / 3 * (1 / 2 + 1 / 3)
    # scipy.stats.t.ppf(0.975, degrees) of 19 and of 3 degrees
    of_texts, of_runs = 2.0930241 * math.sqrt(texts), 3.1824463 * math.sqrt(runs)
    half = math.hypot(of_texts, of_runs)
    change = comparison.micro.changes["branch"]
    assert change.difference == pytest.approx(difference())
    assert [change.low, change.high] == pytest.approx([difference() - half, difference() + half], abs=0.001)
    assert comparison.micro.f == {
        name: pytest.approx(statistics.mean(map(f1, side)))
        for name, side in zip(("main", "branch"), sides, strict=True)
    }
    assert any(note == "Trainings: main 2, branch 3. F1 is the mean over seeds" for note in notes(comparison))


@pytest.mark.guarantee("intervals")
@pytest.mark.parametrize("trainings", [(2, 2), (3, 3), (5, 5), (3, 1)])
@pytest.mark.parametrize("texts", [8, 40])
def test_equal_pipelines_get_a_star_in_five_of_a_hundred_comparisons(texts, trainings):
    """A seed makes a training better or worse on all texts."""
    false = simulate(texts, trainings, samples=300, seed=0)
    assert (np.array(false) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)).all(), false


def test_pipelines_that_differ_no_more_than_their_seeds_have_no_star():
    side = [better_docs(1), better_docs(3)]
    comparison = compare([make_results("main", side[0], seeds=side), make_results("branch", side[1], seeds=side[::-1])])
    assert stars(comparison) == {False}
    assert comparison.micro.changes["branch"].difference == 0


def test_corrected_gold_scores_first_trainings_and_other_seeds_give_the_variance():
    corrected = better_docs(STRONG)
    corrected[0].gold = corrected[0].gold[:1]
    comparison = compare([make_results("main", better_docs(WEAK), seeds=SEEDS), make_results("branch", corrected)])
    alone = compare([make_results("main", better_docs(WEAK)), make_results("branch", corrected)])
    assert (comparison.gold_differs, comparison.trainings, comparison.means) == (1, {"main": 3, "branch": 1}, False)
    assert comparison.micro.f == alone.micro.f
    assert comparison.micro.changes["branch"].low < alone.micro.changes["branch"].low
    assert "Trainings: main 3, branch 1. F1 is of the first" in " ".join(notes(comparison))


@pytest.mark.parametrize(
    ("dev", "test", "message", "verdict"),
    [
        ((WEAK, STRONG), (WEAK, STRONG), "confirmed", "better"),
        ((STRONG, WEAK), (STRONG, WEAK), "confirmed", "worse"),
        ((WEAK, STRONG), ((1, 2), (2, 1)), "not contradicted", "better"),
        ((WEAK, STRONG), (STRONG, WEAK), "contradicted", "better on dev, but worse on test"),
        ((STRONG, WEAK), (WEAK, STRONG), "contradicted", "worse on dev, but better on test"),
        (((1, 2), (2, 1)), (WEAK, STRONG), "", "no significant difference"),
    ],
)
def test_dev_decides_and_test_confirms_or_contradicts(dev, test, message, verdict):
    comparison = compare(
        [
            make_results(name, better_docs(on_test), dev=better_docs(on_dev, split="d"), weights="w")
            for name, on_dev, on_test in zip(("main", "branch"), dev, test, strict=True)
        ]
    )
    assert stars(comparison.dev) == {bool(message)}
    assert stars(comparison) == {False}
    assert comparison.dev.micro.changes["branch"].on_test == message
    last_note = notes(comparison)[-1]
    assert last_note.startswith(f"branch: {verdict}. F1 on dev went from ")
    assert (" on label" in last_note) == (message in ("confirmed", "not contradicted"))
    tables = {on: tabulate(comparison, on) for on in ("dev", "test")}
    assert [table[0][0] for table in tables.values()] == ["F1 on dev", "F1 on test"]
    assert [tables[on][0][-1] for on in ("dev", "test")] == ["Test" if message else "Support", "Support"]
    assert tables["dev"][-2][-1] == (message or "60")
    assert [note for note in notes(comparison) if "gold of" in note] == [
        "dev: 20 texts, gold of branch",
        "test: 20 texts, gold of branch",
    ]


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ((9, 20), "the revisions share 9 scored texts of dev; 10 are needed"),
        ((0, 20), "the revisions share 0 scored texts of dev; 10 are needed"),
    ],
)
def test_where_dev_is_small_or_wasnt_scored_test_decides(texts, why):
    comparison = compare(
        [
            make_results(name, better_docs(right), dev=better_docs(right, n, split="d"), weights="w")
            for name, right, n in zip(("main", "branch"), (WEAK, STRONG), texts, strict=True)
        ]
    )
    assert (stars(comparison), comparison.dev, tabulate(comparison, "dev")) == ({True}, None, [])
    assert tabulate(comparison)[0][0] == "F1"
    assert f"Test decides: {why}" in notes(comparison)


def test_mistakes_to_learn_from_are_those_in_dev():
    one, two = (
        make_results(name, better_docs(right), dev=better_docs(right, split="d"))
        for name, right in (("main", WEAK), ("branch", STRONG))
    )
    assert {row.text[0] for row in changed_spans(one, two)} == {"0", "1"}
    assert {row.text[0] for row in changed_spans(one, two, dev=True)} == {"d"}


def test_three_revisions_have_a_row_each_in_eighty_columns():
    docs = sure_docs()
    long = {f"a-branch-with-a-long-name-{n}": docs[n % 2] for n in range(4)}
    header, *rows = tabulate(compare([make_results(name, own, weights="w") for name, own in long.items()]))
    assert header == ["Label", "Revision", "F1", "Difference", "95%", "Support"]
    assert [row[:2] for row in rows[:4]] == [["A" * (n == 0), name] for n, name in enumerate(long)]
    assert len(rows) == 3 * len(long)  # A and the averages; B has the same F1 in all
    assert max(sum(max(len(cell), 4) + 1 for cell in row) for row in rows) <= 80
    assert rows[1][2:5] == ["1.000", "+0.500", "+0.500 to +0.500*"]


@pytest.mark.parametrize(
    ("weights", "other", "verdict"),
    [
        ("w", 1, "better. F1 on test went from 0.500 to 1.000 (+0.500, +0.500 to +0.500*); better on label A"),
        ("v", 1, "not decided. F1 on test went from 0.500 to 1.000 (+0.500, +0.500 to +0.500)"),
        ("v", 0, "no difference. F1 on test went from 0.500 to 0.500 (+0.000, +0.000 to +0.000)"),
    ],
)
def test_the_last_note_is_the_verdict(weights, other, verdict):
    docs = sure_docs()
    comparison = compare(
        [make_results("main", docs[0], weights="w"), make_results("branch", docs[other], weights=weights)]
    )
    assert notes(comparison)[-1] == f"branch: {verdict}"
    assert f"Equal F1, not shown: label{'s A,' * (not other)} B" in notes(comparison)
