"""Turn results into the tables and charts of a report's sections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import nan
from typing import Any

from labelwise.corpus.merge_counts import MergeCounts, split_gold
from labelwise.evaluate.mistakes import NOTHING
from labelwise.evaluate.results import Table
from labelwise.evaluate.scores import Bin, Details, Errors, Metrics
from labelwise.report.charts import LineChart, draw_lines

MOST_DATASETS = 20  # columns of a table
COVERAGE = ("complete", "partial", "none")
CONFUSED = 40  # labels that the confusion has at most
SCORE_NAMES = {"ents_f": "F", "ents_p": "P", "ents_r": "R"}


def tabulate_outcomes(merge: MergeCounts) -> list[tuple[str, list[tuple[str, int, float]]]]:
    """List where rows, spans and gold went: each outcome with its number and share; what is empty is left out."""
    gold: Counter[str] = Counter()
    for counts in merge.labels.values():
        gold.update(split_gold(counts))
    panels = (("Rows read", merge.rows), ("Spans read", merge.spans), ("Accepted spans", gold))
    return [
        (title, [(name, n, n / sum(counts.values())) for name, n in _largest_first(counts).items() if n])
        for title, counts in panels
        if any(counts.values())
    ]


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def most_used(merge: MergeCounts) -> list[str]:
    """List the data sets that cover the most, MOST_DATASETS at most."""
    covered = {name: sum(labels.values()) for name, labels in merge.complete.items()}
    for name, labels in merge.partial.items():
        covered[name] = covered.get(name, 0) + sum(labels.values())
    return sorted(covered, key=lambda name: (-covered[name], name))[:MOST_DATASETS]


def tabulate_coverage(merge: MergeCounts) -> list[dict[str, Any]]:
    """List, for each label, its texts by state, those that were annotated twice, and those of each data set.

    "datasets" has no data sets but those of `most_used`.
    """
    shown = most_used(merge)
    return [
        {
            "label": label,
            "texts": {state: counts.get(state, 0) for state in COVERAGE},
            "all": sum(counts.get(state, 0) for state in COVERAGE),
            "twice": merge.agreement[label].texts if label in merge.agreement else 0,
            "datasets": [
                [texts.get(name, {}).get(label, 0) for texts in (merge.complete, merge.partial)] for name in shown
            ],
        }
        for label, counts in merge.labels.items()
    ]


def tabulate_scores(
    metrics: Metrics, details: Details | None, merge: MergeCounts | None = None, base: Metrics | None = None
) -> list[dict[str, Any]]:
    """List the scores of each label, with those that count partly right spans, and the agreement of annotators.

    Those with the most errors, missed and spurious spans, come first.

    merge (MergeCounts | None): has the spans in train.
    base (Metrics | None): the scores to tell the difference to.
    """
    in_train = merge.gold.get("train", {}) if merge and merge.gold else None
    rows: list[dict[str, Any]] = []
    for label, scored in metrics.all_gold.labels.items():
        scores = scored.shown()
        flat = metrics.flat_gold.labels.get(label)
        spans = metrics.all_spans and metrics.all_spans.labels.get(label)
        agreement = metrics.agreement.get(label)
        rows.append(
            {
                "label": label,
                "scores": scores,
                **count_errors(metrics.errors.get(label, Errors())),
                "flat": flat.shown().f if flat else None,
                "spans": spans.shown().f if spans else None,
                "agreement": agreement.f if agreement else None,
                "twice": agreement.texts if agreement else 0,
                "train": None if in_train is None else in_train.get(label, 0),
                "change": difference(scores.f, base.all_gold.labels[label].shown().f)
                if base and label in base.all_gold.labels
                else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["fp"] - row["fn"], row["label"]))


def change_of(metrics: Metrics, base: Metrics) -> float | None:
    """Compute the difference of F over all labels; None if they aren't the same labels."""
    same = metrics.all_gold.labels.keys() == base.all_gold.labels.keys()
    return difference(metrics.all_gold.f, base.all_gold.f) if same else None


def difference(value: float | None, before: float | None) -> float | None:
    """Subtract scores, either of which may not be there."""
    return None if value is None or before is None else value - before


def count_errors(errors: Errors) -> dict[str, int]:
    """Count the spans that were right ("tp"), spurious ("fp") and missed ("fn"); wrong boundaries are both."""
    return {
        "tp": errors.right,
        "fp": errors.spurious + errors.boundaries,
        "fn": errors.missed + errors.boundaries,
    }


def draw_curves(curve: Table) -> list[tuple[str, LineChart]]:
    """Draw the scores by step in one chart, and each loss and everything else in one of its own.

    Losses are per word: what the curve has are sums since the evaluation before. That of the first step says nothing.
    """
    columns = dict(curve)
    steps = columns.pop("step")
    if columns.get("score") == columns.get("ents_f"):
        columns.pop("score", None)
    others = {name: columns.pop(name) for name in ("grad_scale", "skipped_steps") if name in columns}
    losses = {name: columns.pop(name) for name in list(columns) if name.startswith("loss_")}
    if words := columns.get("words"):
        trained = [nan, *(later - earlier for earlier, later in pairwise(words))]
        losses = {
            f"{name} per word": [y / n if n else nan for y, n in zip(ys, trained, strict=True)]
            for name, ys in losses.items()
        }
    scores = {SCORE_NAMES.get(name, name): ys for name, ys in columns.items() if name not in ("epoch", "words")}
    charts = [("Scores on dev", draw_lines(steps, scores, highest=1.0))] if scores else []
    for name, ys in (losses | others).items():
        title = name.replace("loss_", "Loss of ").replace("_", " ")
        charts.append((title[0].upper() + title[1:], draw_lines(steps, {name: ys})))
    return charts if steps else []


def draw_calibration(bins: Sequence[Bin]) -> LineChart | None:
    """Draw the share of right spans by their probability, beside what it should be; None without any."""
    probabilities = [one.probability for one in bins]
    lines = {"right": [one.right for one in bins], "as it should be": probabilities}
    return draw_lines(probabilities, lines, highest=1.0) if bins else None


def tabulate_confusion(confusion: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Make a square matrix of it: gold labels are the rows, predicted ones the columns, NOTHING the first of both.

    Of many labels, those with the most mistakes are in it; "hidden" is the number of the others.
    """
    mistakes: Counter[str] = Counter()
    for label, row in confusion.items():
        for other, n in row.items():
            mistakes.update(dict.fromkeys((label, other), n if label != other else 0))
    del mistakes[NOTHING]
    shown = sorted(mistakes, key=lambda label: (-mistakes[label], label))[:CONFUSED]
    labels = [NOTHING, *sorted(shown)]
    rows = [(label, [confusion.get(label, {}).get(other, 0) for other in labels]) for label in labels]
    return {"labels": labels, "rows": rows, "hidden": len(mistakes) - len(shown)}
