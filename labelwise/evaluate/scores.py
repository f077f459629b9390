"""The scores of a pipeline: their schema, shared by all that writes or reads them, and how counts become scores."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np

from labelwise.common.spans import SpanKey
from labelwise.corpus.merge_counts import Agreement
from labelwise.evaluate.uncovered import Rate

Score = float | None  # None where there is nothing to score


class Scores(msgspec.Struct, omit_defaults=True):
    """Precision, recall and F, 0 to 1.

    support (int | None): the number of gold spans; None for an average over labels.
    f_low, f_high (float | None): the ends of the 95% interval of F, if there is one.
    """

    p: Score
    r: Score
    f: Score
    support: int | None = None
    f_low: Score = None
    f_high: Score = None

    def shown(self) -> "Scores":
        """Give what is worth showing: without gold, recall and F are 0 by spaCy's formula only, and nobody's fault."""
        return Scores(self.p, None, None, self.support) if self.support == 0 else self


class AllScores(Scores, omit_defaults=True, kw_only=True):
    """Scores over all spans (micro average), their mean over the labels that have gold (macro), and each label's."""

    macro: Scores
    labels: dict[str, Scores]


class Seen(msgspec.Struct):
    """Scored texts that were in train or dev of the pipeline, or of one that it began with.

    texts (int): how many.
    f_without (float | None): F of all gold without them.
    whole (bool): there are no more; false if it began with a pipeline that has no digests of its texts.
    """

    texts: int
    f_without: Score
    whole: bool


class Errors(msgspec.Struct):
    """What became of a label's gold and predicted spans, as far as they can be judged, and how many can't be.

    right (int): the same span was predicted with this label.
    missed, spurious (int): gold and predicted spans with this label, without a partner that has wrong boundaries.
    boundaries (int): pairs of a gold and a predicted span that overlap, both with this label.
    unjudged (int): predicted in texts that nobody has annotated for it.
    """

    right: int = 0
    missed: int = 0
    spurious: int = 0
    boundaries: int = 0
    unjudged: int = 0


class Metrics(msgspec.Struct):
    """The scores of a pipeline, as the evaluation writes them.

    texts (int): those scored.
    unscored (int): predictions that can't be judged.
    all_gold, flat_gold (AllScores): see `scoring`.
    all_spans (AllScores | None): all spans that a per-label recognizer found, which may overlap, against all gold; None
        where no gold overlaps.
    calibration_error (float | None): how far their probabilities are off; see `recognizer.reliability`.
    errors (dict): of each label.
    agreement (dict): of the annotators, for each label that they marked twice.
    seen (Seen | None): those that the pipeline was trained on; None if it has no digests of its texts.
    texts_digest, predictions_digest (str): the same for the same texts, and for the same predictions.
    pipeline_digest (str): of the files of the pipeline that was evaluated.
    labelwise (str): the version that evaluated it.
    """

    texts: int
    all_gold: AllScores
    flat_gold: AllScores
    all_spans: AllScores | None = None
    calibration_error: Score = None
    unscored: int = 0
    errors: dict[str, Errors] = {}
    agreement: dict[str, Agreement] = {}
    seen: Seen | None = None
    texts_digest: str = ""
    predictions_digest: str = ""
    pipeline_digest: str = ""
    labelwise: str = ""


class FrequentMistake(msgspec.Struct):
    """A mistake by surface forms, and how often it was made; a form is empty where there is no span."""

    gold: str
    gold_label: str
    predicted: str
    predicted_label: str
    count: int


Marking = Literal["alike", "variously", "never"]  # how train marks a form; see `familiarity`
MARKINGS: tuple[Marking, ...] = Marking.__args__  # type: ignore[attr-defined]


class MissedForm(msgspec.Struct):
    """A form that wasn't found with its label.

    count (int): times in test.
    train (dict): how often train marks it, by label, and leaves it unmarked ("").
    """

    form: str
    label: str
    count: int
    train: dict[str, int] = {}


class Found(msgspec.Struct):
    """Gold spans: how many there are, how many were found, and how many were missed, not even in part.

    What is neither has wrong boundaries.
    """

    gold: int = 0
    found: int = 0
    missed: int = 0


class Familiarity(msgspec.Struct):
    """What was found of the forms that train marks alike, variously, and never; see `familiarity`.

    labels (dict): for each label, by marking.
    forms (dict): by marking, the forms that were missed most often.
    contradicted (dict): by label, missed spans whose form train leaves unmarked.
    """

    labels: dict[str, dict[str, Found]] = {}
    forms: dict[str, list[MissedForm]] = {}
    contradicted: dict[str, int] = {}


class Bin(msgspec.Struct):
    """Spans with about the same probability: how many, the mean of their probabilities, and the share of right ones."""

    spans: int
    probability: float
    right: float


class Details(msgspec.Struct):
    """What is behind the scores: the confusion of labels, and frequent mistakes by kind.

    reliability (list[Bin]): whether probabilities can be trusted; see `recognizer.reliability`.
    uncovered (list[Rate]): what is predicted where nobody looked; see `uncovered`.
    familiarity (Familiarity): what was found, by how train marks the same words.
    wrong_boundaries (dict): by label, the most frequent ones.
    """

    confusion: dict[str, dict[str, int]]
    frequent: dict[str, list[FrequentMistake]]
    reliability: list[Bin] = []
    uncovered: list[Rate] = []
    familiarity: Familiarity = msgspec.field(default_factory=Familiarity)
    wrong_boundaries: dict[str, list[FrequentMistake]] = {}


def count(predicted: Collection[SpanKey], gold: Collection[SpanKey], labels: Sequence[str]) -> np.ndarray:
    """Count the spans of a doc: right, predicted and gold ones for each label, of the shape (labels, 3).

    predicted, gold (Collection): spans of these labels alone, each once.
    """
    counts = np.zeros((len(labels), 3), int)
    place = {label: number for number, label in enumerate(labels)}
    for column, spans in enumerate((set(predicted) & set(gold), predicted, gold)):
        for _, _, label in spans:
            counts[place[label], column] += 1
    return counts


def score_table(counts: np.ndarray, labels: Sequence[str]) -> AllScores:
    """Compute the scores of all spans (micro average), the mean of the labels (macro average), and each label's.

    counts (np.ndarray): right, predicted and gold, for each label.
    """
    by_label = {label: prf(*row) for label, row in zip(labels, counts.tolist(), strict=True)}
    micro = prf(*counts.sum(0).tolist())
    return AllScores(micro.p, micro.r, micro.f, micro.support, macro=macro(by_label.values()), labels=by_label)


def prf(right: int, predicted: int, gold: int) -> Scores:
    """Compute precision, recall and their harmonic mean with the very formula of spaCy's PRFScore (spacy/scorer.py).

    RETURNS (Scores): without any span, None for all but `support`.
    """
    if not predicted and not gold:
        return Scores(None, None, None, 0)
    p, r = right / (predicted + 1e-100), right / (gold + 1e-100)
    return Scores(p, r, 2 * (p * r / (p + r + 1e-100)), gold)


def macro(scores: Iterable[Scores]) -> Scores:
    """Average scores over the labels that have gold; None if none has."""
    defined = [score for score in scores if score.support]
    if not defined:
        return Scores(None, None, None)
    means = (sum(getattr(score, name) for score in defined) / len(defined) for name in "prf")
    return Scores(*means)
