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
from labelwise.report.flows import draw_flow

MOST_DATASETS = 20  # columns of a table
COVERAGE = ("complete", "partial", "none")
ONE_WAY = 0.99  # the share that makes a flow not worth a look
CONFUSED = 40  # labels that the confusion has at most
SCORE_NAMES = {"ents_f": "F", "ents_p": "P", "ents_r": "R"}
RESOURCES = {
    "words_per_second": "Words per second",
    "memory_mb": "Memory, MB",
    "cpu_percent": "Processors, % of one core",
    "gpu_percent": "GPU, % busy",
    "gpu_memory_mb": "GPU memory, MB",
    "gpu_power_w": "GPU power, W",
}


def draw_ledger(merge: MergeCounts) -> list[dict[str, Any]]:
    """Draw where rows, spans and gold went, each with the title of its chart; what is empty is left out.

    "one_way" is the outcome of nearly all, if there is one.
    """
    gold = {label: split_gold(counts) for label, counts in merge.labels.items()}
    flows: list[tuple[str, dict[str, dict[str, int]], bool]] = [
        ("Rows read", {"rows read": _largest_first(merge.rows)}, False),
        ("Spans read", {"spans read": _largest_first(merge.spans)}, False),
        ("Accepted spans, by label", gold, True),
    ]
    panels = []
    for title, flow, named in flows:
        if any(n > 0 for counts in flow.values() for n in counts.values()):
            chart = draw_flow(flow, named=named)
            one_way = next((node for node in chart.targets if node.share >= ONE_WAY), None)
            panels.append({"title": title, "chart": chart, "flow": flow, "one_way": one_way})
    return panels


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
        schemes = details.schemes.get(label, {}) if details else {}
        agreement = metrics.agreement.get(label)
        rows.append(
            {
                "label": label,
                "scores": scores,
                **count_errors(metrics.errors.get(label, Errors())),
                "flat": flat.shown().f if flat else None,
                "spans": spans.shown().f if spans else None,
                "partial": schemes["partial"].f if "partial" in schemes and scores.support else None,
                "type": schemes["type"].f if "type" in schemes and scores.support else None,
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


def tabulate_lengths(details: Details) -> list[dict[str, Any]]:
    """List the scores by length, of spans and of texts; what has neither is left out."""
    panels = (("F by the length of spans", details.span_lengths), ("F by the length of texts", details.text_lengths))
    return [{"title": title, "rows": list(rows.items())} for title, rows in panels if rows]


def draw_resources(resources: Table) -> list[tuple[str, LineChart]]:
    """Draw what training took over time, each in a chart of its own."""
    seconds = resources["seconds"]
    found = {title: resources[name] for name, title in RESOURCES.items() if name in resources}
    return [(title, draw_lines(seconds, {title: ys})) for title, ys in found.items()] if seconds else []


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
