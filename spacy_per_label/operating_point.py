"""Choose each label's minimum probability of an entity for a goal of precision or recall, on held-out texts.

For precision, less probable spans aren't entities; `doc.spans` keeps them. For recall, all spans with that probability
may be entities, also outside the most probable tags. A point reaches its goal if its lower bound does, one-sided
with CONFIDENCE, by units: texts, or documents of several texts. Of these points, the one with the highest other figure
is chosen. After `calibrate`:

    from spacy_per_label.operating_point import Goal, OperatingPoints

    fitting = OperatingPoints(ner, {"PERSON": Goal("recall", 0.98)}, longest={"PERSON": 12})
    ner.cfg["points"] = fitting.candidates
    for eg in examples:
        fitting.add(nlp(eg.reference.text), eg.reference)
    ner.cfg["points"] = fitting.fit()
"""

from collections.abc import Mapping
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from spacy.tokens import Doc

from spacy_per_label.decode import FoundSpans, choose_flat
from spacy_per_label.known import get_known, judge

if TYPE_CHECKING:
    from spacy_per_label.component import PerLabelRecognizer

Figure = Literal["precision", "recall"]
CONFIDENCE = 0.85  # one-sided: as large a test then reaches the goal in three of four cases
MIN_SPANS = 30  # labels with fewer known spans share a point with others of the same goal
# Points to choose from: the shares of right spans that they leave out.
SHARES = (0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, *np.arange(0.1, 1, 0.05).tolist())
FOLDS, AIMS, SLACK = 5, 26, 0.01
RIGHT, PREDICTED, GOLD = range(3)


class Goal(NamedTuple):
    """Minimum of a label's figure."""

    figure: Figure
    value: float


class OperatingPoints:
    """A calibrated recognizer's spans in some texts, and how many are right.

    goals (Mapping[str, Goal]): by label; excluded labels have none.
    candidates (dict): `cfg["points"]` for predicting the texts.
    """

    def __init__(self, ner: "PerLabelRecognizer", goals: Mapping[str, Goal], longest: Mapping[str, int]) -> None:
        """longest (Mapping[str, int]): by label, maximum tokens of a span for recall, as of train's longest."""
        self.names = [label for label in ner.labels if label not in ner.excluded_labels]
        self.goals = {label: goals[label] for label in self.names if label in goals}
        self.longest, self.spans_key = longest, ner.spans_key
        self.candidates = {label: self._point(label, goal, 0.0, 0.0) for label, goal in self.goals.items()}
        self.texts: list[tuple[FoundSpans, np.ndarray, bool]] = []  # spans, whether they are right, do some overlap?
        self.gold: list[np.ndarray] = []  # of each text, (labels,)
        self.units: dict[Any, list[int]] = {}  # numbers of texts

    def _point(self, label: str, goal: Goal, least: float, bound: float) -> dict[str, Any]:
        longest = {"longest": self.longest.get(label, 1)} if goal.figure == "recall" else {}
        return {"figure": goal.figure, "goal": goal.value, "least": least, "bound": bound, **longest}

    def add(self, predicted: Doc, reference: Doc, unit: Any = None) -> None:
        """Add a text's predictions and reference.

        unit (Any): equal for texts of one document; None if the text is one.
        """
        known, spans = get_known(reference), predicted.spans[self.spans_key]
        numbers = {label: number for number, label in enumerate(self.names)}
        rights = [-1 if right is None else int(right) for right in judge(known, spans)]  # -1: unknown
        rows = [
            (numbers[span.label_], span.start, span.end, p, right)
            for span, p, right in zip(spans, spans.attrs["scores"].tolist(), rights, strict=True)
            if span.label_ in numbers
        ]
        label, start, end, p, right = np.array(rows, float).reshape(-1, 5).T
        order = np.argsort(start, kind="stable")
        overlaps = bool((np.maximum.accumulate(end[order])[:-1] > start[order][1:]).any())
        self.units.setdefault(len(self.texts) if unit is None else (unit,), []).append(len(self.texts))
        self.texts.append((FoundSpans(label.astype(int), start.astype(int), end.astype(int), p), right, overlaps))
        answers = zip(known.gold, judge(known, known.gold), strict=True)
        gold = [span.label_ for span, right in answers if right is not None]
        gold += [name for *_, name in known.unaligned if known.coverage.get(name) != "none"]
        gold_numbers = [numbers[name] for name in gold if name in numbers]
        self.gold.append(np.bincount(gold_numbers, minlength=len(self.names)))

    def count(self, least: np.ndarray) -> np.ndarray:
        """Count right, predicted and gold entities of each unit, shape (units, labels, 3).

        least (np.ndarray): shape (labels,): minimum probability of an entity.
        """
        counts = np.zeros((len(self.texts), len(self.names), 3))
        for number, (spans, right, overlaps) in enumerate(self.texts):
            allowed = spans.probabilities >= least[spans.labels]
            chosen = np.array(choose_flat(spans, allowed), int) if overlaps else np.flatnonzero(allowed)
            answered = chosen[right[chosen] >= 0]
            np.add.at(counts[number], (spans.labels[answered], RIGHT), right[answered])
            np.add.at(counts[number], (spans.labels[answered], PREDICTED), 1)
        counts[..., GOLD] = self.gold
        return np.stack([counts[texts].sum(0) for texts in self.units.values()])

    def fit(self) -> dict[str, dict[str, Any]]:
        """Choose the point of each label with a goal, for `cfg["points"]`."""
        if not self.texts:
            return {}
        columns = ((spans.labels, spans.probabilities, right) for spans, right, _ in self.texts)
        labels, p, right = map(np.concatenate, zip(*columns, strict=True))
        groups = self._groups(np.bincount(labels[right >= 0], minlength=len(self.names)))
        least = np.zeros((len(SHARES) + 1, len(self.names)))  # from lenient to strict; the first leaves nothing out
        for group, _ in groups:
            ranked = np.sort(p[np.isin(labels, group) & (right == 1)])
            ranked = np.concatenate([[0.0], ranked, ranked[-1:] if len(ranked) else [0.0]])
            at = (np.array(SHARES) * (len(ranked) - 2)).astype(int)
            least[1:, group] = ((ranked[at] + ranked[at + 1]) / 2)[:, None]  # midway, as rounding moves probabilities
        tables, chosen = np.stack([self.count(row) for row in least]), np.zeros(len(self.names))
        bounds: dict[int, tuple[Goal, float]] = {}
        for group, goal in groups:
            figure = PREDICTED if goal.figure == "precision" else GOLD
            level, bound = choose_level(tables[:, :, group, RIGHT].sum(-1), tables[:, :, group, figure].sum(-1), goal)
            chosen[group] = least[level, group]
            bounds |= dict.fromkeys(group, (goal, bound))
        points = {}
        for number, (goal, bound) in sorted(bounds.items()):
            name, least_chosen = self.names[number], round(float(chosen[number]), 6)
            points[name] = self._point(name, goal, least_chosen, round(float(bound), 4))
        return points

    def _groups(self, predicted_counts: np.ndarray) -> list[tuple[list[int], Goal]]:
        """Group labels that share a point: labels of one goal with few reviewed spans."""
        groups: dict[Any, tuple[list[int], Goal]] = {}
        gold = np.sum(self.gold, 0)
        for number, name in enumerate(self.names):
            if goal := self.goals.get(name):
                spans = (gold if goal.figure == "recall" else predicted_counts)[number]
                groups.setdefault(goal if spans < MIN_SPANS else name, ([], goal))[0].append(number)
        return list(groups.values())


def choose_level(right: np.ndarray, scored: np.ndarray, goal: Goal) -> tuple[int, float]:
    """Choose the level with the highest other figure, and compute the lower bound of the goal's own.

    The best of many levels is biased where it was chosen, so levels are chosen without a fold of the units, and counted
    on it. A level is the first whose share reaches an aim; aims rise from the goal until the bound reaches it. If none
    does, the level is within SLACK of the best bound.

    right, scored (np.ndarray): shape (levels, units): right entities, and all predicted or gold; lenient levels first.
    """
    fold = np.arange(right.shape[1]) % FOLDS
    rest = np.eye(FOLDS)[fold] == 0  # (units, folds)
    fold_shares, all_shares = (
        np.divide(hits, totals, out=np.zeros_like(hits), where=totals > 0)
        for hits, totals in ((right @ rest, scored @ rest), (right.sum(1, keepdims=True), scored.sum(1, keepdims=True)))
    )

    def choose(shares: np.ndarray, aim: float) -> np.ndarray:
        reach = shares >= aim
        level = reach.argmax(0) if goal.figure == "precision" else len(reach) - 1 - reach[::-1].argmax(0)
        return np.where(reach.any(0), level, shares.argmax(0))

    for aim in np.linspace(goal.value, 1, AIMS):
        levels = choose(fold_shares, aim)[fold], np.arange(len(fold))
        if (bound := lower_bound(right[levels], scored[levels])) >= goal.value:
            return int(choose(all_shares, aim)[0]), bound
    bounds = np.array([[lower_bound(*level)] for level in zip(right, scored, strict=True)])
    level = int(choose(bounds, bounds.max() - SLACK)[0])
    return level, min(float(bounds[level, 0]), goal.value - SLACK)


def lower_bound(right: np.ndarray, scored: np.ndarray) -> float:
    """Compute the lower bound of a share; 0 without spans.

    Wilson's (1927), for the effective number of independent spans by the variance between units (Kish, Survey Sampling,
    1965).

    right, scored (np.ndarray): shape (units,).
    """
    units, total = int((scored > 0).sum()), scored.sum()
    if not units:
        return 0.0
    share = float(right.sum() / total)
    z = NormalDist().inv_cdf(CONFIDENCE)
    z += (z**3 + z) / 4 / max(units - 1, 1)  # Student's t
    variance = float(((right - share * scored) ** 2).sum()) / total**2 * units / max(units - 1, 1)
    n = min(share * (1 - share) / variance, total) if variance else units
    middle, half = share + z**2 / (2 * n), z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float((middle - half) / (1 + z**2 / n))
