"""What to think of a pipeline's scores before anything else, and what to do next."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from labelwise.common.wording import counted
from labelwise.corpus.doubts import NAMED, Doubt, doubts_about_merge, doubts_about_split
from labelwise.corpus.merge_counts import MergeCounts, split_gold, tell_gold
from labelwise.evaluate.scores import CAUSES, Details, Metrics, MissedForm
from labelwise.evaluate.seen import REMEDY, tell_seen

WEAKEST = 3
REMEDIES = {
    "unseen": "annotate more texts; weasel run learning-curve says of which label",
    "inconsistent": "fix annotations, unless the words are ambiguous; weasel run check lists them",
    "consistent": "train longer (cpu_steps, gpu_steps), or another pipeline (weasel run gpu)",
}


def doubts(merge: MergeCounts | None, metrics: Metrics, details: Details | None = None) -> Iterator[Doubt]:
    """Yield the reasons not to trust the scores."""
    if said := tell_seen(metrics):
        yield Doubt(f"{said}.", f"{REMEDY}.")
    without_gold = [label for label, scores in metrics.all_gold.labels.items() if not scores.support]
    yield from doubts_about_split("test", metrics.texts, without_gold)
    if metrics.unscored:
        yield Doubt(
            f"{counted(metrics.unscored, 'predicted span')} can't be judged: texts aren't complete for their labels"
            f"{_of(details)}.",
            "Annotate test texts for all labels, or declare labels that don't occur as absent in datasets.yml.",
        )
    if merge is None:
        return
    yield from doubts_about_merge(merge)
    gold = [split_gold(counts) for counts in merge.labels.values()]
    # spaCy's ner, which has no scores of overlapping spans, learns entities alone.
    lost = sum(one["lost"] + (0 if metrics.all_spans else one["learnt as well"]) for one in gold)
    total = sum(sum(one.values()) for one in gold)
    if lost > total / 100 or any(counts.get("no token boundary") for counts in merge.labels.values()):
        yield Doubt(
            f"{tell_gold(merge.labels)}.",
            "Not among the entities, below, says what would save them; corpus/lost_spans.jsonl has each.",
        )


def tabulate_causes(metrics: Metrics, details: Details) -> dict[str, Any] | None:
    """List what was missed by cause, and by label, those with the most errors first; None if nothing is known."""
    causes = details.causes
    totals = {cause: sum(counts[cause] for counts in causes.labels.values()) for cause in CAUSES}
    if not causes.labels:
        return None
    missed = sum(totals.values())
    tiles = [
        {
            "cause": cause,
            "count": totals[cause],
            "share": totals[cause] / missed,
            "remedy": REMEDIES[cause],
            "forms": [describe(form) for form in causes.forms.get(cause, ())],
        }
        for cause in CAUSES
    ]
    rows = [
        {
            "label": label,
            "f": metrics.all_gold.labels[label].shown().f if label in metrics.all_gold.labels else None,
            "counts": [counts[cause] for cause in CAUSES],
            "missed": sum(counts.values()),
            "next": REMEDIES[max(CAUSES, key=lambda cause: counts[cause])].partition(";")[0],
        }
        for label, counts in causes.labels.items()
    ]
    return {"tiles": tiles, "rows": sorted(rows, key=lambda row: (-row["missed"], row["label"])), "missed": missed}


def describe(form: MissedForm) -> dict[str, Any]:
    """Say how often a form was missed, and what train has of it."""
    here = sorted(form.train.items(), key=lambda item: (-item[1], item[0]))
    train = ", ".join(f"{label or 'unmarked'} {n:,}" for label, n in here)
    return {"form": form.form, "label": form.label, "count": form.count, "train": train or "nothing"}


def _of(details: Details | None) -> str:
    """Name the labels that test texts aren't complete for, if they are known."""
    names = sorted({rate.label for rate in details.uncovered}) if details else []
    return f" ({', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''})" if names else ""


class Digest(NamedTuple):
    """What is said where a report was written.

    weakest (list[str]): the labels that have gold with the lowest F, each with it.
    next (str): what to do first, and why; empty if nothing is known.
    """

    f: str
    weakest: list[str]
    doubts: list[Doubt]
    next: str


def summarize(merge: MergeCounts | None, metrics: Metrics, details: Details | None) -> Digest:
    """Put a report into a few lines."""
    all_gold = metrics.all_gold
    between = f" ({all_gold.f_low:.3f} to {all_gold.f_high:.3f})" if all_gold.f_low is not None else ""
    known = [(scores.f, label) for label, scores in all_gold.labels.items() if scores.support and scores.f is not None]
    found = details and tabulate_causes(metrics, details)
    advice = ""
    if found:
        tile = max(found["tiles"], key=lambda tile: tile["count"])
        advice = (
            f"{tile['remedy']} ({tile['count']:,} of {found['missed']:,} missed spans are {tile['cause']} in train)"
        )
    spans = metrics.all_spans
    also = f", of all spans {spans.f:.3f}" if spans and spans.f is not None else ""
    return Digest(
        f"{all_gold.f:.3f}{between}{also}" if all_gold.support and all_gold.f is not None else "unknown",
        [f"{label} {f:.3f}" for f, label in sorted(known)[:WEAKEST]],
        list(doubts(merge, metrics, details)),
        advice,
    )
