"""The verdict that a report begins with, and the next step of each label.

An undertrained pipeline is trained longer, before anything else; see `undertrained`. If test says too little of most
labels, it needs more texts first. Otherwise each label's next step is the one that removes the most of its mistakes, as
far as there is evidence that it does. Each mistake is of one kind, and removed by one step:

- Missed, and train hardly has the words, or marks them, or another prediction overlaps them: label more texts, if
  these are more than a third of the mistakes.
- Missed, and train leaves the words unmarked 19 times of 20, or gives them another label; or spurious: fix
  annotations, as many as the check has findings for, per text.
- Wrong label, or words that train marks less often than not: the same; more texts teach those without a finding.
- Wrong boundaries: decide where spans begin and end, as many as the check has findings for, or all if it finds a
  quarter of them; more texts teach the others.
- No token boundary: split the tokens.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from labelwise.base.text import counted
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.warnings import (
    ScoreWarning,
    name_labels,
    warnings_about_merge,
    warnings_about_split,
    warnings_about_untaught,
)
from labelwise.evaluate.ranking import RankedLabel, rank_labels
from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import SEEN_REMEDY, Metrics, describe_seen
from labelwise.evaluate.undertrained import train_longer

SOME = 3  # mistakes that a step must remove,
TENTH = 0.1  # and the share of the label's mistakes
TEACHABLE = 1 / 3  # of a label's mistakes: how many more texts must teach to be advised
SURE = 0.25  # of wrong boundaries: how many the check must find for all to be a question of policy
CASES = 30  # of the random sample, which says how many findings are right
RANDOM = 100  # test texts to annotate
FIX = "decide its cases on the card Fix"
LABEL_MORE = "label more texts"
FIX_CASES = "fix contradictions"
BOUNDARIES = "decide its boundaries"
SPLIT = "split its tokens"
READ = "read its mistakes"
WRONG_BOUNDARIES = "wrong boundaries"  # a kind of the check's findings
MORE_TEST = "annotate more test texts"
TEST_TEXTS = "python -m scripts.export corpus to-annotate --splits test --format texts"  # in a random order
# What a legend calls each kind of mistake, and a sentence one of them, and more.
KINDS = {
    "missed": ("missed", "a missed span", "missed spans"),
    "boundaries": ("wrong boundaries", "a span with wrong boundaries", "wrong boundaries"),
    "label": ("wrong label", "a wrong label", "wrong labels"),
    "spurious": ("spurious", "a spurious span", "spurious spans"),
    "goldless": (
        "of labels without test gold",
        "a prediction of a label without test gold",
        "predictions of labels without test gold",
    ),
}
# Why a span is missed, and what to do about it.
REASONS = {
    "overlapped": ("another prediction overlaps them", "label more"),
    "known": ("train marks the words", "label more"),
    "sometimes": ("train marks the words less often than not", "fix or label more"),
    "new": ("train hardly has the words", "label more"),
    "unmarked": ("train leaves the words unmarked", "fix"),
    "otherwise": ("train gives the words another label", "fix"),
    "tokens": ("no token boundary", "split tokens"),
}
COMMANDS = {
    LABEL_MORE: "weasel run predict",
    FIX_CASES: FIX,
    BOUNDARIES: FIX,
    MORE_TEST: TEST_TEXTS,
    READ: "click its name in the table of labels",
}


class Shares(NamedTuple):
    """The shares of findings that are right, of boundaries and of the others; 1 if they are unknown."""

    boundaries: float = 1.0
    others: float = 1.0


UNKNOWN = Shares()


class Advice(NamedTuple):
    """The verdict on a pipeline, and what to do next.

    f (str): F1 of all spans, with its interval.
    verdict (str): "Ship", "Ship some", "Not yet" or "Can't tell".
    why (str): the rest of the sentence.
    do (str): the first step, with its command.
    rows (list): labels, the one with the most mistakes first, each with its next step.
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
    found: Mapping[str, Counter[str]],
    merge: Ledger,
    *,
    sample: int = 0,
    shares: Shares = UNKNOWN,
    max_steps: int = 0,
    trained_steps: int = 0,
) -> Advice:
    """Decide whether a pipeline may be used, and what to do next.

    found (Mapping): by label, how many findings of each kind the check has.
    sample (int): cases of the random sample that nobody has decided yet.
    shares (Shares): of findings that are right, by that sample.
    max_steps (int): the most steps that the pipeline's config allows; 0 if that isn't known.
    trained_steps (int): the steps that its training was to take; 0 if that isn't known.
    """
    longer = train_longer(metrics, curve)
    evidence = in_test(found, metrics, merge, shares)
    rows, removed = [], {}
    for row in rank_labels(metrics, ship_at):
        steps = removable(row, evidence.get(row.label, Counter()))
        step = next_step(row, ship_at, bool(longer), steps)
        rows.append((row, step))
        removed[row.label] = steps.get(step, 0)
    sentence = _sentence(metrics, rows, removed, longer, curve, pipeline, sample, max_steps, trained_steps)
    return Advice(format_f(metrics), *sentence, rows, list(warnings(merge, metrics)))


def _sentence(
    metrics: Metrics,
    rows: Sequence[tuple[RankedLabel, str]],
    removed: Mapping[str, int],
    longer: str,
    curve: Curve | None,
    pipeline: str,
    sample: int,
    max_steps: int,
    trained_steps: int,
) -> tuple[str, str, str]:
    """Choose the verdict, its reason, and what to do first.

    removed (Mapping): how many mistakes each label's next step may remove.
    """
    labels = counted(len(rows), "label")
    ready = sum(row.verdict == "ship" and not row.close for row, _ in rows)
    close = sum(row.close for row, _ in rows)
    reach = f"{ready} of {labels} {'reaches' if 1 in (ready, len(rows)) else 'reach'} the goal"
    reach += f", {close} {'is' if close == 1 else 'are'} close to it" if close else ""
    unknown = [row.label for row, _ in rows if row.verdict == "unknown"]
    held = [(row, step) for row, step in rows if row.verdict == "hold"]
    if longer and curve:
        steps = 2 * curve.steps[-1]
        more = f", and max_steps = {steps} in configs/{pipeline}.cfg" if steps > max_steps > 0 else ""
        set_steps = f"set steps: {steps} in project.yml{more}"
        if curve.steps[-1] < trained_steps:
            ended = f"which ended training at step {curve.steps[-1]:,} of {trained_steps:,}"
            set_steps = f"raise patience or max_epochs in configs/{pipeline}.cfg, {ended}"
        again = {"cpu": "weasel run all", "small": "weasel run small", "gpu": "weasel run gpu"}
        do = f"{set_steps}: {again.get(pipeline, f'dvc repro report@{pipeline}')}"
        return "Not yet", f"training stopped too early: {longer}", do
    if metrics.seen and metrics.seen.texts:
        were = "was" if metrics.seen.texts == 1 else "were"
        return "Can't tell", f"{metrics.seen.texts:,} of the test texts {were} trained on", SEEN_REMEDY
    if 2 * len(unknown) > len(rows):
        do = f"annotate {RANDOM} random test texts for {name_labels(unknown)}: {TEST_TEXTS}"
        return "Can't tell", f"test knows too little of {len(unknown)} of {labels}", do
    if not held and (ready or not close):
        verdict = "Ship" if ready == len(rows) else "Ship some"
        return verdict, reach, f"python -m scripts.package {pipeline}"
    held = held or [(row, step) for row, step in rows if row.close]
    why = f"{reach}; {describe_mistakes(metrics)}"
    verdict = "Ship some" if ready else "Not yet"
    row, step = max(held, key=lambda one: (removed[one[0].label], one[1] != MORE_TEST))
    if step in (FIX_CASES, BOUNDARIES) and sample:
        cases = counted(sample, "case")
        do = f"decide the {cases} drawn at random on the card Fix: they show in how many of all gold is wrong"
        return verdict, why, do
    command = COMMANDS.get(step, "")
    return verdict, why, f"{row.label}: {step}{': ' if command else ''}{command}"


def divide(metrics: Metrics) -> dict[str, int]:
    """Count all pairs of gold and predicted spans: those that are right, and each mistake once, by kind."""
    total: Counter[str] = Counter()
    for one in metrics.mistakes.values():
        total.update({"found": one.right, **one.kinds, "label": one.label})  # `taken` is another's `label`
    return {kind: total[kind] for kind in ("found", *KINDS)}


def describe_mistakes(metrics: Metrics) -> str:
    """Count the mistakes in words, with their most frequent kind, and the labels that are confused most often."""
    kinds = divide(metrics)
    total, (most, n) = sum(kinds.values()) - kinds.pop("found"), max(kinds.items(), key=lambda item: item[1])
    if not n:
        return "nothing is wrong"
    often = f" (most often {confusions(metrics)[0]})" if most == "label" else ""
    one, more = KINDS[most][1:]
    return f"of {counted(total, 'mistake')}, {n:,} {f'is {one}' if n == 1 else f'are {more}'}{often}"


def confusions(metrics: Metrics) -> list[str]:
    """List pairs of labels that are confused, the most frequent first."""
    pairs = ((n, label, other) for label, one in metrics.mistakes.items() for other, n in one.confused.items())
    return [f"{label} found as {other}, {n:,}" for n, label, other in sorted(pairs, key=lambda one: (-one[0], one[1:]))]


def next_step(row: RankedLabel, ship_at: float, longer: bool, steps: Mapping[str, int]) -> str:
    """Choose the next step of a label.

    longer (bool): the pipeline is undertrained.
    steps (Mapping): how many mistakes each step may remove; see `removable`.
    """
    if row.mistakes.unknown:
        return "annotate test texts"
    if longer:
        return "train longer"
    if row.few:
        return MORE_TEST
    if row.verdict == "ship" and not row.close:
        return "ready"
    if (row.scores.f or 0) >= ship_at:  # it may be good enough, but the interval is too wide
        return MORE_TEST
    return max(steps, key=lambda step: steps[step]) if steps else READ


def in_test(
    found: Mapping[str, Counter[str]], metrics: Metrics, merge: Ledger, shares: Shares
) -> dict[str, Counter[str]]:
    """Scale the findings of a check, in train and dev, to the number of test texts and to the share that is right."""
    texts = sum(n for split, n in merge.texts.items() if split != "test")
    boundaries, others = (share * metrics.texts / texts if texts else share for share in shares)
    return {
        label: Counter(
            {kind: round(n * (boundaries if kind == WRONG_BOUNDARIES else others)) for kind, n in kinds.items()}
        )
        for label, kinds in found.items()
    }


def removable(row: RankedLabel, found: Counter[str]) -> dict[str, int]:
    """Count how many mistakes of a label each step may remove, each mistake once; too few may be chance.

    found (Counter): findings of the check, by kind, in as many texts as test has; each explains one mistake at most.
        More texts teach neither what train contradicts nor what gold lacks.
    """
    one, causes = row.mistakes, Counter(row.mistakes.causes)
    boundaries, either = causes["boundaries"], causes["label"] + one.taken + causes["sometimes"]
    contradicted = causes["unmarked"] + causes["otherwise"] + one.spurious
    moved = min(boundaries, found[WRONG_BOUNDARIES])
    if moved >= SURE * boundaries:  # the check finds only the surest ones, and no text teaches a policy
        moved = boundaries
    fixed = min(contradicted + either, found.total() - found[WRONG_BOUNDARIES])
    teachable = causes["known"] + causes["new"] + causes["overlapped"]
    learnt = teachable + boundaries - moved + min(either, contradicted + either - fixed)
    if teachable <= TEACHABLE * row.total:
        learnt = 0
    steps = {LABEL_MORE: learnt, FIX_CASES: fixed, BOUNDARIES: moved, SPLIT: causes["tokens"]}
    return {step: n for step, n in steps.items() if n >= max(SOME, TENTH * row.total)}


def warnings(merge: Ledger, metrics: Metrics) -> Iterator[ScoreWarning]:
    """Yield the reasons not to trust the scores."""
    if said := describe_seen(metrics):
        yield ScoreWarning(f"{said}.", f"{SEEN_REMEDY}.")
    yield from warnings_about_untaught(metrics.untaught)
    without_gold = [label for label, scores in metrics.all_gold.labels.items() if not scores.support]
    yield from warnings_about_split("test", metrics.texts, without_gold)
    if metrics.unscored:
        unjudged = sorted(((-one.unjudged, label) for label, one in metrics.mistakes.items() if one.unjudged))
        named = ", ".join(f"{label} {-n:,}" for n, label in unjudged[:6])
        yield ScoreWarning(
            f"{counted(metrics.unscored, 'prediction')} can't be judged, as texts aren't complete for their labels"
            f"{f': {named}' if named else ''}.",
            f"Annotate {RANDOM} random test texts for the label in full, or declare it absent in datasets.yml, if it "
            "doesn't occur.",
        )
    yield from warnings_about_merge(merge, metrics.untaught)


def format_f(metrics: Metrics) -> str:
    """Write F1 of all spans, with its interval."""
    scores = metrics.all_gold
    if scores.f is None or not scores.support:
        return "unknown"
    between = f" ({scores.f_low:.3f} to {scores.f_high:.3f})" if scores.f_low is not None else ""
    return f"{scores.f:.3f}{between}"
