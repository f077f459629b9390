"""The page's charts: F1 on dev by step and by texts, and precision by recall."""

from collections import Counter
from collections.abc import Sequence
from math import floor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.compare.train_curve import TrainCurve
from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables

TRADEOFF = 20  # points of precision by recall


class Chart(NamedTuple):
    """A line chart of F1.

    title (str): description, with the figures.
    points (list): percent of the width from the left, and of the height from the top.
    low, high, last (str): ends of the F1 axis, and of the other one.
    """

    title: str
    points: list[tuple[float, float]]
    low: str
    high: str
    last: str


def list_charts(curve: Curve | None, learning: TrainCurve | None) -> list[Chart]:
    """Chart F1 on dev by step, and, after `train-curve`, by number of texts."""
    charts = []
    if curve and curve.f:
        best = max(curve.f)
        title = f"F1 on dev by training step: {best:.3f} at best, at step {curve.steps[curve.f.index(best)]:,}"
        charts.append(draw_chart(title, curve.steps, curve.f, "steps"))
    if learning:
        shares = sorted((n, f) for share, n in learning.texts.items() if (f := learning.micro.f.get(share)) is not None)
        title = "F1 on dev by texts in train: " + ", ".join(f"{f:.3f} with {n:,}" for n, f in shares)
        charts += [draw_chart(title, [n for n, _ in shares], [f for _, f in shares], "texts")] if shares else []
    return charts


def draw_chart(title: str, along: Sequence[int], f: Sequence[float], unit: str) -> Chart:
    """Chart F1, on an axis between tenths, along an axis from 0."""
    high = min(1.0, floor(10 * max(f) + 1) / 10)
    low = min(floor(10 * min(f)) / 10, high - 0.1)
    points = [(100 * x / max(along), 100 * (high - y) / (high - low)) for x, y in zip(along, f, strict=True)]
    return Chart(title, points, f"{low:.1f}", f"{high:.1f}", f"{max(along):,} {unit}")


def list_tradeoffs(tables: Tables, metrics: Metrics) -> list[Chart]:
    """Chart precision by recall of labels with goals."""
    columns = ["kind", "gold_label", "predicted_label", "probability", "gold_probability"]
    pairs = tables.read_pairs(columns, pc.field("kind") != "unscored") if metrics.goals else pa.table({})
    spans_of: dict[str, list[tuple[float, bool]]] = {label: [] for label in metrics.goals}
    gold = Counter[str]()
    for row in pairs.to_pylist():
        right = row["kind"] == "right"
        gold[row["gold_label"]] += 1
        for label, p, good in (
            (row["predicted_label"], row["probability"], right),
            (row["gold_label"], None if right else row["gold_probability"], True),
        ):
            if label in spans_of and p is not None:
                spans_of[label].append((p, good))
    charts = []
    for label, spans in spans_of.items():
        ranked = np.cumsum([good for _, good in sorted(spans, reverse=True)])
        if gold[label] and len(ranked) and ranked[-1]:
            at = np.unique(np.linspace(1, len(ranked), TRADEOFF).astype(int)) - 1
            recall, precision = ranked[at] / gold[label], ranked[at] / (at + 1)
            points = list(zip((100 * recall).tolist(), (100 - 100 * precision).tolist(), strict=True))
            drawn = "precision by recall, from the most probable span to all found"
            aimed = f"the goal is {metrics.goals[label].figure} {metrics.goals[label].goal}"
            title = f"{label} on {tables.split or 'test'}: {drawn}; {aimed}"
            charts.append(Chart(title, points, "0", "1", "recall 1"))
    return charts
