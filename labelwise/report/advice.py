"""The sentence that a report begins with, and the next step of each label.

An undertrained pipeline is trained longer, before anything else; see `train_longer`. Where test knows too little of
most labels, nothing can be said until more test texts are annotated. Otherwise each label's next step removes the most
of its mistakes, as far as there is evidence that it does; each mistake is of one kind, and one step removes it:

- missed: train hardly has such words, or marks them. Label more texts, if these are more than a third of the mistakes.
- missed, where train leaves the words unmarked 19 times of twenty, or marks them otherwise; nowhere in gold; wrong
  label; words that train marks less often than not. Fix annotations: as many as the check has findings for, in as many
  texts. Of the last two, the others are learnt from more texts.
- boundaries: decide where spans begin and end, as far as the check has findings; all, where it finds a quarter of them.
  Other wrong boundaries are learnt from more texts.
- no token boundary: no tokens represent gold. Split them.
- a label without test gold: nothing is known of it but that its predictions count as mistakes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

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
from labelwise.evaluate.ranking import RankedLabel, rank_labels
from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import SEEN_REMEDY, Metrics, describe_seen
from labelwise.evaluate.undertrained import train_longer

SOME = 3  # mistakes that a step removes, from which it is worth it,
TENTH = 0.1  # if they are a tenth of the label's
TEACHABLE = 1 / 3  # of a label's mistakes: how many must be missed for want of texts for more to help
SURE = 0.25  # of wrong boundaries: how many the check must find for all to be a question of policy
CASES = 30  # of the random sample, which says how many findings are right
RANDOM = 100  # test texts that are annotated anew
FIX = "decide its cases on the card Fix"
EXPORT = f"{command_line('export')} training/cpu/raw.jsonl to-annotate --format"
LABEL_MORE = "label more texts"
FIX_CASES = "fix contradictions"
BOUNDARIES = "decide its boundaries"
SPLIT = "split its tokens"
READ = "read its mistakes"
WRONG_BOUNDARIES = "wrong boundaries"  # a kind of the check's findings
MORE_TEST = "annotate more test texts"
TEST_TEXTS = f"{command_line('export')} corpus to-annotate --splits test --format texts"  # in a random order
# Each kind of mistake, in a legend and in a sentence.
KINDS = {
    "missed": ("missed", "missed spans"),
    "boundaries": ("wrong boundaries", "wrong boundaries"),
    "label": ("wrong label", "wrong labels"),
    "spurious": ("nowhere in gold", "spans where gold has none"),
    "goldless": ("of labels without test gold", "predictions of labels without test gold"),
}
# Why a span is missed, and what removes it.
REASONS = {
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
    READ: "its name in the table of labels shows them",
}


class Shares(NamedTuple):
    """The shares of findings that are right: of those of boundaries, and of the others; 1 if they aren't known."""

    boundaries: float = 1.0
    others: float = 1.0


UNKNOWN = Shares()


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
    sample: int = 0,
    shares: Shares = UNKNOWN,
) -> Advice:
    """Decide whether a pipeline may be used, and what to do next.

    curve (Curve | None): of the training on dev.
    pipeline (str): "cpu", "small" or "gpu".
    found (Mapping | None): by label, how many findings of each kind the check has.
    merge (Ledger | None): what became of the annotations.
    sample (int): cases of the random sample that are to be decided yet.
    shares (Shares): of findings that are right, by that sample.
    """
    longer = train_longer(metrics, curve)
    evidence = in_test(found or {}, metrics, merge, shares)
    rows = []
    for row in rank_labels(metrics, ship_at):
        steps = removable(row, evidence.get(row.label, Counter()))
        rows.append((row, next_step(row, ship_at, bool(longer), steps)))
    decide = f"decide the {counted(sample, 'case')} drawn at random on the card Fix: they say how many of all are right"
    sentence = _sentence(metrics, rows, longer, curve, pipeline, evidence, decide if sample else "")
    return Advice(format_f(metrics), *sentence, rows, list(warnings(merge, metrics)))


def _sentence(
    metrics: Metrics,
    rows: Sequence[tuple[RankedLabel, str]],
    longer: str,
    curve: Curve | None,
    pipeline: str,
    found: Mapping[str, Mapping[str, int]],
    decide: str,
) -> tuple[str, str, str]:
    """Choose the verdict, its reason, and what to do first.

    decide (str): that cases are to be decided, before any others are fixed; empty if they are.
    """
    labels = counted(len(rows), "label")
    ready = sum(row.verdict == "ship" and not row.close for row, _ in rows)
    close = sum(row.close for row, _ in rows)
    reach = f"{ready} of {labels} {'reaches' if 1 in (ready, len(rows)) else 'reach'} the goal"
    reach += f", {close} {'is' if close == 1 else 'are'} close to it" if close else ""
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
    if not held and (ready or not close):
        verdict = "Ship" if ready == len(rows) else "Ship some"
        return verdict, reach, f"weasel run package{'' if pipeline == 'cpu' else f'-{pipeline}'}"
    held = held or [(row, step) for row, step in rows if row.close]
    why = f"{reach}; {describe_mistakes(metrics)}"
    verdict = "Ship some" if ready else "Not yet"
    removed = {row.label: removable(row, found.get(row.label, {})).get(step, 0) for row, step in held}
    row, step = max(held, key=lambda one: (removed[one[0].label], one[1] != MORE_TEST))
    if step in (FIX_CASES, BOUNDARIES) and decide:
        return verdict, why, decide
    command = COMMANDS.get(step, "")
    return verdict, why, f"{row.label}: {step}{': ' if command else ''}{command}"


def divide(metrics: Metrics) -> dict[str, int]:
    """Count all pairs of gold and predicted spans: those that are right, and each mistake once, by kind."""
    total: Counter[str] = Counter()
    for one in metrics.mistakes.values():
        total.update({"found": one.right, **one.kinds, "label": one.label})  # not those of others, too
    return {kind: total[kind] for kind in ("found", *KINDS)}


def describe_mistakes(metrics: Metrics) -> str:
    """Describe how many mistakes there are, their most frequent kind, and the labels that are confused most often."""
    kinds = divide(metrics)
    total, (most, n) = sum(kinds.values()) - kinds.pop("found"), max(kinds.items(), key=lambda item: item[1])
    if not n:
        return "nothing is wrong"
    often = f" (most often {confusions(metrics)[0]})" if most == "label" else ""
    return f"of {counted(total, 'mistake')}, {n:,} are {KINDS[most][1]}{often}"


def confusions(metrics: Metrics) -> list[str]:
    """List pairs of labels that are confused, the most frequent first."""
    pairs = ((n, label, other) for label, one in metrics.mistakes.items() for other, n in one.confused.items())
    return [f"{label} found as {other}, {n:,}" for n, label, other in sorted(pairs, key=lambda one: (-one[0], one[1:]))]


def next_step(row: RankedLabel, ship_at: float, longer: bool, steps: Mapping[str, int]) -> str:
    """Choose what to do about a label, in a few words.

    longer (bool): the pipeline is undertrained.
    steps (Mapping): how many mistakes each may remove; see `removable`.
    """
    if row.mistakes.unknown:
        return "annotate test texts"
    if longer:
        return "train longer"
    if row.few:
        return MORE_TEST
    if row.verdict == "ship" and not row.close:
        return "ready"
    if (row.scores.f or 0) >= ship_at:  # it may be good enough: the interval is too wide to tell
        return MORE_TEST
    return max(steps, key=lambda step: steps[step]) if steps else READ


def in_test(
    found: Mapping[str, Counter[str]], metrics: Metrics, merge: Ledger | None, shares: Shares
) -> dict[str, Counter[str]]:
    """Scale the findings of a check, which are of train and dev, to as many texts as test has, and to those right."""
    texts = sum(n for split, n in merge.texts.items() if split != "test") if merge else 0
    boundaries, others = (share * metrics.texts / texts if texts else share for share in shares)
    return {
        label: Counter(
            {kind: round(n * (boundaries if kind == WRONG_BOUNDARIES else others)) for kind, n in kinds.items()}
        )
        for label, kinds in found.items()
    }


def removable(row: RankedLabel, found: Mapping[str, int]) -> dict[str, int]:
    """Count how many mistakes of a label each step may remove, each mistake once; few of them may be chance.

    found (Mapping): findings of the check, by kind, in as many texts as test has. Each explains one mistake at most.
        More texts may teach the other wrong labels and boundaries, too, but not what train contradicts, or gold hasn't;
        and little of a label whose mistakes are mostly others than words that train hardly has, or marks.
    """
    one, causes = row.mistakes, row.mistakes.causes
    boundaries, either = causes.get("boundaries", 0), causes.get("label", 0) + one.taken + causes.get("sometimes", 0)
    contradicted = causes.get("unmarked", 0) + causes.get("otherwise", 0) + one.spurious
    moved = min(boundaries, found.get(WRONG_BOUNDARIES, 0))
    if moved >= SURE * boundaries:  # a check finds only the surest: what is a policy's question isn't learnt, either
        moved = boundaries
    fixed = min(contradicted + either, sum(n for kind, n in found.items() if kind != WRONG_BOUNDARIES))
    teachable = causes.get("known", 0) + causes.get("new", 0)
    learnt = teachable + boundaries - moved + min(either, contradicted + either - fixed)
    if teachable <= TEACHABLE * row.total:
        learnt = 0
    steps = {LABEL_MORE: learnt, FIX_CASES: fixed, BOUNDARIES: moved, SPLIT: causes.get("tokens", 0)}
    return {step: n for step, n in steps.items() if n >= max(SOME, TENTH * row.total)}


def warnings(merge: Ledger | None, metrics: Metrics) -> Iterator[ScoreWarning]:
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
    if merge:
        yield from warnings_about_merge(merge, metrics.untaught)


def format_f(metrics: Metrics) -> str:
    """Write F1 of all spans, with its interval."""
    scores = metrics.all_gold
    if scores.f is None or not scores.support:
        return "unknown"
    between = f" ({scores.f_low:.3f} to {scores.f_high:.3f})" if scores.f_low is not None else ""
    return f"{scores.f:.3f}{between}"
