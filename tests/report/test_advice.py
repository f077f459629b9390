"""The sentence, and the next step of each label: which causes lead to which advice."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.ledger import Ledger
from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import Metrics, Mistakes, Seen
from labelwise.evaluate.undertrained import expect_gain, train_longer
from labelwise.report.advice import Advice, Shares, advise, warnings
from tests.evaluate.test_ranking import make_metrics as scored

FLAT = Curve([100, 200, 300, 400], [0.6, 0.7, 0.69, 0.7])


def make_metrics(f_low: float = 0.5, **errors: Mistakes) -> Metrics:
    """Scores that follow from the errors, each with an interval that begins at `f_low`."""
    made = scored(errors, f_low=f_low)
    made.seen = Seen(0, made.all_gold.f)
    return made


def mistakes(right: int = 100, spurious: int = 0, unjudged: int = 0, taken: int = 0, **causes: int) -> Mistakes:
    """Of gold spans, by cause; one without token boundaries is missed."""
    boundaries, label = causes.get("boundaries", 0), causes.get("label", 0)
    missed = sum(causes.values()) - boundaries - label
    confused = {"B": label} if label else {}
    return Mistakes(right, missed, spurious, boundaries, unjudged, label, taken, {"found": right, **causes}, confused)


def advice_on(
    metrics: Metrics,
    found: Mapping[str, Counter[str]] = MappingProxyType({}),
    merge: Ledger | None = None,
    pipeline: str = "cpu",
    **sample: Any,
) -> Advice:
    return advise(metrics, FLAT, pipeline, 0.8, found, merge or Ledger(), **sample)


@pytest.mark.parametrize(
    ("one", "found", "step"),
    [
        (mistakes(right=60, new=40), {}, "label more texts"),
        (mistakes(right=60, known=40, new=9), {}, "label more texts"),
        (mistakes(right=60, tokens=40, new=9), {}, "split its tokens"),
        # As many are fixed as the check has findings, and of what contradicts train no text teaches the rest.
        (mistakes(right=60, unmarked=40, new=9), {"missing": 9, "spurious": 1}, "fix contradictions"),
        (mistakes(right=60, unmarked=40, new=30), {"missing": 29}, "label more texts"),
        (mistakes(right=60, otherwise=40, new=9), {"wrong label": 10}, "fix contradictions"),
        (mistakes(right=60, otherwise=40, new=30), {"wrong boundaries": 40}, "label more texts"),
        (mistakes(right=60, label=40, new=21), {"wrong label": 31}, "fix contradictions"),
        (mistakes(right=60, label=40, new=21), {"wrong label": 30}, "label more texts"),
        (mistakes(right=60, taken=40, new=21), {"wrong label": 31}, "fix contradictions"),
        (mistakes(right=60, taken=40, new=21), {"wrong label": 30}, "label more texts"),
        (mistakes(right=60, sometimes=40, new=21), {"missing": 31}, "fix contradictions"),
        (mistakes(right=60, sometimes=40, new=21), {"missing": 30}, "label more texts"),
        # More texts help where more than a third of the mistakes are missed for want of them.
        (mistakes(right=60, label=40, new=20), {"wrong label": 6}, "fix contradictions"),
        (mistakes(right=60, label=40, new=20), {"wrong label": 5}, "read its mistakes"),
        (mistakes(right=60, label=20, boundaries=20, known=21), {}, "label more texts"),
        (mistakes(right=60, label=20, boundaries=20, known=20), {}, "read its mistakes"),
        # Where the check finds a quarter of wrong boundaries, they are a question of policy.
        (mistakes(right=60, boundaries=40, new=39), {"wrong boundaries": 10}, "decide its boundaries"),
        (mistakes(right=60, boundaries=40, new=39), {"wrong boundaries": 9}, "label more texts"),
        (mistakes(right=60, boundaries=40), {"missing": 40}, "read its mistakes"),
        (mistakes(right=60, spurious=40, new=9), {"missing": 10}, "fix contradictions"),
        (mistakes(right=60, spurious=40, new=21), {"missing": 20}, "label more texts"),
        (mistakes(right=60, spurious=40), {}, "read its mistakes"),
        # One missed word or two may be the annotator's mistake.
        (mistakes(right=30, new=2, spurious=40), {}, "read its mistakes"),
        # F1 has reached the goal, and its interval hasn't.
        (mistakes(right=100, new=9), {}, "annotate more test texts"),
        (mistakes(right=5, new=5), {}, "annotate more test texts"),
        (mistakes(right=5, unjudged=90), {}, "annotate test texts"),
    ],
)
def test_the_next_step_of_a_label_removes_the_most_of_its_mistakes(one, found, step):
    advice = advice_on(make_metrics(A=one, B=mistakes()), {"A": Counter(found)})
    assert {row.label: done for row, done in advice.rows}["A"] == step


def test_what_has_reached_the_goal_is_ready():
    advice = advice_on(make_metrics(0.9, A=mistakes(new=3), B=mistakes()))
    assert [(row.verdict, step) for row, step in advice.rows] == [("ship", "ready")] * 2
    said = ("Ship", "2 of 2 labels reach the goal", "python -m scripts.package cpu")
    assert (advice.verdict, advice.why, advice.do) == said


@pytest.mark.parametrize(
    ("f_low", "said", "step"),
    [
        (0.779, "Not yet: 0 of 2 labels reach the goal; of 3 mistakes, 3 are missed spans", "annotate more test texts"),
        (0.781, "Not yet: 0 of 2 labels reach the goal, 2 are close to it; of 3 mistakes", "annotate more test texts"),
        (0.819, "Not yet: 0 of 2 labels reach the goal, 2 are close to it; of 3 mistakes", "annotate more test texts"),
        (0.821, "Ship: 2 of 2 labels reach the goal", "ready"),
    ],
)
def test_a_label_near_the_goal_is_close_and_not_counted(f_low, said, step):
    """Of 0.8: on another machine it may be above it, or below."""
    advice = advice_on(make_metrics(f_low, A=mistakes(new=3), B=mistakes()))
    assert f"{advice.verdict}: {advice.why}".startswith(said)
    assert [done for _, done in advice.rows] == [step, step]
    metrics = make_metrics(0.9, A=mistakes(new=3), B=mistakes())
    metrics.all_gold.labels["B"].f_low = f_low
    said = advice_on(metrics)
    assert (" 1 is close to it" in said.why) == (0.78 < f_low < 0.82)
    said = advice_on(make_metrics(f_low, A=mistakes()))
    assert said.why.endswith("; nothing is wrong") == (f_low < 0.82)


def test_where_nothing_is_known_of_some_labels_the_others_are_shipped():
    advice = advice_on(make_metrics(0.9, A=mistakes(new=3), B=mistakes(right=3)))
    assert [row.verdict for row, _ in advice.rows] == ["ship", "unknown"]
    assert (advice.verdict, advice.why, advice.do) == (
        "Ship some",
        "1 of 2 labels reaches the goal",
        "python -m scripts.package cpu",
    )


def test_findings_count_as_far_as_test_has_as_many_texts():
    """Of 200 texts of train and dev, and 50 of test."""
    merge = Ledger(texts=Counter(train=150, dev=50, test=50))
    for findings, step in ((124, "fix contradictions"), (116, "label more texts")):
        metrics = make_metrics(A=mistakes(right=60, unmarked=40, new=30), B=mistakes())
        advice = advice_on(metrics, {"A": Counter(missing=findings)}, merge)
        assert advice.rows[0][1] == step


@pytest.mark.parametrize(
    ("labels", "said", "do"),
    [
        (
            {"A": mistakes(right=60, new=40)},
            "Not yet: 0 of 1 label reaches the goal; of 40 mistakes, 40 are missed spans",
            "A: label more texts: weasel run predict",
        ),
        # The label of which the most is removed comes first, though another one has more mistakes.
        (
            {"A": mistakes(right=90, known=9), "B": mistakes(right=60, known=40), "C": mistakes(spurious=50, new=2)},
            "Not yet: 0 of 3 labels reach the goal; of 101 mistakes, 51 are missed spans",
            "B: label more texts: weasel run predict",
        ),
        (
            {"A": mistakes(right=30, label=7, boundaries=6), "B": mistakes(taken=7, spurious=3)},
            "Not yet: 0 of 2 labels reach the goal; of 16 mistakes, 7 are wrong labels (most often A found as B, 7)",
            "A: read its mistakes: click its name in the table",
        ),
        (
            {"A": mistakes(right=30, boundaries=8, new=7)},
            "Not yet: 0 of 1 label reaches the goal; of 15 mistakes, 8 are wrong boundaries",
            "A: label more texts: weasel run predict",
        ),
        (
            {"A": mistakes(right=60, spurious=1)},
            "Not yet: 0 of 1 label reaches the goal; of 1 mistake, 1 is a spurious span",
            "A: annotate more test texts: ",
        ),
        (
            {"A": mistakes(right=25, new=7, spurious=9), "B": Mistakes(spurious=10)},
            "Not yet: 0 of 2 labels reach the goal; of 26 mistakes, 10 are predictions of labels without test gold",
            "A: label more texts: weasel run predict",
        ),
        (
            {"A": mistakes(right=49, known=50)},
            "Not yet: training stopped too early: it misses 50 spans whose words train marks, and finds 49 in all",
            "set steps: 800 in project.yml: weasel run gpu",
        ),
        # Two labels of three with few test spans, or with predictions that nobody can judge.
        (
            {"A": mistakes(new=40), "B": mistakes(right=3, new=1), "C": mistakes(unjudged=300)},
            "Can't tell: test knows too little of 2 of 3 labels",
            "annotate 100 random test texts for labels C, B",
        ),
    ],
)
def test_the_sentence_says_what_to_do_first(labels, said, do):
    advice = advice_on(make_metrics(**labels), pipeline="gpu")
    assert f"{advice.verdict}: {advice.why}" == said
    assert advice.do.startswith(do)


@pytest.mark.parametrize(
    ("pipeline", "command"),
    [("cpu", "weasel run all"), ("small", "weasel run small"), ("mine", "dvc repro report@mine")],
)
def test_a_pipeline_is_trained_longer_by_its_own_command(pipeline, command):
    advice = advice_on(make_metrics(A=mistakes(right=49, known=50)), pipeline=pipeline)
    assert advice.do == f"set steps: 800 in project.yml: {command}"


@pytest.mark.parametrize(
    ("one", "sample", "shares", "do"),
    [
        (mistakes(right=60, new=5, spurious=40), 30, Shares(), "decide the 30 cases drawn at random on the card Fix"),
        (mistakes(right=60, new=5, unmarked=40), 9, Shares(), "decide the 9 cases drawn at random on the card Fix"),
        (mistakes(right=60, new=5, boundaries=40), 9, Shares(), "decide the 9 cases drawn at random on the card Fix"),
        (
            mistakes(right=60, new=5, spurious=40),
            0,
            Shares(),
            "A: fix contradictions: decide its cases on the card Fix",
        ),
        # Of 30 findings, as many are right as the sample says.
        (mistakes(right=60, new=21, spurious=40), 0, Shares(0.0, 0.8), "A: fix contradictions"),
        (mistakes(right=60, new=21, spurious=40), 0, Shares(1.0, 0.6), "A: label more texts"),
        (mistakes(right=60, new=21, boundaries=40), 0, Shares(0.4, 0.0), "A: decide its boundaries"),
        (mistakes(right=60, new=21, boundaries=40), 0, Shares(0.3, 1.0), "A: label more texts"),
        (mistakes(right=60, new=40, spurious=9), 30, Shares(), "A: label more texts"),
    ],
)
def test_where_gold_may_be_wrong_a_sample_is_decided_first_and_says_what_fixing_is_worth(one, sample, shares, do):
    found = {"A": Counter({"missing": 30, "wrong boundaries": 30})}
    advice = advice_on(make_metrics(A=one), found, sample=sample, shares=shares)
    assert advice.do.startswith(do)


def test_without_gold_f_is_unknown():
    advice = advice_on(make_metrics(A=Mistakes()))
    assert (advice.f, advice.verdict) == ("unknown", "Can't tell")


def test_texts_that_were_trained_on_say_nothing():
    metrics = make_metrics(0.9, A=mistakes())
    metrics.seen = Seen(7, 0.5)
    advice = advice_on(metrics)
    assert (advice.verdict, advice.why) == ("Can't tell", "7 of the test texts were trained on")
    metrics.seen = Seen(1, 0.5)
    assert advice_on(metrics).why == "1 of the test texts was trained on"


@pytest.mark.parametrize(
    ("scores", "gain", "longer"),
    [
        ([0.4, 0.6, 0.65, 0.7], 0.05, True),  # each doubling adds half of what the one before did: 0.2, 0.1
        ([0.4, 0.6, 0.63, 0.64], 0.008, False),  # 0.04 after 0.2
        ([0.4, 0.6, 0.6, 0.6], 0.0, False),
        ([0.4, 0.6, 0.65, 0.64], 0.0, False),  # it has fallen
        ([0.4, 0.42, 0.5, 0.55], 0.13, True),  # it rises ever faster: as much again, not more
        ([0.0, 0.1, 0.7, 0.85], 0.15, True),  # as much again would be more than 1
        ([0.6], 0.0, False),
        ([0.6, 0.7], 0.1 * 0.1 / 0.3, True),  # untrained, it has 0: 0.3 after 50 steps, 0.6 after 100
    ],
)
def test_what_twice_the_steps_add_follows_from_the_last_two_doublings(scores, gain, longer):
    curve = Curve([100 * (n + 1) for n in range(len(scores))], scores)
    assert expect_gain(curve) == pytest.approx(gain)
    assert bool(train_longer(make_metrics(A=mistakes(right=9)), curve)) == longer


@pytest.mark.parametrize(
    ("curve", "found", "known", "longer"),
    [
        (FLAT, 9, 10, True),
        (FLAT, 10, 10, False),
        (FLAT, 0, 9, False),
        (Curve([], []), 0, 10, False),
        (None, 0, 10, False),
    ],
)
def test_a_pipeline_is_undertrained_if_it_misses_more_known_words_than_it_finds_words(curve, found, known, longer):
    metrics = make_metrics(A=mistakes(right=found, known=known, sometimes=99))  # these say nothing of the training
    assert bool(train_longer(metrics, curve)) == longer


def test_warnings_are_about_test_and_the_merge():
    metrics = make_metrics(A=mistakes(right=3, unjudged=9), B=Mistakes())
    metrics.unscored = 9
    checks = [ImportCheck(kind="problems", n=2), ImportCheck(kind="small test", n=3)]
    said = [warning.what for warning in warnings(metrics, checks)]
    assert said[0] == "No gold of label B in test: scores say nothing about it."
    assert said[1] == "9 predictions can't be judged, as texts aren't complete for their labels: A 9."
    assert said[2:] == ["2 rows or spans can't be used."], "the size of test is said of the evaluated texts"
    assert list(warnings(make_metrics(A=mistakes()))) == []
