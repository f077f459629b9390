"""The schema of a pipeline's scores."""

import msgspec

from labelwise.base.counts import AllScores, Score, Scores
from labelwise.base.text import counted, figure
from labelwise.evaluate.resampling import MIN_UNITS

MIN_DEV_TEXTS = 10  # in dev: fewer have too few errors to learn from
SEEN_REMEDY = "Evaluate it on test of the corpus that it was trained on, or train it again"


class Seen(msgspec.Struct):
    """Number of scored texts in the pipeline's train or dev, and F1 of all gold without them."""

    texts: int
    f_without: Score


class GroupScores(Scores, omit_defaults=True):
    """Scores of all spans of a group of texts, and its number of texts."""

    texts: int = 0


Groups = dict[str, dict[str, GroupScores]]  # by key and value


class Mistakes(msgspec.Struct, forbid_unknown_fields=True):
    """The pairs with a label, each counted once, by kind; see `pairs`.

    right (int): gold predicted with this label, also if it overlaps an entity.
    missed, spurious (int): unpaired gold and predictions.
    boundaries (int): overlapping pairs, both with this label.
    label (int): gold predicted with another label.
    taken (int): predictions paired with gold of another label, which counts them as `label`.
    unscored (int): predictions in texts that aren't annotated for it; no errors.
    causes (dict): gold by cause; see `tables.MISSED`.
    confused (dict): `label`, by the predicted label.
    """

    right: int = 0
    missed: int = 0
    spurious: int = 0
    boundaries: int = 0
    unscored: int = 0
    label: int = 0
    taken: int = 0
    causes: dict[str, int] = {}
    confused: dict[str, int] = {}

    @property
    def gold(self) -> int:
        """Return the number of gold spans."""
        return self.right + self.missed + self.boundaries + self.label

    @property
    def kinds(self) -> dict[str, int]:
        """Count errors by kind; predictions of a label without gold are a separate kind."""
        counts = {"missed": self.missed, "boundaries": self.boundaries, "label": self.label + self.taken}
        return counts | {
            "spurious": self.spurious if self.gold else 0,
            "no_test_gold": 0 if self.gold else self.spurious,
        }

    @property
    def mostly_unscored(self) -> bool:
        """Return whether most predictions can't be scored, so the scores are unreliable."""
        return self.unscored > self.right + self.boundaries + self.taken + self.spurious


class Aimed(msgspec.Struct):
    """Results of a label with a goal (docs/training.md).

    bound (float): its lower bound on dev at fitting; below the goal, dev doesn't reach it.
    value, low, high (float | None): on the split, with the 95% interval.
    """

    figure: str
    goal: float
    bound: float
    value: Score = None
    low: Score = None
    high: Score = None

    def __str__(self) -> str:
        value = figure(self.value, none="–")
        return value if self.low is None else f"{value} ({self.low:.3f} to {figure(self.high, none='–')})"


class SplitMetrics(msgspec.Struct):
    """The scores of a pipeline on a split.

    unit (str): what the jackknife leaves out: "text", "document", or the key of `split_by`.
    all_gold (AllScores): entities against all accepted spans, also misaligned ones. Predictions of a label without gold
        count, too.
    all_spans (AllScores | None): all spans of a per-label recognizer, which may overlap, against all gold; None without
        overlapping gold.
    calibration_error (float | None): of their probabilities; see `spacy_per_label.calibrate`.
    seen (Seen | None): training texts of the pipeline; None if unknown, and on dev.
    texts_digest (str): equal for equal texts.
    split_digest (str): of the corpus's labels, and the split's texts and gold.
    aimed (dict): by label with a goal; omitted from the file if empty.
    """

    texts: int
    all_gold: AllScores
    all_spans: AllScores | None = None
    calibration_error: Score = None
    unscored: int = 0
    mistakes: dict[str, Mistakes] = {}
    unit: str = "text"
    seen: Seen | None = None
    texts_digest: str = ""
    split_digest: str = ""
    aimed: dict[str, Aimed] | msgspec.UnsetType = msgspec.UNSET

    @property
    def goals(self) -> dict[str, Aimed]:
        """Return the results of goals, by label; empty without goals."""
        return self.aimed or {}

    def judging(self, label: str) -> AllScores:
        """Return the scores that decide about a label: of all spans, if gold inside other entities was predicted."""
        if self.all_spans and (self.all_spans.labels[label].r or 0) > (self.all_gold.labels[label].r or 0):
            return self.all_spans
        return self.all_gold

    def shown(self, label: str, scores: AllScores) -> Scores:
        """Return a label's scores to show: none if most predictions can't be scored, no F1 without gold."""
        scored = scores.labels[label]
        unscored = label in self.mistakes and self.mistakes[label].mostly_unscored
        return Scores(None, None, None, scored.support) if unscored else scored.shown()

    def few_units(self, scores: Scores) -> str:
        """Format the number of units if they are too few for an interval, as in "3 documents"; else ""."""
        few = scores.f is not None and scores.units is not None and scores.units < MIN_UNITS
        return counted(scores.units or 0, self.unit) if few else ""


class Metrics(SplitMetrics, forbid_unknown_fields=True):
    """The scores of a pipeline, as evaluation writes them: on test, or on another split.

    excluded_labels (list): labels that the pipeline leaves out, because no training text is complete for them; not
        scored.
    groups (dict): scores by dataset, if the merge has `by: [dataset]`; other keys may have secrets.
    predictions_digest (str): equal for equal tables of pairs.
    pipeline_digest, weights_digest (str): of the pipeline's files, and of its models alone.
    split (str): name of the split; "" in files of 0.3.0, whose tables have a single split.
    dev (SplitMetrics | None): scores on dev, if evaluated.
    """

    excluded_labels: list[str] = []
    groups: Groups = {}
    predictions_digest: str = ""
    pipeline_digest: str = ""
    weights_digest: str = ""
    labelwise: str = ""
    split: str = ""
    dev: SplitMetrics | None = None

    @property
    def shows_dev(self) -> bool:
        """Return whether dev shows the errors: it was evaluated, and has MIN_DEV_TEXTS texts."""
        return bool(self.dev and self.dev.texts >= MIN_DEV_TEXTS)

    @property
    def to_learn(self) -> tuple[str, SplitMetrics]:
        """Return name and scores of the split for error analysis."""
        return ("dev", self.dev) if self.dev and self.shows_dev else (self.split or "test", self)


def describe_seen(metrics: Metrics) -> str:
    """Describe whether a pipeline was trained on scored texts, without a full stop; "" if it wasn't."""
    seen, texts = metrics.seen, counted(metrics.texts, "text")
    if seen and seen.texts:
        f, without = ("not scored" if f is None else f"{f:.3f}" for f in (metrics.all_gold.f, seen.f_without))
        count = f"{seen.texts:,} of {texts}"
        return f"{count} were in the pipeline's train or dev set: F1 is {f}, without them {without}"
    if seen:
        return ""
    return f"Unknown whether some of the {texts} were in the training data: the pipeline has no record of it"
