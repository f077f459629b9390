"""The partial schemes of SemEval 2013: hand counts, and nervaluate on whole docs."""

import random

import pytest
from nervaluate import Evaluator

from labelwise.common.spans import overlapping_groups
from labelwise.evaluate.schemes import ALL, COUNTS, SCHEMES, SchemeCounts, from_zero
from labelwise.evaluate.scores import SchemeScores


def count(*docs) -> SchemeCounts:
    """Count docs of (predicted, gold)."""
    counts = SchemeCounts()
    for predicted, gold in docs:
        counts.add(predicted, gold)
    return counts


def numbers(counts: SchemeCounts, label: str = ALL) -> dict[str, tuple[int, ...]]:
    """The counts of each scheme: correct, incorrect, partial, missed, spurious."""
    return {scheme: tuple(getattr(row, name) for name in COUNTS) for scheme, row in counts.scores(label).items()}


GOLD = (10, 20, "A")


@pytest.mark.parametrize(
    ("predicted", "gold", "strict", "exact", "partial", "kind"),
    [
        # The six cases of SemEval 2013, task 9.1: correct, incorrect, partial, missed, spurious, by scheme.
        ([GOLD], [GOLD], (1, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0)),
        ([GOLD], [], (0, 0, 0, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1)),
        ([], [GOLD], (0, 0, 0, 1, 0), (0, 0, 0, 1, 0), (0, 0, 0, 1, 0), (0, 0, 0, 1, 0)),
        ([(10, 20, "B")], [GOLD], (0, 1, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0), (0, 1, 0, 0, 0)),
        ([(12, 22, "A")], [GOLD], (0, 1, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (1, 0, 0, 0, 0)),
        ([(5, 11, "B")], [GOLD], (0, 1, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 1, 0, 0, 0)),
        # Spans that touch share no character.
        ([(5, 10, "A")], [GOLD], (0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 1)),
        ([(20, 25, "A")], [GOLD], (0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 1)),
        # Spans of one character, from the first one of the text on.
        ([(0, 1, "A")], [(0, 1, "A")], (1, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0)),
        ([(0, 1, "A")], [(1, 2, "A")], (0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 1)),
        ([(0, 2, "A")], [(1, 2, "A")], (0, 1, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (1, 0, 0, 0, 0)),
    ],
)
def test_the_cases_of_semeval(predicted, gold, strict, exact, partial, kind):
    expected = {"strict": strict, "exact": exact, "partial": partial, "type": kind}
    assert numbers(count((predicted, gold))) == expected


CASES = (
    [(0, 5, "A"), (10, 15, "B"), (20, 25, "B"), (30, 37, "A"), (40, 45, "B"), (60, 65, "A")],
    [(0, 5, "A"), (10, 15, "B"), (20, 25, "A"), (30, 35, "A"), (42, 48, "A"), (50, 55, "B")],
)


def test_scores_are_those_of_the_task():
    """Two right, a wrong label, wrong boundaries, both wrong, one missed, one spurious: six spans on either side."""
    scores = count(CASES).scores()
    assert {name: [getattr(row, key) for key in COUNTS] for name, row in scores.items()} == {
        "strict": [2, 3, 0, 1, 1],
        "exact": [3, 2, 0, 1, 1],
        "partial": [3, 0, 2, 1, 1],
        "type": [3, 2, 0, 1, 1],
    }
    expected = {"strict": 2 / 6, "exact": 3 / 6, "partial": (3 + 0.5 * 2) / 6, "type": 3 / 6}
    for name, value in expected.items():
        assert [getattr(scores[name], key) for key in "prf"] == pytest.approx([value] * 3)


def test_a_label_sees_its_own_spans_alone():
    """What is a wrong label for all is missed for the one and spurious for the other."""
    counts = count(CASES)
    # A: gold 0-5, 20-25, 30-35, 42-48; predicted 0-5, 30-37, 60-65.
    assert numbers(counts, "A") == {
        "strict": (1, 1, 0, 2, 1),
        "exact": (1, 1, 0, 2, 1),
        "partial": (1, 0, 1, 2, 1),
        "type": (2, 0, 0, 2, 1),
    }
    # B: gold 10-15, 50-55; predicted 10-15, 20-25, 40-45.
    assert numbers(counts, "B") == dict.fromkeys(SCHEMES, (1, 0, 0, 1, 2))
    partial = counts.scores("A")["partial"]
    assert [partial.p, partial.r] == pytest.approx([1.5 / 3, 1.5 / 4])


def test_precision_and_recall_differ():
    scores = count(([(0, 5, "A"), (10, 15, "A"), (20, 25, "A"), (30, 35, "A")], [(0, 5, "A")])).scores()["strict"]
    assert (scores.p, scores.r, scores.f) == (0.25, 1.0, 0.4)


@pytest.mark.parametrize("label", [ALL, "A", "never seen"])
def test_nothing_to_score_is_none(label):
    for scheme in count(([], [])).scores(label).values():
        assert scheme == SchemeScores(None, None, None, 0, 0, 0, 0, 0)


def test_one_half_of_nothing_is_not_none():
    """Only missed: zero, not None."""
    assert [getattr(count(([], [GOLD])).scores()["type"], key) for key in "prf"] == [0, 0, 0]
    assert count(([], [GOLD])).scores("B")["type"].f is None


def random_flat(rng: random.Random, length: int, longest: int) -> list:
    """Spans that don't overlap, some of which touch."""
    spans, place = [], 0
    while (place := place + rng.choice([0, 0, 1, 3])) < length:
        end = min(length, place + rng.randint(1, longest))
        spans.append((place, end, rng.choice("ABC")))
        place = end
    return spans


def random_nested(rng: random.Random, length: int, longest: int) -> list:
    """Distinct spans that may overlap in any way."""
    starts = [rng.randrange(length) for _ in range(rng.randint(0, length // longest))]
    return sorted({(start, min(length, start + rng.randint(1, longest)), rng.choice("ABC")) for start in starts})


def by_nervaluate(docs: list) -> dict[str, dict[str, dict]]:
    """What nervaluate counts on whole docs, by label and scheme."""

    def sides(side: int) -> list:
        return [[{"start": s, "end": e - 1, "label": label} for s, e, label in doc[side]] for doc in docs]

    results = Evaluator(sides(1), sides(0), tags=["A", "B", "C"], loader="dict").evaluate()
    by_label = {ALL: results["overall"], **results["entities"]}
    return {
        label: {ours: found[theirs].__dict__ for ours, theirs in SCHEMES.items()} for label, found in by_label.items()
    }


# Nervaluate takes spans for overlapping that share a percent of the gold span: of 400 characters, three aren't enough.
@pytest.mark.parametrize(("length", "longest"), [(30, 3), (30, 12), (3000, 400)])
@pytest.mark.parametrize("seed", range(5))
def test_counts_are_nervaluates_on_whole_docs(seed, length, longest):
    rng = random.Random(f"{seed}/{length}/{longest}")
    docs = []
    for _ in range(60):
        gold = random_nested(rng, length, longest)
        # Some of the predictions are right, some nearly.
        predicted = random_flat(rng, length, longest)
        if gold and rng.random() < 0.7:
            start, end, label = rng.choice(gold)
            predicted = [span for span in predicted if span[1] <= start or span[0] >= end]
            predicted = sorted([*predicted, (start, end, rng.choice(["A", label, label]))])
        docs.append((predicted, gold))
    counts, expected = count(*docs), by_nervaluate(docs)
    for label, by_scheme in expected.items():
        for scheme, values in by_scheme.items():
            found = counts.scores(label)[scheme]
            assert {name: getattr(found, name) for name in COUNTS} == {name: values[name] for name in COUNTS}, (
                label,
                scheme,
            )
            assert [getattr(found, key) for key in "prf"] == [values["precision"], values["recall"], values["f1"]]
    for scheme in SCHEMES:
        assert sum(getattr(counts.scores()[scheme], name) > 0 for name in COUNTS) >= 4


def test_three_characters_of_four_hundred_do_not_overlap():
    """To nervaluate, at the least; see the module's docstring."""
    assert numbers(count(([(397, 405, "A")], [(0, 400, "A")])))["type"] == (0, 0, 0, 1, 1)
    assert numbers(count(([(396, 405, "A")], [(0, 400, "A")])))["type"] == (1, 0, 0, 0, 0)


def test_counts_add_up_in_any_order():
    rng = random.Random(0)
    docs = [(random_flat(rng, 40, 5), random_nested(rng, 40, 8)) for _ in range(30)]
    parts = [numbers(count(doc)) for doc in docs]
    whole = numbers(count(*docs))
    assert numbers(count(*reversed(docs))) == whole
    for scheme in SCHEMES:
        assert whole[scheme] == tuple(map(sum, zip(*(part[scheme] for part in parts), strict=True)))


def test_the_order_of_spans_does_not_matter():
    rng = random.Random(1)
    for _ in range(50):
        predicted, gold = random_flat(rng, 40, 5), random_nested(rng, 40, 8)
        shuffled = rng.sample(predicted, len(predicted)), rng.sample(gold, len(gold))
        assert (
            numbers(count((set(predicted), set(gold)))) == numbers(count(shuffled)) == numbers(count((predicted, gold)))
        )


@pytest.mark.parametrize(
    ("predicted", "gold", "groups"),
    [
        ([], [], []),
        ([(0, 2, "A")], [], [(((0, 2, "A"),), ())]),
        # Spans that touch are two groups, and their offsets begin with 0.
        ([(5, 7, "A")], [(7, 9, "B")], [(((0, 2, "A"),), ()), ((), ((0, 2, "B"),))]),
        # A chain of overlaps is one.
        ([(5, 8, "A"), (9, 11, "A")], [(7, 10, "B")], [(((0, 3, "A"), (4, 6, "A")), ((2, 5, "B"),))]),
        # A short span doesn't end the group that a longer one before it spans.
        ([(4, 5, "A")], [(0, 9, "B"), (1, 2, "A")], [(((4, 5, "A"),), ((0, 9, "B"), (1, 2, "A")))]),
    ],
)
def test_groups_are_parts_that_no_span_crosses(predicted, gold, groups):
    assert [from_zero(*group) for group in overlapping_groups(predicted, gold)] == groups
