"""The scores of a pipeline: the schema of their file, and how counts become scores."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from labelwise.base.text import counted

Score = float | None  # None where there is nothing to score
SEEN_REMEDY = "Evaluate it on test of the corpus that it was trained on, or train it again"


class Scores(msgspec.Struct, omit_defaults=True):
    """Precision, recall and F1, 0 to 1.

    support (int | None): the number of gold spans; None for an average over labels.
    f_low, f_high (float | None): the ends of the 95% interval of F1, if there is one.
    """

    p: Score
    r: Score
    f: Score
    support: int | None = None
    f_low: Score = None
    f_high: Score = None

    def shown(self) -> "Scores":
        """Hide recall and F1 where there is no gold: they are 0 by spaCy's formula only."""
        return Scores(self.p, None, None, self.support) if self.support == 0 else self


class AllScores(Scores, omit_defaults=True, kw_only=True):
    """Scores of all spans (micro average), their mean over the labels that have gold (macro), and each label's."""

    macro: Scores
    labels: dict[str, Scores]


class Seen(msgspec.Struct):
    """The number of scored texts that were in train or dev of the pipeline, and F1 of all gold without them."""

    texts: int
    f_without: Score


class Mistakes(msgspec.Struct):
    """The pairs of gold and predicted spans that a label is in, each counted once, by kind; see `pairs`.

    right (int): gold that was predicted with this label.
    missed, spurious (int): gold and predictions with this label, without a partner.
    boundaries (int): pairs that overlap, both with this label.
    label (int): gold with this label that was predicted with another one.
    taken (int): predictions with this label where gold has another one, which counts them as `label`.
    unjudged (int): predictions in texts that nobody has annotated for it; no mistakes.
    causes (dict): gold by cause; see `tables.MISSED`.
    confused (dict): `label`, by the predicted label.
    """

    right: int = 0
    missed: int = 0
    spurious: int = 0
    boundaries: int = 0
    unjudged: int = 0
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
        return found | {"spurious": self.spurious if self.gold else 0, "goldless": 0 if self.gold else self.spurious}

    @property
    def unknown(self) -> bool:
        """Whether most of its predictions can't be judged, so that its scores say little."""
        return self.unjudged > self.right + self.boundaries + self.taken + self.spurious


class Metrics(msgspec.Struct):
    """The scores of a pipeline, as the evaluation writes them.

    texts (int): the number of scored texts.
    all_gold (AllScores): of entities, against every accepted span, even one that no tokens represent. Predictions of a
        label without gold count, too.
    all_spans (AllScores | None): all spans of a per-label recognizer, which may overlap, against all gold; None if no
        gold overlaps.
    calibration_error (float | None): of their probabilities; see `spacy_per_label.calibrate`.
    unscored (int): predictions that can't be judged.
    untaught (list): labels that the pipeline leaves out, and that aren't scored: no text in train is complete for them.
    mistakes (dict): of each label.
    seen (Seen | None): texts that the pipeline was trained on; None if it has no digests of its texts.
    texts_digest, predictions_digest (str): equal for equal texts, and for equal tables of pairs.
    pipeline_digest, weights_digest (str): of the pipeline's files, and of its models alone.
    labelwise (str): the version that evaluated it.
    """

    texts: int
    all_gold: AllScores
    all_spans: AllScores | None = None
    calibration_error: Score = None
    unscored: int = 0
    untaught: list[str] = []
    mistakes: dict[str, Mistakes] = {}
    seen: Seen | None = None
    texts_digest: str = ""
    predictions_digest: str = ""
    pipeline_digest: str = ""
    weights_digest: str = ""
    labelwise: str = ""

    def shown(self, label: str, scores: AllScores) -> Scores:
        """Return the scores of a label; none where most of its predictions can't be judged, and no F1 without gold."""
        own = scores.labels[label]
        unknown = label in self.mistakes and self.mistakes[label].unknown
        return Scores(None, None, None, own.support) if unknown else own.shown()


def score_table(counts: np.ndarray, labels: Sequence[str]) -> AllScores:
    """Compute scores from the right, predicted and gold spans of each label."""
    by_label = {label: prf(*row) for label, row in zip(labels, counts.tolist(), strict=True)}
    micro = prf(*counts.sum(0).tolist())
    return AllScores(micro.p, micro.r, micro.f, micro.support, macro=macro(by_label.values()), labels=by_label)


def prf(right: int, predicted: int, gold: int) -> Scores:
    """Compute precision, recall and F1 with the formula of spaCy's PRFScore; without any span, they are None."""
    if not predicted and not gold:
        return Scores(None, None, None, 0)
    p, r = right / (predicted + 1e-100), right / (gold + 1e-100)
    return Scores(p, r, 2 * (p * r / (p + r + 1e-100)), gold)


def macro(scores: Iterable[Scores]) -> Scores:
    """Average scores over the labels that have gold; they are None if no label has."""
    defined = [score for score in scores if score.support]
    if not defined:
        return Scores(None, None, None)
    means = (sum(getattr(score, name) for score in defined) / len(defined) for name in "prf")
    return Scores(*means)


def describe_seen(metrics: Metrics) -> str:
    """Describe whether a pipeline was trained on scored texts, without a full stop; empty if it wasn't."""
    seen, texts = metrics.seen, counted(metrics.texts, "text")
    if seen and seen.texts:
        f, without = ("unknown" if f is None else f"{f:.3f}" for f in (metrics.all_gold.f, seen.f_without))
        some = f"{seen.texts:,} of the {texts}"
        return f"The pipeline was trained on {some} (in its train or dev): F1 is {f}, without them {without}"
    if seen:
        return ""
    return f"Unknown whether the pipeline was trained on some of the {texts}: it has no digests of its texts"
