"""What to think of a pipeline's scores before anything else, and what to do next."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from labelwise.common.wording import counted
from labelwise.corpus.doubts import NAMED, Doubt, doubts_about_merge, doubts_about_split, name_labels
from labelwise.corpus.merge_counts import MergeCounts, split_gold, tell_gold
from labelwise.evaluate.ranking import FEW, rank_labels
from labelwise.evaluate.results import Results
from labelwise.evaluate.scores import Details, Metrics
from labelwise.evaluate.seen import REMEDY, tell_seen
from labelwise.report.tasks import Task, first_tasks, list_labels

COSTLIEST = 3  # labels that are named


def doubts(merge: MergeCounts | None, metrics: Metrics) -> Iterator[Doubt]:
    """Yield the reasons not to trust the scores."""
    if said := tell_seen(metrics):
        yield Doubt(f"{said}.", f"{REMEDY}.")
    without_gold = [label for label, scores in metrics.all_gold.labels.items() if not scores.support]
    yield from doubts_about_split("test", metrics.texts, without_gold)
    if metrics.unscored:
        judged = sum(one.right + one.spurious + one.boundaries for one in metrics.errors.values())
        yield Doubt(
            f"{metrics.unscored:,} of {counted(metrics.unscored + judged, 'predicted span')} can't be judged, as texts "
            f"aren't complete for their labels{_largest(metrics)}.",
            "Annotate a hundred random test texts for the label in full (weasel run fix lists them in "
            "training/check/test), or declare labels that don't occur as absent in datasets.yml.",
        )
    if few := [row.label for row in rank_labels(metrics) if row.few and row.scores.support]:
        yield Doubt(
            f"{name_labels(few)} with fewer than {FEW} spans in test: their scores say little.",
            "Annotate more test texts.",
        )
    if merge is None:
        return
    yield from doubts_about_merge(merge)
    gold = [split_gold(counts) for counts in merge.labels.values()]
    # spaCy's ner, which has no scores of overlapping spans, learns entities alone.
    lost = sum(one["lost"] + (0 if metrics.all_spans else one["learnt as well"]) for one in gold)
    total = sum(sum(one.values()) for one in gold)
    if lost > total / 100:
        yield Doubt(
            f"{tell_gold(merge.labels)}.",
            "Not among the entities, below, says what would save them; corpus/lost_spans.jsonl has each.",
        )


def missed_forms(details: Details) -> list[dict[str, Any]]:
    """List the forms that were missed most often, by how train marks them, each with what train has."""
    listed = []
    for marking, forms in details.familiarity.forms.items():
        rows = []
        for form in forms:
            here = sorted(form.train.items(), key=lambda item: (-item[1], item[0]))
            train = ", ".join(f"{label or 'unmarked'} {n:,}" for label, n in here)
            rows.append({"form": form.form, "label": form.label, "count": form.count, "train": train or "nothing"})
        if rows:
            listed.append({"marking": marking, "forms": rows})
    return listed


def _largest(metrics: Metrics) -> str:
    """Name the labels of predictions that can't be judged, those with the most first."""
    counts = sorted(((-one.unjudged, label) for label, one in metrics.errors.items() if one.unjudged))
    names = [f"{label} {-count:,}" for count, label in counts[:NAMED]]
    return f" ({', '.join(names)}{', …' if len(counts) > NAMED else ''})" if names else ""


class Digest(NamedTuple):
    """What is said where a report was written.

    costliest (list[str]): the labels with the most points of F to gain, each with them.
    """

    f: str
    costliest: list[str]
    doubts: list[Doubt]
    tasks: list[Task]


def summarize(results: Results, pipeline: str = "cpu") -> Digest | None:
    """Put the report of a pipeline, "cpu" or "gpu", into a few lines; None if nothing was evaluated."""
    metrics = results.metrics
    if not metrics:
        return None
    all_gold, spans = metrics.all_gold, metrics.all_spans
    between = f" ({all_gold.f_low:.3f} to {all_gold.f_high:.3f})" if all_gold.f_low is not None else ""
    also = f", of all spans {spans.f:.3f}" if spans and spans.f is not None else ""
    rows = list_labels(metrics, results.details, results.merge, pipeline)
    return Digest(
        f"{all_gold.f:.3f}{between}{also}" if all_gold.support and all_gold.f is not None else "unknown",
        [f"{row.ranked.label} {row.ranked.points:.1f}" for row in rows[:COSTLIEST] if row.ranked.points],
        list(doubts(results.merge, metrics)),
        list(first_tasks(rows, metrics, results.details, results.curve, pipeline)),
    )
