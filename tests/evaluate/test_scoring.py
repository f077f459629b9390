import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
import spacy
from spacy.scorer import Scorer
from spacy.training import Corpus, Example

from labelwise.base.counts import Scores, macro, prf
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.resampling import MIN_UNITS
from labelwise.evaluate.scoring import count_mistakes, measure, score_goals
from labelwise.evaluate.tables import Tables
from tests.conftest import save_ruler, task
from tests.evaluate.written import InTrain, write_rows

NLP = spacy.blank("en")


def make_doc(predicted=(), gold=(), text="big cat sat on 60degC mat", key="00", **fields) -> PredictedDoc:
    return PredictedDoc(
        key=key, text=text, predicted=sorted(predicted), gold=sorted(gold), words=len(text.split()), **fields
    )


def keyed(docs) -> list[PredictedDoc]:
    return [msgspec.structs.replace(doc, key=f"{number:024x}") for number, doc in enumerate(docs)]


def write(folder, docs, in_train=None, labels=("A", "B")) -> Tables:
    tables = Tables.of(folder)
    write_rows(((doc, in_train or {}) for doc in docs), "test", labels, tables)
    return tables


def score(docs, labels=("A", "B"), in_train=None):
    with TemporaryDirectory() as folder:
        return msgspec.to_builtins(measure(write(Path(folder), keyed(docs), in_train, labels), labels))


def counts_and_scores(row) -> Scores:
    return Scores(*(row[key] for key in ("p", "r", "f", "support")))


def figures(row) -> tuple:
    return tuple(row[key] for key in "prf")


@pytest.mark.guarantee("lost-gold")
@pytest.mark.parametrize("lost", [(4, 7, "A"), (15, 17, "B")])
def test_losing_gold_improves_nothing(lost):
    doc = make_doc([(0, 7, "A"), (8, 11, "B")], [(0, 7, "A"), (8, 11, "B"), lost])
    before, after = (score([doc], in_train={lost: train}) for train in (InTrain(), None))
    assert after["all_gold"] == before["all_gold"]
    assert after["all_gold"]["r"] == pytest.approx(2 / 3)


def random_pair(rng: random.Random, gold_labels: str, predicted_labels: str) -> tuple:
    text = " ".join(rng.choices(["aa", "b", "ccc"], k=30))
    docs = predicted, gold = NLP.make_doc(text), NLP.make_doc(text)
    place = 0
    spans: list[list] = [[], []]
    while place < len(gold) - 3:
        length = rng.randint(1, 3)
        kind, label = rng.random(), rng.choice(gold_labels)
        if kind < 0.5:
            spans[1].append(gold[place : place + length])
            spans[1][-1].label_ = label
        if kind < 0.25 or kind > 0.8:
            end = place + (length if rng.random() < 0.8 else 1)
            spans[0].append(predicted[place:end])
            spans[0][-1].label_ = label if rng.random() < 0.8 else rng.choice(predicted_labels)
        place += length
    for doc, ents in zip(docs, spans, strict=True):
        doc.set_ents(ents)
    return docs


@pytest.mark.guarantee("spacys-scores")
@pytest.mark.parametrize(
    ("gold_labels", "predicted_labels"),
    [("XYZ", "XYZ"), ("XYG", "X"), ("X", "XP"), ("G", "P"), ("abcdefghijklm", "fghijklmnopqrs")],
)
def test_on_covered_flat_data_the_numbers_are_spacys_to_the_last_digit(gold_labels, predicted_labels):
    rng = random.Random(gold_labels)
    pairs = [random_pair(rng, gold_labels, predicted_labels) for _ in range(100)]
    docs = [
        make_doc(*([(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents] for doc in pair), text=pair[0].text)
        for pair in pairs
    ]
    against = score(docs, sorted({*gold_labels, *predicted_labels, "NEITHER"}))["all_gold"]
    examples = [Example(*pair) for pair in pairs]
    by_label = {label: {key: row[key] for key in "prf"} for label, row in against["labels"].items()}
    assert by_label.pop("NEITHER") == {"p": None, "r": None, "f": None}
    for expected in (Scorer.score_spans(examples, "ents"), Scorer().score(examples)):
        assert figures(against) == tuple(expected[f"ents_{key}"] for key in "prf")
        assert by_label == expected["ents_per_type"]
    assert 0 < against["f"] < 1
    support = Counter(ent.label_ for _, gold in pairs for ent in gold.ents)
    assert {label: row["support"] for label, row in against["labels"].items() if row["support"]} == support


@pytest.mark.guarantee("spacys-scores")
def test_gold_that_no_tokens_represent_is_missed_and_spacy_does_not_know_it(merging, tmp_path):
    """Of 25 texts with two entities, 5 have another one inside a token, and 5 lack one in the rules' predictions: spaCy
    counts 45 of 50 spans as found, ours 45 of 55.
    """
    texts = [f"add 60degC {'water' if number % 5 else 'brine'} to mat {number}" for number in range(25)]
    rows = [task(text, (11, 16), (20, 23, "B"), *[(4, 6)] * (number < 5)) for number, text in enumerate(texts)]
    merging.add("a", ["A", "B"], rows, split="test")
    merging.add("train", ["A", "B"], [task("one cat", (4, 7))], split="train")
    merging.run()
    nlp = make_nlp(*read_tokenizer(tmp_path / "corpus/tokenizer.json"))
    save_ruler(tmp_path / "model", ("A", "water"), ("B", "mat"), nlp=nlp)
    ours = evaluate_pipeline(tmp_path / "model", tmp_path / "corpus/test").metrics.all_gold
    nlp = spacy.load(tmp_path / "model")
    theirs = nlp.evaluate(list(Corpus(tmp_path / "corpus/test")(nlp)))
    assert (ours.p, ours.r, ours.f) == (1.0, 45 / 55, pytest.approx(0.9))
    assert (theirs["ents_p"], theirs["ents_r"], theirs["ents_f"]) == (1.0, 45 / 50, pytest.approx(90 / 95))


@pytest.mark.guarantee("covered-labels")
@pytest.mark.parametrize(
    ("state", "predicted", "expected", "unscored"),
    [
        # Of label A: right, predicted and gold spans that count. Gold is 0-7, the rejected span 8-11.
        (None, [(0, 7, "A")], (1, 1, 1), 0),
        (None, [(8, 11, "A")], (0, 1, 1), 0),
        (None, [(12, 14, "A")], (0, 1, 1), 0),
        # Only answered spans count: an accepted one, a rejected one, and an unanswered one.
        ("partial", [(0, 7, "A")], (1, 1, 1), 0),
        ("partial", [(8, 11, "A")], (0, 1, 1), 0),
        ("partial", [(12, 14, "A")], (0, 0, 1), 1),
        ("partial", [(0, 7, "A"), (8, 11, "A"), (12, 14, "A")], (1, 2, 1), 1),
        # An overlap with an answered span isn't an answer.
        ("partial", [(0, 3, "A"), (8, 14, "A")], (0, 0, 1), 2),
        ("none", [(0, 7, "A"), (12, 14, "A")], (0, 0, 0), 2),
        ("none", [], (0, 0, 0), 0),
    ],
)
def test_a_label_is_scored_where_it_is_covered(state, predicted, expected, unscored):
    uncovered = {} if state is None else {"A": state}
    # The other label is covered everywhere, and one of its two predictions is right.
    others = [(18, 20, "B"), (22, 25, "B")]
    gold = [(0, 7, "A"), (22, 25, "B")]
    doc = make_doc([*predicted, *others], gold, rejected=[(8, 11, "A")], uncovered=uncovered)
    scores = score([doc])
    assert scores["unscored"] == unscored
    right, found, support = expected
    against = scores["all_gold"]
    assert counts_and_scores(against["labels"]["A"]) == prf(right, found, support)
    assert counts_and_scores(against["labels"]["B"]) == prf(1, 2, 1)
    assert counts_and_scores(against) == prf(right + 1, found + 2, support + 1)


def test_the_mean_is_of_labels_that_have_gold_and_f1_of_all():
    """A is right, B only predicted, C only gold, D in neither; B's predictions are wrong."""
    doc = make_doc([(0, 3, "A"), (4, 7, "B")], [(0, 3, "A"), (8, 11, "C")])
    scores = score([doc] * 60, "ABCD")
    assert figures(scores["all_gold"]["macro"]) == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    assert figures(scores["all_gold"]) == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    assert macro([prf(0, 0, 0)]) == macro([]) == Scores(None, None, None)


@pytest.mark.parametrize("docs", [[], [make_doc()], [make_doc([(0, 3, "A")], uncovered={"A": "none", "B": "none"})]])
@pytest.mark.parametrize("labels", [(), ("A", "B")])
def test_nothing_to_score_is_none_everywhere(docs, labels):
    scores = score(docs, labels)
    row = {"p": None, "r": None, "f": None, "support": 0}
    nothing = {"macro": {"p": None, "r": None, "f": None}, "labels": dict.fromkeys(labels, row)}
    assert scores["all_gold"] == {**row, **nothing}
    assert scores["all_spans"] is scores["calibration_error"] is scores["seen"] is None
    assert (scores["texts"], scores["unscored"]) == (len(docs), sum(len(doc.predicted) for doc in docs))


def test_confusions_are_in_the_order_of_the_texts_so_that_equal_tables_have_equal_bytes(tmp_path, monkeypatch):
    """Threads may read the row groups of a table in any order."""
    monkeypatch.setattr("labelwise.evaluate.tables.GROUP", 1)
    others = [f"B{number:03}" for number in range(200)]
    labels, docs = ("A", *others), [make_doc([(0, 3, other)], [(0, 3, "A")]) for other in others]
    tables = write(tmp_path, keyed(docs), labels=labels)
    for _ in range(8):
        assert list(count_mistakes(tables, labels)["A"].confused) == others


def test_all_spans_are_scored_where_gold_overlaps_alone():
    both, one = [(0, 7, "A"), (4, 7, "B")], [(0, 7, "A")]
    found = [(*span, 0.9) for span in both]
    scores = score([make_doc(one, both, found=found)])
    assert (scores["all_gold"]["f"], scores["all_spans"]["f"]) == (pytest.approx(2 / 3), 1.0)
    many = score([make_doc(one, both, found=found if number else found[:1]) for number in range(9)])["all_spans"]
    assert [many["labels"][label]["f"] for label in "AB"] == [1.0, pytest.approx(16 / 17)]
    assert 0.5 < many["labels"]["B"]["f_low"] < 0.9 < many["labels"]["B"]["f_high"] < 1
    assert score([make_doc(one, both)])["all_spans"] is None
    assert score([make_doc(one, [(0, 3, "A"), (3, 7, "B")], found=found)])["all_spans"] is None


@pytest.mark.parametrize("predicted", [[(0, 3, "A")], [(1, 3, "A")]])
def test_all_right_or_none_right_still_has_an_interval(predicted):
    row = score([make_doc([(0, 3, "A")], predicted)] * 61)["all_gold"]
    assert row["f_high"] - row["f_low"] > 0.02
    assert row["f_low"] <= row["f"] <= row["f_high"]
    assert (row["f_low"], row["f_high"]) == (row["labels"]["A"]["f_low"], row["labels"]["A"]["f_high"])
    assert "f_low" not in row["macro"]


@pytest.mark.parametrize("number", [MIN_UNITS - 1, MIN_UNITS])
def test_too_few_docs_with_a_label_have_no_interval(number):
    docs = [make_doc([(0, 3, "A")], [(0, 3, "A")]) for _ in range(number)]
    row = score([*docs, make_doc([(0, 3, "B")], [])])["all_gold"]
    assert len({"f_low", "f_high"} & row["labels"]["A"].keys()) == (2 if number == MIN_UNITS else 0)
    assert "f_low" not in row["labels"]["B"]
    assert row["f_low"] < row["f"] < row["f_high"]


@pytest.mark.parametrize("number", [MIN_UNITS - 1, MIN_UNITS, 40])
def test_a_goals_figure_has_an_interval_by_docs_or_wilsons_where_all_are_right(number, tmp_path):
    right, wrong, found = (0, 3, "A"), (4, 7, "A"), (8, 11, "B")
    docs = [make_doc([right if n % 4 else wrong, found], [right, found]) for n in range(number)]
    points = {"A": {"figure": "precision", "goal": 0.1 + 0.6, "bound": 0.65}}
    points["B"] = {"figure": "recall", "goal": 0.9, "bound": 0.95}
    results = score_goals(write(tmp_path, keyed(docs)), points)
    a, b = results["A"], results["B"]
    share = sum(n % 4 > 0 for n in range(number)) / number
    assert (a.figure, a.goal, a.bound, a.value) == ("precision", 0.7, 0.65, pytest.approx(share))
    assert (b.figure, b.goal, b.bound, b.value) == ("recall", 0.9, 0.95, 1)
    assert (a.low is None) == (b.low is None) == (number < MIN_UNITS)
    if number == 40:
        error = (share * (1 - share) / 39) ** 0.5  # of a mean
        assert a.low < share < a.high
        assert a.high - a.low == pytest.approx(2 * 1.96 * error, rel=0.05)
        assert (b.low, b.high) == pytest.approx((40 / (40 + 1.96**2), 1), abs=1e-4)  # Wilson's
