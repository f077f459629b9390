"""The table of scores."""

from labelwise.base.console import msg, print_table
from labelwise.base.counts import Scores
from labelwise.base.text import figure
from labelwise.evaluate.scores import Groups, Metrics


def print_scores(metrics: Metrics, more: str) -> None:
    """Print the scores of all spans, their mean over labels, and each label's, lowest F1 first.

    more (str): file with all labels, if they are too many to print.
    """
    all_spans = [metrics.all_spans] if metrics.all_spans else []
    header = ["Label", "P", "R", "F1", head_interval(metrics), *("F1 all spans" for _ in all_spans), "Support"]
    labels = {label: metrics.shown(label, metrics.all_gold) for label in metrics.all_gold.labels}
    first = sorted((label for label in labels if labels[label].f is not None), key=lambda label: labels[label].f or 0.0)
    rows = [
        ["all (micro)", *_cells(metrics, metrics.all_gold, *all_spans)],
        ["mean (macro)", *_cells(metrics, metrics.all_gold.macro, *(one.macro for one in all_spans))],
        *([label, *_cells(metrics, labels[label], *(one.labels[label] for one in all_spans))] for label in first),
    ]
    print_table(header, rows, more)
    if metrics.goals:
        splits = [*([("dev", metrics.dev.goals)] if metrics.dev else []), (metrics.split or "test", metrics.goals)]
        cells = [
            [label, f"{one.figure} {one.goal}", *(str(goals[label]) for _, goals in splits)]
            for label, one in metrics.goals.items()
        ]
        print_table(["Label", "Goal", *(name for name, _ in splits)], cells, more)
    for why, with_gold in (("there is no gold", False), ("most predictions can't be scored", True)):
        rest = [label for label, scores in labels.items() if label not in first and bool(scores.support) == with_gold]
        if rest:
            msg.info(f"No F1, because {why}: {', '.join(rest)}")


def print_groups(metrics: Metrics, groups: Groups, more: str) -> None:
    """Print the scores of groups of texts, a table per key."""
    for by, scores_of in groups.items():
        rows = [[value, *_cells(metrics, one), f"{one.texts:,}"] for value, one in scores_of.items()]
        print_table([by, "P", "R", "F1", head_interval(metrics), "Support", "Texts"], rows, more)


def head_interval(metrics: Metrics) -> str:
    """Return the header of a column of intervals."""
    return "95%" if metrics.unit == "text" else f"95% by {metrics.unit}"


def _cells(metrics: Metrics, row: Scores, *all_spans: Scores) -> list[str]:
    row = row.shown()
    between = f"{row.f_low:.3f}-{row.f_high:.3f}" if row.f_low is not None and row.f_high is not None else ""
    between = between or metrics.few_units(row)
    scores = [figure(row.p), figure(row.r), figure(row.f), between, *(figure(one.shown().f) for one in all_spans)]
    return [*scores, "" if row.support is None else f"{row.support:,}"]
