"""How often labels are predicted where nobody looked for them, beside how often they occur where somebody did.

A pipeline that is trained on texts of several kinds, each annotated for labels of its own, was never told that a kind
doesn't have the others' labels. What it predicts there can't be judged, but counted.
"""

from collections import Counter
from collections.abc import Mapping
from math import sqrt

from labelwise.evaluate.scores import Rate
from labelwise.evaluate.tables import Tables

PER = 1000  # words
FACTOR = 2.0
DEVIATIONS = 3.0


def find_implausible(tables: Tables) -> list[Rate]:
    """List the labels of data sets that aren't annotated for them, and where they are found implausibly often."""
    known: dict[str, Counter[str]] = {}
    unknown: dict[tuple[str, str], Counter[str]] = {}
    words = 0
    for texts, pairs in tables.groups(
        ("key", "words", "datasets", "partial", "unknown"), ("key", "kind", "gold_label", "predicted_label")
    ):
        spans: Counter[tuple[str, str, str]] = Counter()
        for row in pairs.to_pylist():
            for side in ("gold", "predicted"):
                if (label := row[f"{side}_label"]) and row["kind"] != "nested":
                    spans[row["key"], label, side] += 1
                    known.setdefault(label, Counter())[side] += 1
        for text in texts.to_pylist():
            words += text["words"]
            for label in {*text["partial"], *text["unknown"]}:
                here = Counter(words=text["words"], predicted=spans[text["key"], label, "predicted"])
                known.setdefault(label, Counter()).subtract(here)
                known[label]["gold"] -= spans[text["key"], label, "gold"]
                for dataset in text["datasets"]:
                    unknown.setdefault((dataset, label), Counter()).update(here)
    for there in known.values():
        there["words"] += words
    return [
        Rate(
            dataset,
            label,
            PER * here["predicted"] / here["words"],
            PER * there["predicted"] / there["words"],
            PER * there["gold"] / there["words"],
        )
        for (dataset, label), here in sorted(unknown.items())
        if (there := known[label])["words"] and here["words"] and not is_plausible(here, there)
    ]


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
