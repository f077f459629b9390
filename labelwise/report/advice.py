"""The verdict that a report begins with, and the next step of each label.

A broken or undertrained pipeline is trained again, before anything else; see `undertrained`. If test says too little of
most labels, it needs more texts first. Otherwise each label's next step is the one that removes the most of its errors,
as far as there is evidence that it does. Each error is of one kind, and removed by one step:

- Missed, and the words are new or annotated in train, or another prediction overlaps them: annotate more texts, if
  these are more than a third of the errors.
- Missed, and the words are unannotated in train 19 times of 20, or have another label there; or spurious: fix
  annotations, one error per finding of the check, per text.
- Wrong label, or words that are annotated in train less often than not: the same; more texts teach those without a
  finding.
- Wrong label, and two labels are confused with each other: agree on a rule for both, one step of both labels.
- Wrong boundaries: decide where spans begin and end. This removes one error per finding of the check, or all if it
  finds a quarter of them; more texts teach the others.
- No token boundary: split the tokens.

If the first step of cpu were to annotate more texts, and train has fewer than MIN_CPU_TEXTS, a small transformer comes
first.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from labelwise.base.sections import stage_of
from labelwise.base.text import counted
from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.warnings import ScoreWarning, name_labels
from labelwise.evaluate.ranking import UNDECIDED, RankedLabel, group_by_verdict, rank_labels
from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import SEEN_REMEDY, Metrics
from labelwise.evaluate.undertrained import is_broken, train_longer
from labelwise.report.mistakes import confused_pairs, describe_mistakes, divide
from labelwise.report.score_warnings import is_much, warnings
from labelwise.report.unanswered import Unanswered

MIN_REMOVED = 3  # errors that a step must remove,
MIN_REMOVED_SHARE = 0.1  # and the share of the label's errors
MIN_TEACHABLE_SHARE = 1 / 3  # share of a label's errors that more texts must teach to be advised
MIN_BOUNDARIES_SHARE = 0.25  # share of wrong boundaries that the check must find for all to be a question of policy
CASES = 30  # of the random sample, which says how many findings are right
MAX_TEST_TEXTS = 100  # test texts to annotate, at most
WRONG_BOUNDARIES = "wrong boundaries"  # a kind of the check's findings
MIN_CPU_TEXTS = 700  # of train: with fewer, a small transformer found more than cpu in each study (docs/small.md)
PREDICT = "weasel run predict"
FIX = "#fix"  # the card of the page where suspected annotation errors are reviewed
MAX_TASKS = 3
TEST_TEXTS = "python -m scripts.export corpus to-annotate --splits test --format texts"  # in a random order
AGAIN = {"cpu": "weasel run all"} | {name: f"weasel run {name}" for name in ("small", "gpu", "student")}  # or dvc repro


class Step(NamedTuple):
    """A next step.

    words (str): the imperative; "its" in a label's own step is the label's.
    command (str): command to run, or anchor on the page, such as "#fix"; "" for neither.
    removes (int): errors that it may remove.
    labels (tuple): labels whose errors the page shows; of two labels, the errors between them.
    note (str): cost and gain; see `forecasts`.
    """

    words: str
    command: str = ""
    removes: int = 0
    labels: tuple[str, ...] = ()
    note: str = ""

    @property
    def first(self) -> str:
        """Return what to do before the command."""
        return "; first put them into assets/raw" if self.command == PREDICT else ""

    def __str__(self) -> str:
        words = f"{self.words} ({self.note})" if self.note else self.words
        words += self.first
        return f"{words}: {self.command}" if self.command not in ("", FIX) else words

    def of(self, label: str) -> "Step":
        """Name the label in `words`."""
        words = self.words.replace("its", f"{label}'s") if "its" in self.words.split() else f"{self.words} for {label}"
        return self._replace(words=words, labels=self.labels or (label,))


NOTHING = Step("–")
TRAIN = Step("train again")
TRAIN_LONGER = Step("train longer")
READ = Step("look at its errors")
LABEL_MORE = Step("annotate more texts", PREDICT)
FIX_CASES = Step("review its suspected annotation errors", FIX)
BOUNDARIES = Step("agree on its span boundaries", FIX)
SPLIT = Step("adjust its tokenization")
TRY_SMALL = Step("before you annotate more, train a small transformer, which knows more words", AGAIN["small"])
MORE_TEST = Step("annotate more test texts", TEST_TEXTS)


class Shares(NamedTuple):
    """Precision of the findings: for boundaries, and for all others."""

    boundaries: float = 1.0
    others: float = 1.0


UNKNOWN = Shares()


class Steps(NamedTuple):
    """Numbers of training steps of a project; 0 if unknown.

    asked (int): `steps` of project.yml; 0 leaves the number to the config.
    least, most (int): the config's limits.
    trained (int): the maximum of the pipeline's training.
    """

    asked: int = 0
    least: int = 0
    most: int = 0
    trained: int = 0


ANY = Steps()


class Advice(NamedTuple):
    """The verdict on a pipeline, and the next tasks.

    why (str): the obstacle: the training, the test set, or the most frequent errors.
    tasks (list): most useful first, at most MAX_TASKS.
    blocked (bool): training or evaluation must be repeated, so the scores say little about the annotations.
    """

    f: str
    verdict: str
    why: str
    tasks: list[Step]
    rows: list[tuple[RankedLabel, Step]]
    warnings: list[ScoreWarning]
    blocked: bool = False


def advise(
    metrics: Metrics,
    curve: Curve | None,
    pipeline: str,
    target_f1: float,
    findings: Mapping[str, Counter[str]],
    merge: Ledger,
    *,
    checks: Sequence[ImportCheck] = (),
    sample: int = 0,
    shares: Shares = UNKNOWN,
    steps: Steps = ANY,
    unanswered: Unanswered | None = None,
    tried: Collection[str] = (),
) -> Advice:
    """Decide whether a pipeline may be used, and choose the next tasks.

    findings (Mapping): the check's, by label and kind.
    checks (Sequence): import checks to show.
    sample (int): undecided cases of the random sample.
    unanswered (Unanswered | None): test texts that aren't complete; None if unknown.
    tried (Collection[str]): evaluated pipelines.
    """
    ranked, evidence = rank_labels(metrics, target_f1), scale_findings(findings, metrics, merge, shares)
    pairs = confused_pairs(metrics)
    rows = [(row, next_step(row, target_f1, evidence.get(row.label, Counter()), pairs)) for row in ranked]
    if blocked := _find_block(metrics, curve, pipeline, merge, steps):
        why, *tasks, every = blocked
        rows = [(row, step if row.unscored else every) for row, step in rows]
    else:
        rows = _share_pairs(rows)
        in_full = len(merge.labels) > 1 and merge.texts["train"] > merge.partly["train"]  # as some text is
        why, tasks = _choose_tasks(metrics, rows, pipeline, sample, unanswered, in_full=in_full)
        few = pipeline == "cpu" and "small" not in tried and 0 < merge.texts["train"] < MIN_CPU_TEXTS
        tasks[:0] = [TRY_SMALL] if few and tasks[0].command == PREDICT else []
        del tasks[MAX_TASKS:]
    warned = list(warnings(metrics, checks, unanswered))
    return Advice(format_f(metrics), describe_verdicts(ranked), why, tasks, rows, warned, bool(blocked))


def describe_verdicts(rows: Sequence[RankedLabel]) -> str:
    """Count the labels by verdict."""
    sizes = {verdict: len(labels) for verdict, labels in group_by_verdict(rows).items()}
    ready = sizes.pop("ready")
    words: dict[str, str] = {"too few test spans": "with too few test spans"}
    others = ", ".join(f"{n:,} {words.get(verdict, verdict)}" for verdict, n in sizes.items() if n)
    is_ready = f"{ready:,} of {counted(len(rows), 'label')} {'is' if 1 in (ready, len(rows)) else 'are'} ready"
    return f"{is_ready}; {others}" if others else is_ready


def _find_block(
    metrics: Metrics, curve: Curve | None, pipeline: str, merge: Ledger, steps: Steps
) -> tuple[str, Step, Step] | None:
    """Explain why to train or evaluate again, with the first step and each label's; None if neither is due."""
    rerun, config = AGAIN.get(pipeline, f"dvc repro {stage_of('report', pipeline)}"), f"configs/{pipeline}.cfg"
    broken = is_broken(curve, sum(merge.gold.get("dev", {}).values()))
    longer = "" if broken else train_longer(metrics.to_learn[1], curve)
    if curve and (broken or longer):
        why = f"training stopped too early: {longer}"
        if broken:
            why = f"training is broken: F1 on dev was {max(curve.f):.3f} at best"
        every, number = TRAIN if broken else TRAIN_LONGER, 2 * curve.steps[-1]
        if 0 < steps.asked < steps.least:  # twice too small a number may be too small, too
            return why, Step("set steps: 0 in project.yml, which fits their number to the texts", rerun), every
        if broken:
            return why, Step(f"compare {config} with labelwise's, learn_rate first", rerun), every
        if curve.steps[-1] < steps.trained:
            ended = f"which ended training at step {curve.steps[-1]:,} of {steps.trained:,}"
            return why, Step(f"raise patience or max_epochs in {config}, {ended}", rerun), every
        limit = f", and max_steps = {number} in {config}" if number > steps.most > 0 else ""
        return why, Step(f"set steps: {number} in project.yml{limit}", rerun), every
    if metrics.seen and metrics.seen.texts:
        were = "was" if metrics.seen.texts == 1 else "were"
        return f"{metrics.seen.texts:,} of the test texts {were} trained on", Step(SEEN_REMEDY), NOTHING
    return None


def _choose_tasks(
    metrics: Metrics,
    rows: Sequence[tuple[RankedLabel, Step]],
    pipeline: str,
    sample: int,
    unanswered: Unanswered | None,
    *,
    in_full: bool,
) -> tuple[str, list[Step]]:
    """Choose the obstacle, and tasks for labels that aren't ready, by the errors that they may remove.

    in_full (bool): ask for texts once, in full for all labels.
    """
    undecided = [row.label for row, _ in rows if row.verdict in UNDECIDED]
    if 2 * len(undecided) > len(rows):
        have = "has" if len(rows) == 1 else "have"
        why = f"{len(undecided)} of {counted(len(rows), 'label')} {have} too few test spans to tell"
        return why, [_annotate_test(undecided, metrics.texts, unanswered)]
    why, verdicts = describe_mistakes(metrics), group_by_verdict(row for row, _ in rows)
    improved = verdicts["not ready"] or ([] if verdicts["ready"] else verdicts["borderline"])
    if not improved:
        return why, [Step("package the labels that are ready", f"python -m scripts.package {pipeline}")]
    open_rows = [item for item in rows if item[0].label in improved]

    def worth(item: tuple[RankedLabel, Step]) -> tuple[bool, int, bool]:
        """Order tasks by the errors that they may remove; reviews follow, because none was shown to raise F1."""
        _, step = item
        return step.removes > 0 and step.command != FIX, step.removes, step.command != TEST_TEXTS

    open_rows.sort(key=worth, reverse=True)
    wide = [row.label for row, step in open_rows if step.command == TEST_TEXTS]
    taught = [(row.label, step.removes) for row, step in open_rows if step.command == PREDICT]
    full = f"annotate more texts in full, mainly for {name_labels([label for label, _ in taught])}"
    drawn = Step(f"review {counted(sample, 'random suspect')}, to see how many are errors", FIX)
    tasks: dict[str, Step] = {}  # by its words: a rule is the step of two labels
    for row, step in open_rows:
        if step.command == FIX and sample:
            task = drawn
        elif step.command == TEST_TEXTS:
            task = _annotate_test(wide, metrics.texts, unanswered)
        elif step.command == PREDICT and in_full:
            task = Step(full, PREDICT, sum(removes for _, removes in taught))
        elif len(step.labels) == 2:
            total = counted(sum(divide(metrics).values()) - divide(metrics)["found"], "error")
            rule = f"agree on a rule for {' and '.join(step.labels)}"
            task = step._replace(words=f"{rule} ({confused_pairs(metrics)[step.labels]:,} of {total})")
        else:
            task = step.of(row.label)
        tasks.setdefault(task.words, task)
    chosen = [*tasks.values()][:MAX_TASKS]
    if sample and drawn not in chosen:
        chosen[1:] = [drawn, *chosen[1 : MAX_TASKS - 1]]
    return why, chosen


def _annotate_test(labels: Sequence[str], texts: int, unanswered: Unanswered | None) -> Step:
    """Ask for incomplete test texts of labels, or, if there are few, for new ones."""
    incomplete = max((unanswered.texts[label] for label in labels), default=0) if unanswered else 0
    if unanswered and is_much(incomplete, texts):
        texts_to_annotate = counted(min(MAX_TEST_TEXTS, incomplete), "test text")
        return Step(f"annotate {texts_to_annotate} in full for {name_labels(labels)}", TEST_TEXTS)
    new = f"annotate new texts for {name_labels(labels)}, and declare their dataset as split: test"
    return Step(f"{new}, or raise test_ratio in project.yml")


def _share_pairs(rows: Sequence[tuple[RankedLabel, Step]]) -> list[tuple[RankedLabel, Step]]:
    """Make the rule for two confused labels the step of both.

    A label that is ready, can't be scored, or is confused more often with a third one keeps its step.
    """
    steps = sorted((step for _, step in rows if step.labels), key=lambda step: step.removes)
    shared = {label: step for step in steps for label in step.labels}
    return [
        (row, step if row.verdict == "ready" or row.unscored or step.labels else shared.get(row.label, step))
        for row, step in rows
    ]


def next_step(row: RankedLabel, target_f1: float, findings: Counter[str], pairs: Mapping[tuple[str, ...], int]) -> Step:
    """Choose the next step of a label."""
    if row.verdict == "ready":
        return NOTHING
    best = max(removable(row, findings, pairs), key=lambda step: step.removes, default=READ)
    # Too few test spans; or the label may be good enough, but its interval is too wide, and no rule for a pair is due.
    if row.verdict in UNDECIDED or ((row.scores.f or 0) >= target_f1 and not best.labels):
        return MORE_TEST
    return best


def scale_findings(
    findings: Mapping[str, Counter[str]], metrics: Metrics, merge: Ledger, shares: Shares
) -> dict[str, Counter[str]]:
    """Scale the findings, in train and dev, to the texts with errors, and by their precision."""
    texts = sum(n for split, n in merge.texts.items() if split != "test")
    boundaries, others = (share * metrics.to_learn[1].texts / texts if texts else share for share in shares)
    return {
        label: Counter(
            {kind: round(n * (boundaries if kind == WRONG_BOUNDARIES else others)) for kind, n in kinds.items()}
        )
        for label, kinds in findings.items()
    }


def removable(row: RankedLabel, findings: Counter[str], pairs: Mapping[tuple[str, ...], int]) -> list[Step]:
    """List the steps that may remove errors of a label, each error by one of them; too few may be chance.

    findings (Counter): the check's, by kind, scaled to the texts with errors; each explains at most one error. More
        texts don't fix errors caused by wrong or missing annotation.
    pairs (Mapping): wrong labels by pair; a rule for both labels removes errors that no finding explains.
    """
    mistakes, causes = row.mistakes, Counter(row.mistakes.causes)
    boundaries, either = causes["boundaries"], causes["label"] + mistakes.taken + causes["inconsistent"]
    contradicted = causes["unannotated"] + causes["other_label"] + mistakes.spurious
    moved = min(boundaries, findings[WRONG_BOUNDARIES])
    if moved >= MIN_BOUNDARIES_SHARE * boundaries:  # the check finds only the surest ones, and no text teaches a policy
        moved = boundaries
    fixed = min(contradicted + either, findings.total() - findings[WRONG_BOUNDARIES])
    teachable = causes["seen"] + causes["unseen"] + causes["overlapped"]
    unexplained = min(either, contradicted + either - fixed)
    learned = teachable + boundaries - moved + unexplained
    if teachable <= MIN_TEACHABLE_SHARE * row.total:
        learned = 0
    removes = {LABEL_MORE: learned, FIX_CASES: fixed, BOUNDARIES: moved, SPLIT: causes["misaligned"]}
    steps = [step._replace(removes=n) for step, n in removes.items()]
    confused = [(pair, min(n, unexplained)) for pair, n in pairs.items() if row.label in pair]
    steps += [Step(f"agree on {' / '.join(pair)}", removes=n, labels=pair) for pair, n in confused]
    return [step for step in steps if step.removes >= max(MIN_REMOVED, MIN_REMOVED_SHARE * row.total)]


def format_f(metrics: Metrics) -> str:
    """Format F1 of all spans, with its interval."""
    scores = metrics.all_gold
    if scores.f is None or not scores.support:
        return "not scored"
    few = metrics.few_units(scores)
    between = f" ({few}: no interval)" if few else ""
    if scores.f_low is not None:
        between = f" ({scores.f_low:.3f} to {scores.f_high:.3f})"
    return f"{scores.f:.3f}{between}"
