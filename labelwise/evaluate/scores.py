"""The scores of a pipeline: the schema of their file."""

import msgspec

from labelwise.base.counts import AllScores, Score, Scores
from labelwise.base.text import counted
from labelwise.evaluate.resampling import MIN_UNITS

MIN_DEV_TEXTS = 10  # in dev: fewer have too few errors to learn from
SEEN_REMEDY = "Evaluate it on test of the corpus that it was trained on, or train it again"


class Seen(msgspec.Struct):
    """The number of scored texts that were in train or dev of the pipeline, and F1 of all gold without them."""

    texts: int
    f_without: Score


class GroupScores(Scores, omit_defaults=True):
    """Scores of all spans of a group of texts, and the number of texts."""

    texts: int = 0


Groups = dict[str, dict[str, GroupScores]]  # by key and value


class Mistakes(msgspec.Struct, forbid_unknown_fields=True):
    """The pairs of gold and predicted spans that a label is in, each counted once, by kind; see `pairs`.

    right (int): gold that was predicted with this label, also if it overlaps an entity, which entities can't.
    missed, spurious (int): gold and predictions with this label, without a partner.
    boundaries (int): pairs that overlap, both with this label.
    label (int): gold with this label that was predicted with another one.
    taken (int): predictions with this label where gold has another one, which counts them as `label`.
    unscored (int): predictions in texts that nobody has annotated for it; no mistakes.
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
        """The number of gold spans."""
        return self.right + self.missed + self.boundaries + self.label

    @property
    def kinds(self) -> dict[str, int]:
        """The mistakes of each kind; predictions of a label without gold are a kind of their own."""
        found = {"missed": self.missed, "boundaries": self.boundaries, "label": self.label + self.taken}
        return found | {
            "spurious": self.spurious if self.gold else 0,
            "no_test_gold": 0 if self.gold else self.spurious,
        }

    @property
    def mostly_unscored(self) -> bool:
        """Whether most of its predictions can't be scored, so that its scores say little."""
        return self.unscored > self.right + self.boundaries + self.taken + self.spurious


class Aimed(msgspec.Struct):
    """What a label's entities reach, where the config sets a goal; see docs/training.md.

    figure (str): precision or recall.
    goal (float): its least value.
    bound (float): its lower bound on dev when the point was fitted; below the goal, dev doesn't reach it.
    value, low, high (float | None): on the split, with the ends of the 95% interval.
    """

    figure: str
    goal: float
    bound: float
    value: Score = None
    low: Score = None
    high: Score = None

    def __str__(self) -> str:
        value, low, high = ("–" if one is None else f"{one:.3f}" for one in (self.value, self.low, self.high))
        return value if self.low is None else f"{value} ({low} to {high})"


class SplitMetrics(msgspec.Struct):
    """The scores of a pipeline on a split.

    texts (int): the number of scored texts.
    unit (str): what an interval leaves out in turn: "text"; or, if several texts belong together, "document" or the key
        of `split_by`.
    all_gold (AllScores): of entities, against every accepted span, even one that no tokens represent. Predictions of a
        label without gold count, too.
    all_spans (AllScores | None): all spans of a per-label recognizer, which may overlap, against all gold; None if no
        gold overlaps.
    calibration_error (float | None): of their probabilities; see `spacy_per_label.calibrate`.
    unscored (int): predictions that can't be scored.
    mistakes (dict): of each label.
    seen (Seen | None): texts that the pipeline was trained on; None if it has no digests of its texts, and on dev.
    texts_digest (str): equal for equal texts.
    split_digest (str): of the labels of the corpus, and of the texts and the gold of the split.
    aimed (dict): of each label with a goal; the file leaves it out if there is none.
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
        """What is reached, by label; empty without goals."""
        return self.aimed or {}

    def judging(self, label: str) -> AllScores:
        """Return the scores that judge a label: those of all spans, if its gold was found in other entities."""
        if self.all_spans and (self.all_spans.labels[label].r or 0) > (self.all_gold.labels[label].r or 0):
            return self.all_spans
        return self.all_gold

    def shown(self, label: str, scores: AllScores) -> Scores:
        """Return the scores of a label; none where most of its predictions can't be scored, and no F1 without gold."""
        own = scores.labels[label]
        unscored = label in self.mistakes and self.mistakes[label].mostly_unscored
        return Scores(None, None, None, own.support) if unscored else own.shown()

    def few_units(self, scores: Scores) -> str:
        """Count the units where they are too few for an interval, as in "3 documents"; else return an empty string."""
        few = scores.f is not None and scores.units is not None and scores.units < MIN_UNITS
        return counted(scores.units or 0, self.unit) if few else ""


class Metrics(SplitMetrics, forbid_unknown_fields=True):
    """The scores of a pipeline, as the evaluation writes them: those on test, or on another split.

    excluded_labels (list): labels that the pipeline leaves out, and that aren't scored, as no text in train is complete
        for them.
    groups (dict): scores of the texts of each dataset, if the merge has `by: [dataset]`; other keys may have secrets.
    predictions_digest (str): equal for equal tables of pairs.
    pipeline_digest, weights_digest (str): of the pipeline's files, and of its models alone.
    labelwise (str): the version that evaluated it.
    split (str): name of the split; "" in files of 0.3.0, whose tables have a single split.
    dev (SplitMetrics | None): scores on dev, where dev was evaluated beside the split.
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
        """Whether errors to learn from are those on dev: it was evaluated, and has MIN_DEV_TEXTS texts."""
        return bool(self.dev and self.dev.texts >= MIN_DEV_TEXTS)

    @property
    def to_learn(self) -> tuple[str, SplitMetrics]:
        """The name and the scores of the split whose errors one may read to learn from."""
        return ("dev", self.dev) if self.dev and self.shows_dev else (self.split or "test", self)


def describe_seen(metrics: Metrics) -> str:
    """Describe whether a pipeline was trained on scored texts, without a full stop; empty if it wasn't."""
    seen, texts = metrics.seen, counted(metrics.texts, "text")
    if seen and seen.texts:
        f, without = ("not scored" if f is None else f"{f:.3f}" for f in (metrics.all_gold.f, seen.f_without))
        some = f"{seen.texts:,} of {texts}"
        return f"{some} were in the pipeline's train or dev set: F1 is {f}, without them {without}"
    if seen:
        return ""
    return f"Unknown whether some of the {texts} were in the training data: the pipeline has no record of it"
