"""The sentence that a report begins with, and the next step of each label.

An undertrained pipeline is trained longer, before anything else; see `train_longer`. Where test knows too little of
most labels, nothing can be said until more test texts are annotated. Otherwise the causes that cost the most decide,
of all labels for the sentence, and of each for its next step:

- new: train never marks such words. Label more texts.
- contradicted: train leaves the words unmarked 99 times of a hundred. Fix annotations.
- boundaries: train marks both what gold has and what was found. Decide where spans begin and end.
- tokens: no tokens represent the span. Split them: the section on lost spans says how.
- known: train marks the words, and the pipeline misses them. Train longer.
- spurious: found, and not marked. Look at it only if the check found spans that may be missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from labelwise.common.code import command_line
from labelwise.common.wording import counted
from labelwise.corpus.doubts import Doubt, doubts_about_merge, doubts_about_split, name_labels
from labelwise.corpus.ledger import Ledger, split_gold, tell_gold
from labelwise.evaluate.ranking import FEW, SPURIOUS, RankedLabel, Verdict, rank_labels, texts_needed
from labelwise.evaluate.results import Results, Table
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.seen import REMEDY, tell_seen

KNOWN = 10  # gold spans that train marks alike, from which their share says something
TRAINED = 0.5  # of those, below which a pipeline is undertrained
RISING = 0.005  # what the last evaluation on dev must add to F1, from which another is worth it
LONGER = 2  # times the steps
MISSING = 3  # findings of spans that may be missing, from which predictions without gold are worth a look
RANDOM = 100  # test texts that are annotated anew
FIX = "weasel run fix"
EXPORT = f"{command_line('export')} training/cpu/raw.jsonl to-annotate --format"
# For each cause: what it is, what removes it, and the next step of a label.
NAMES = {
    "known": ("words that train marks", "train longer", "train longer"),
    "new": ("words that train never marks", "label more", "label more texts"),
    "boundaries": ("train has both boundaries", "a rule", "decide its boundaries"),
    "contradicted": ("contradicted by train", "fix", "fix contradictions"),
    "tokens": ("not among the tokens", "split tokens", "split its tokens"),
    SPURIOUS: ("spans that gold hasn't", "look", "look for missing spans"),
}


class Advice(NamedTuple):
    """What to think of a pipeline, and what to do next.

    verdict (str): "Ship", "Not yet" or "Can't tell".
    why (str): the rest of the sentence.
    do (str): what to do first, with its command.
    rows (list): labels, the one that costs the most first, each with its verdict and its next step.
    """

    verdict: str
    why: str
    do: str
    rows: list[tuple[RankedLabel, Verdict, str]]


def advise(
    metrics: Metrics, curve: Table | None, pipeline: str, ship_at: float, missing: Mapping[str, int] | None = None
) -> Advice:
    """Say whether a pipeline may be used, and what to do next.

    curve (Table | None): of the training on dev.
    pipeline (str): "cpu" or "gpu".
    missing (Mapping | None): by label, how many spans the check found that may be missing.
    """
    ranked = rank_labels(metrics)
    longer = train_longer(metrics, curve)
    steps = [next_step(row, row.verdict(ship_at), bool(longer), (missing or {}).get(row.label, 0)) for row in ranked]
    rows = [(row, row.verdict(ship_at), step) for row, step in zip(ranked, steps, strict=True)]
    return Advice(*_sentence(metrics, rows, longer, curve, pipeline), rows)


def _sentence(
    metrics: Metrics,
    rows: Sequence[tuple[RankedLabel, Verdict, str]],
    longer: str,
    curve: Table | None,
    pipeline: str,
) -> tuple[str, str, str]:
    """Choose the verdict, its reason, and what to do first."""
    labels = counted(len(rows), "label")
    ready = [row.label for row, verdict, _ in rows if verdict == "ship"]
    unknown = [row.label for row, verdict, _ in rows if verdict == "unknown"]
    held = [(row, step) for row, verdict, step in rows if verdict == "hold"]
    if longer:
        return "Not yet", f"training stopped too early: {longer}", set_steps(curve, pipeline)
    if metrics.seen and metrics.seen.texts:
        return "Can't tell", f"{metrics.seen.texts:,} of the test texts were trained on", REMEDY
    if 2 * len(unknown) > len(rows):
        needed = texts_needed(metrics)
        texts = counted(needed, "more test text") if needed else f"{RANDOM} random test texts"
        do = f"annotate {texts} for {name_labels(unknown)}; training/check/test lists some"
        return "Can't tell", f"test knows too little of {len(unknown)} of {labels}", do
    if not held:
        return "Ship", f"{len(ready)} of {labels} reach the goal", f"weasel run package{_gpu(pipeline)}"
    costs = {cause: sum(row.costs[cause] for row, _ in held) for cause in NAMES}
    most = max(costs, key=lambda cause: costs[cause])
    why = f"{len(ready)} of {labels} reach the goal; most points of F1 are lost to {NAMES[most][0]}"
    row, step = held[0]
    command = {
        NAMES["known"][2]: set_steps(curve, pipeline),
        NAMES["new"][2]: "weasel run predict",
        NAMES["contradicted"][2]: FIX,
        NAMES[SPURIOUS][2]: FIX,
    }.get(step, "")
    do = f"{row.label}: {step}{': ' if command else ''}{command}"
    return ("Ship some" if ready else "Not yet"), why, do


def set_steps(curve: Table | None, pipeline: str) -> str:
    """Say how to train longer; empty if it isn't known how long training was."""
    if not curve or not curve["step"]:
        return ""
    steps = LONGER * int(curve["step"][-1])
    return f"set {pipeline}_steps: {steps} in project.yml: weasel run {'all' if pipeline == 'cpu' else pipeline}"


def _gpu(pipeline: str) -> str:
    return "" if pipeline == "cpu" else f"-{pipeline}"


def train_longer(metrics: Metrics, curve: Table | None) -> str:
    """Say why a pipeline is undertrained, so that its scores say little of the annotations yet; empty if it isn't.

    It is if it finds fewer than half of the words that train marks alike, or if F1 on dev still rises: if the last
    evaluation is better than all before, by more than RISING, and by more than F1 ever fell between two of them.
    """
    if not curve or not curve["step"]:
        return ""
    gold, found = metrics.alike or (0, 0)
    if gold >= KNOWN and found < TRAINED * gold:
        return f"it finds only {found:,} of {gold:,} spans whose words train marks alike"
    *before, last = curve["score"]
    gain = last - max(before, default=last)
    if gain > max([RISING, *(earlier - later for earlier, later in pairwise(before))]):
        return f"on dev, F1 still rose by {100 * gain:.1f} points at the end"
    return ""


def next_step(row: RankedLabel, verdict: Verdict, longer: bool, missing: int) -> str:
    """Choose what to do about a label, in a few words.

    longer (bool): the pipeline is undertrained.
    missing (int): spans of the label that may be missing, as the check found.
    """
    if row.errors.unknown:
        return "annotate test texts"
    if longer:
        return NAMES["known"][1]
    if row.few:
        return "annotate more test texts"
    if verdict == "ship":
        return "ready"
    costs = {cause: cost for cause, cost in row.costs.items() if cause != SPURIOUS or missing >= MISSING}
    cause = max(costs, key=lambda name: costs[name])
    return NAMES[cause][2] if costs[cause] > 0 else "leave it"


def doubts(merge: Ledger | None, metrics: Metrics) -> Iterator[Doubt]:
    """Yield the reasons not to trust the scores."""
    if said := tell_seen(metrics):
        yield Doubt(f"{said}.", f"{REMEDY}.")
    without_gold = [label for label, scores in metrics.all_gold.labels.items() if not scores.support]
    yield from doubts_about_split("test", metrics.texts, without_gold)
    if metrics.unscored:
        unjudged = sorted(((-one.unjudged, label) for label, one in metrics.errors.items() if one.unjudged))
        named = ", ".join(f"{label} {-n:,}" for n, label in unjudged[:6])
        yield Doubt(
            f"{counted(metrics.unscored, 'prediction')} can't be judged, as texts aren't complete for their labels"
            f"{f': {named}' if named else ''}.",
            f"Annotate {RANDOM} random test texts for the label in full (training/check/test lists them), or declare "
            "labels that don't occur as absent in datasets.yml.",
        )
    if few := [row.label for row in rank_labels(metrics) if row.few and row.scores.support]:
        yield Doubt(
            f"{name_labels(few)} with fewer than {FEW} spans in test: their scores say little.",
            "Annotate more test texts.",
        )
    if merge:
        yield from doubts_about_merge(merge)
        gold = [split_gold(counts) for counts in merge.labels.values()]
        # spaCy's ner, which has no scores of overlapping spans, learns entities alone.
        lost = sum(one["lost"] + (0 if metrics.all_spans else one["learnt as well"]) for one in gold)
        if lost > sum(sum(one.values()) for one in gold) / 100:
            yield Doubt(
                f"{tell_gold(merge.labels)}.",
                "corpus/lost_spans.jsonl has each; `alignment`, `overlap` and the tokenizer's rules may save some.",
            )


class Digest(NamedTuple):
    """What is said where a report was written: F1, the sentence, the first thing to do, and doubts."""

    f: str
    sentence: str
    do: str
    doubts: list[Doubt]


def tell_f(metrics: Metrics) -> str:
    """Write F1 over the labels that have gold, with its interval."""
    scores = metrics.with_gold
    if scores.f is None or not scores.support:
        return "unknown"
    between = f" ({scores.f_low:.3f} to {scores.f_high:.3f})" if scores.f_low is not None else ""
    return f"{scores.f:.3f}{between}"


def summarize(results: Results, pipeline: str, ship_at: float, missing: Mapping[str, int]) -> Digest | None:
    """Put the report of a pipeline, "cpu" or "gpu", into a few lines; None if nothing was evaluated."""
    if not results.metrics:
        return None
    advice = advise(results.metrics, results.curve, pipeline, ship_at, missing)
    said = f"{advice.verdict}: {advice.why}"
    return Digest(tell_f(results.metrics), said, advice.do, list(doubts(results.merge, results.metrics)))
