"""The sentence that a report begins with, and the next step of each label.

An undertrained pipeline is trained longer, before anything else; see `train_longer`. Where test knows too little of
most labels, nothing can be said until more test texts are annotated. Otherwise each label's next step is about the
cause that costs it the most, as far as there is evidence that the step removes it:

- new: train never marks such words. Label more texts.
- known: train marks the words, and the pipeline misses them. More texts show them in other sentences.
- contradicted: train leaves the words unmarked 99 times of a hundred. Fix annotations, if the check found some.
- boundaries: train marks both what gold has and what was found. Decide where spans begin and end.
- tokens: no tokens represent the span. Split them.
- spurious: found, and not marked. No step of a label is worth it by that alone; but where it costs the most of all, the
  surest cases of the check are decided first: in minutes, they say how much of gold is wrong.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labelwise.base.environment import command_line
from labelwise.base.text import counted
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.warnings import (
    ScoreWarning,
    name_labels,
    warnings_about_merge,
    warnings_about_split,
    warnings_about_untaught,
)
from labelwise.evaluate.ranking import SPURIOUS, RankedLabel, rank_labels
from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import SEEN_REMEDY, Metrics, describe_seen

KNOWN = 10  # gold spans whose words train marks: how many must be missed to say something
WORTH = 0.01  # what twice the steps must add to F1 on dev
SOME = 3  # spans of a cause, and findings of the check, from which they are worth a step
CASES = 30  # that are decided, from which they say how often gold is wrong
RANDOM = 100  # test texts that are annotated anew
FIX = "weasel run fix"
EXPORT = f"{command_line('export')} training/cpu/raw.jsonl to-annotate --format"
MORE_TEST = "annotate more test texts"
TEST_TEXTS = f"{command_line('export')} corpus to-annotate --splits test --format texts"  # in a random order
# For each cause: what it is, what removes it, and the next step of a label.
NAMES = {
    "known": ("words that train marks", "label more", "label more texts"),
    "new": ("words that train never marks", "label more", "label more texts"),
    "boundaries": ("train has both boundaries", "a rule", "decide its boundaries"),
    "contradicted": ("contradicted by train", "fix", "fix contradictions"),
    "tokens": ("not among the tokens", "split tokens", "split its tokens"),
    SPURIOUS: ("spans that gold hasn't", "leave it", "leave it"),
}
# The kinds of a check's findings that are evidence for a step.
EVIDENCE = {
    "boundaries": ("wrong boundaries",),
    "contradicted": ("missing", "spurious", "wrong label"),
}
COMMANDS = {
    "label more texts": "weasel run predict",
    "fix contradictions": FIX,
    "decide its boundaries": FIX,
    MORE_TEST: TEST_TEXTS,
}


class Advice(NamedTuple):
    """What to think of a pipeline, and what to do next.

    f (str): F1 of all spans, with its interval.
    verdict (str): "Ship", "Ship some", "Not yet" or "Can't tell".
    why (str): the rest of the sentence.
    do (str): what to do first, with its command.
    rows (list): labels, the one that costs the most first, each with its next step.
    warnings (list): reasons not to trust the scores.
    """

    f: str
    verdict: str
    why: str
    do: str
    rows: list[tuple[RankedLabel, str]]
    warnings: list[ScoreWarning]


def advise(
    metrics: Metrics,
    curve: Curve | None,
    pipeline: str,
    ship_at: float,
    found: Mapping[str, Counter[str]] | None = None,
    merge: Ledger | None = None,
    *,
    decided: int = 0,
) -> Advice:
    """Say whether a pipeline may be used, and what to do next.

    curve (Curve | None): of the training on dev.
    pipeline (str): "cpu" or "gpu".
    found (Mapping | None): by label, how many findings of each kind the check has.
    merge (Ledger | None): what became of the annotations.
    decided (int): cases that were decided; `found` hasn't them.
    """
    ranked = rank_labels(metrics, ship_at)
    longer = train_longer(metrics, curve)
    rows = [(row, next_step(row, ship_at, bool(longer), (found or {}).get(row.label, Counter()))) for row in ranked]
    to_decide = CASES - decided if decided + sum(kinds.total() for kinds in (found or {}).values()) >= CASES else 0
    sentence = _sentence(metrics, rows, longer, curve, pipeline, to_decide)
    return Advice(format_f(metrics), *sentence, rows, list(warnings(merge, metrics)))


def _sentence(
    metrics: Metrics,
    rows: Sequence[tuple[RankedLabel, str]],
    longer: str,
    curve: Curve | None,
    pipeline: str,
    to_decide: int,
) -> tuple[str, str, str]:
    """Choose the verdict, its reason, and what to do first.

    to_decide (int): how many more cases say how often gold is wrong; none if it isn't positive.
    """
    labels = counted(len(rows), "label")
    ready = sum(row.verdict == "ship" for row, _ in rows)
    unknown = [row.label for row, _ in rows if row.verdict == "unknown"]
    held = [(row, step) for row, step in rows if row.verdict == "hold"]
    if longer and curve:
        command = f"weasel run {'all' if pipeline == 'cpu' else pipeline}"
        do = f"set {pipeline}_steps: {2 * curve.steps[-1]} in project.yml: {command}"
        return "Not yet", f"training stopped too early: {longer}", do
    if metrics.seen and metrics.seen.texts:
        return "Can't tell", f"{metrics.seen.texts:,} of the test texts were trained on", SEEN_REMEDY
    if 2 * len(unknown) > len(rows):
        do = f"annotate {RANDOM} random test texts for {name_labels(unknown)}: {TEST_TEXTS}"
        return "Can't tell", f"test knows too little of {len(unknown)} of {labels}", do
    if not held:
        verdict = "Ship some" if unknown else "Ship"
        return verdict, f"{ready} of {labels} reach the goal", f"weasel run package{'-gpu' * (pipeline == 'gpu')}"
    costs = {cause: sum(row.costs[cause] for row, _ in held) for cause in NAMES}
    most = max(costs, key=lambda cause: costs[cause])
    why = f"{ready} of {labels} reach the goal; most points of F1 are lost to {NAMES[most][0]}"
    verdict = "Ship some" if ready else "Not yet"
    if most in (SPURIOUS, "contradicted") and to_decide > 0:
        cases = counted(to_decide, "surest case")
        return verdict, why, f"decide the {cases} of the report's card Fix: they say how often gold is wrong"
    row, step = next((one for one in held if one[1] != "leave it"), held[0])
    command = COMMANDS.get(step, "")
    return verdict, why, f"{row.label}: {step}{': ' if command else ''}{command}"


def train_longer(metrics: Metrics, curve: Curve | None) -> str:
    """Say why a pipeline is undertrained, so that its scores say little of the annotations yet; empty if it isn't.

    It is if it misses more spans whose words train marks than it finds at all, or if twice the steps are worth it.
    """
    if not curve or not curve.steps:
        return ""
    known, found = (sum(one.causes.get(cause, 0) for one in metrics.errors.values()) for cause in ("known", "found"))
    if known >= KNOWN and known > found:
        return f"it misses {known:,} spans whose words train marks, and finds {found:,} in all"
    if (gain := expect_gain(curve)) > WORTH:
        return f"F1 on dev still rises, and twice the steps should add about {100 * gain:.1f} points"
    return ""


def expect_gain(curve: Curve) -> float:
    """Estimate what twice the steps add to F1 on dev: nothing, if the last evaluation isn't the best.

    The next doubling of the steps adds as many times what the last one added as that was of the one before, and never
    more than the last one (Aitken's delta-squared process). Between evaluations, F1 is taken as rising evenly.
    """
    if curve.f[-1] < max(curve.f) or 2 * curve.steps[0] > curve.steps[-1]:  # or nothing is known of half of the steps
        return 0.0
    steps = [0, *curve.steps]
    quarter, half, last = np.interp([steps[-1] / 4, steps[-1] / 2, steps[-1]], steps, [0, *curve.f])
    gain = float(max(0.0, last - half))
    return gain and gain * gain / max(gain, half - quarter)


def next_step(row: RankedLabel, ship_at: float, longer: bool, found: Mapping[str, int]) -> str:
    """Choose what to do about a label, in a few words.

    longer (bool): the pipeline is undertrained.
    found (Mapping): the findings of the check, by kind.
    """
    if row.errors.unknown:
        return "annotate test texts"
    if longer:
        return "train longer"
    if row.few:
        return MORE_TEST
    if row.verdict == "ship":
        return "ready"
    if (row.scores.f or 0) >= ship_at:  # it may be good enough: the interval is too wide to tell
        return MORE_TEST
    costs = {cause: row.costs[cause] for cause in row.costs if cause != SPURIOUS and _is_evident(cause, row, found)}
    return NAMES[max(costs, key=lambda name: costs[name])][2] if costs else "leave it"


def _is_evident(cause: str, row: RankedLabel, found: Mapping[str, int]) -> bool:
    """Tell whether a cause isn't chance: it has some spans, and the check has findings for what contradicts train."""
    evidence = sum(found.get(kind, 0) for kind in EVIDENCE[cause]) if cause in EVIDENCE else SOME
    return min(row.errors.causes.get(cause, 0), evidence) >= SOME


def warnings(merge: Ledger | None, metrics: Metrics) -> Iterator[ScoreWarning]:
    """Yield the reasons not to trust the scores."""
    if said := describe_seen(metrics):
        yield ScoreWarning(f"{said}.", f"{SEEN_REMEDY}.")
    yield from warnings_about_untaught(metrics.untaught)
    without_gold = [label for label, scores in metrics.all_gold.labels.items() if not scores.support]
    yield from warnings_about_split("test", metrics.texts, without_gold)
    if metrics.unscored:
        unjudged = sorted(((-one.unjudged, label) for label, one in metrics.errors.items() if one.unjudged))
        named = ", ".join(f"{label} {-n:,}" for n, label in unjudged[:6])
        yield ScoreWarning(
            f"{counted(metrics.unscored, 'prediction')} can't be judged, as texts aren't complete for their labels"
            f"{f': {named}' if named else ''}.",
            f"Annotate {RANDOM} random test texts for the label in full, or declare it absent in datasets.yml, if it "
            "doesn't occur.",
        )
    if merge:
        yield from warnings_about_merge(merge, metrics.untaught)


def format_f(metrics: Metrics) -> str:
    """Write F1 of all spans, with its interval."""
    scores = metrics.all_gold
    if scores.f is None or not scores.support:
        return "unknown"
    between = f" ({scores.f_low:.3f} to {scores.f_high:.3f})" if scores.f_low is not None else ""
    return f"{scores.f:.3f}{between}"
