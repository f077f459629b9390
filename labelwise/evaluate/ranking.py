"""Rank labels by their errors, and decide which are ready."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from labelwise.base.counts import Scores
from labelwise.base.sections import DEFAULT_TARGET_F1
from labelwise.evaluate.scores import Metrics, Mistakes

MAX_BORDERLINE = 0.02  # trainings on two machines differ by so much F1, because these round differently
MIN_TEST_SPANS = 20  # with fewer, a label's scores say little
Verdict = Literal["ready", "borderline", "not ready", "too few test spans", "not scored"]
UNDECIDED: tuple[Verdict, ...] = ("too few test spans", "not scored")


class RankedLabel(NamedTuple):
    """A label with scores, errors and verdict.

    scores (Scores): on test.
    mistakes (Mistakes): on dev, or on test; see `Metrics.to_learn`.
    unscored (int): predictions on test that can't be scored, if they are the majority; else 0.
    few (bool): test has too few of its gold spans for reliable scores.
    """

    label: str
    scores: Scores
    mistakes: Mistakes
    unscored: int
    few: bool
    verdict: Verdict

    @property
    def total(self) -> int:
        """Return its number of errors; a confusion counts for both labels."""
        return sum(self.mistakes.kinds.values())


def decide(metrics: Metrics, label: str, target_f1: float = DEFAULT_TARGET_F1) -> Verdict:
    """Decide whether a label is ready: the one rule of the report, the model card and the advice.

    RETURNS (Verdict): "ready" if the lower end of its F1 interval reaches the target; "borderline" if it is nearer than
        MAX_BORDERLINE, where another machine may decide otherwise; "not scored" if most of its predictions can't be
        scored, or the pipeline was trained on test texts. A label with a goal is decided by that figure; MAX_BORDERLINE
        is then at most a tenth of the errors that the goal allows.
    """
    scores, mistakes = metrics.judging(label).labels[label], metrics.mistakes.get(label, Mistakes())
    seen, low, close = bool(metrics.seen and metrics.seen.texts), scores.f_low, MAX_BORDERLINE
    if aimed := metrics.goals.get(label):
        low, target_f1, close = aimed.low, aimed.goal, min(MAX_BORDERLINE, (1 - aimed.goal) / 10)
    if seen or mistakes.mostly_unscored:
        return "not scored"
    if (scores.support or 0) < MIN_TEST_SPANS or low is None:
        return "too few test spans"
    if abs(low - target_f1) < close:
        return "borderline"
    return "ready" if low > target_f1 else "not ready"


def rank_labels(metrics: Metrics, target_f1: float = DEFAULT_TARGET_F1) -> list[RankedLabel]:
    """Rank the labels, most errors first; labels with few spans in test last."""
    _, learned = metrics.to_learn
    ranked = []
    for label, scores in metrics.all_gold.labels.items():
        mistakes, on_test = (split.mistakes.get(label, Mistakes()) for split in (learned, metrics))
        unscored, few = on_test.unscored if on_test.mostly_unscored else 0, (scores.support or 0) < MIN_TEST_SPANS
        shown = metrics.shown(label, metrics.judging(label))
        ranked.append(RankedLabel(label, shown, mistakes, unscored, few, decide(metrics, label, target_f1)))
    return sorted(ranked, key=lambda row: (row.few, -row.total, row.label))


def group_by_verdict(rows: Iterable[RankedLabel]) -> dict[Verdict, list[str]]:
    """List the labels of each verdict, in order; possibly none."""
    labels_of: dict[Verdict, list[str]] = {verdict: [] for verdict in get_args(Verdict)}
    for row in rows:
        labels_of[row.verdict].append(row.label)
    return labels_of
