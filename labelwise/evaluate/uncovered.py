"""How often labels are predicted where nobody looked for them, beside how often they occur where somebody did.

A pipeline that is trained on texts of several kinds, each annotated for labels of its own, was never told that a kind
doesn't have the others' labels. What it predicts there can't be judged, but counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import sqrt

import msgspec

from labelwise.evaluate.predictions import PredictedDoc

PER = 1000  # words
FACTOR = 2.0
DEVIATIONS = 3.0


class Rate(msgspec.Struct):
    """A label on the texts of a data set that aren't complete for it.

    words (int): of those texts, divided at white space.
    predicted (int): spans of the label that were predicted there.
    per_1000 (float): those in a thousand words.
    known_per_1000, gold_per_1000 (float): predicted and gold spans in a thousand words of texts that are complete for
        the label, and that the pipeline was not trained on.
    plausible (bool): the label is predicted about as often as where it is known; see `is_plausible`.
    """

    dataset: str
    label: str
    words: int
    predicted: int
    per_1000: float
    known_per_1000: float
    gold_per_1000: float
    plausible: bool


class Rates:
    """Counts words and spans, text after text."""

    def __init__(self) -> None:
        """Start empty."""
        self._unknown: dict[tuple[str, str], Counter[str]] = {}
        self._known: dict[str, Counter[str]] = {}

    def add(self, doc: PredictedDoc, labels: Iterable[str]) -> None:
        """Count what is predicted in a text that the pipeline wasn't trained on.

        labels (Iterable[str]): all labels.
        """
        words = len(doc.text.split())
        found = Counter(label for _, _, label, *_ in doc.found or doc.predicted)
        gold = Counter(label for _, _, label in doc.gold)
        for label in labels:
            if label not in doc.uncovered:
                counts = self._known.setdefault(label, Counter())
                counts.update(words=words, predicted=found[label], gold=gold[label])
                continue
            for dataset in doc.datasets:
                self._unknown.setdefault((dataset, label), Counter()).update(words=words, predicted=found[label])

    def rates(self) -> list[Rate]:
        """List the rates, sorted by data set and label; labels that are known nowhere have none."""
        found = []
        for (dataset, label), here in sorted(self._unknown.items()):
            known = self._known.get(label, Counter())
            if here["words"] and known["words"]:
                found.append(
                    Rate(
                        dataset,
                        label,
                        here["words"],
                        here["predicted"],
                        PER * here["predicted"] / here["words"],
                        PER * known["predicted"] / known["words"],
                        PER * known["gold"] / known["words"],
                        is_plausible(here, known),
                    )
                )
        return found


def is_plausible(here: Mapping[str, int], known: Mapping[str, int]) -> bool:
    """Tell whether spans are predicted within a factor of two of how often they are where the label is known.

    Chance is allowed for: three standard deviations of a Poisson-distributed count, those of both counts together.

    here, known (Mapping[str, int]): "words", and spans "predicted" in them.
    """
    share = here["words"] / known["words"]
    low, high = (share * factor for factor in (1 / FACTOR, FACTOR))
    few = here["predicted"] - low * known["predicted"]
    many = here["predicted"] - high * known["predicted"]

    def deviations(factor: float) -> float:
        """Compute how far the difference to so many times the known rate can be chance."""
        return DEVIATIONS * sqrt(here["predicted"] + factor**2 * (known["predicted"] + 1) + 1)

    return few >= -deviations(low) and many <= deviations(high)


def implausible(rates: Iterable[Rate]) -> dict[str, list[Rate]]:
    """Group the rates that aren't plausible by data set."""
    found: dict[str, list[Rate]] = {}
    for rate in rates:
        if not rate.plausible:
            found.setdefault(rate.dataset, []).append(rate)
    return found
