"""Forecasts: cost and gain of a report's tasks, and later the change of F1 that followed.

`metrics/forecasts/NAME.jsonl` has a row for each pipeline and task. The next pipeline's report adds the outcome:

1. A task is followed if the merge counts at least half of the texts or decisions that it asked for.
2. It is scored if no other task of the same report was followed, and the test set is the same. If the test set has
   changed, the texts in both count, where `compare` can read the earlier predictions.

Rows never name annotators or times. Git joins the rows of two branches (.gitattributes).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, log2
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.base.files import atomic
from labelwise.base.text import counted, decode_json
from labelwise.compare.train_curve import ALL, TrainCurve
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.tables import read_groups
from labelwise.evaluate.ranking import MAX_BORDERLINE
from labelwise.evaluate.scores import Metrics, Mistakes
from labelwise.report.advice import FIX, PREDICT, Step

FOLDER = Path("metrics/forecasts")
MAX_ASKED = 100  # texts or cases of a task
MIN_FOLLOWED = 0.5  # of these
MIN_GAPS = 20  # between answers, for their median
MAX_PAUSE = 600.0  # seconds: after a longer gap, another session begins
DECIDED = (Reason.CORRECTED, Reason.CONFIRMED, Reason.POLICY_QUESTION)
MARKER = re.compile(rb"(<{7}|\|{7}|={7}|>{7})( |$)")  # of a git conflict
Changes = Mapping[tuple[str, str], float | None]
Outcome = Literal["", "not followed", "other advice was followed, too", "the test set has changed", "scored"]


class Forecast(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The gain of a task, and its outcome.

    pipeline, by (str): digests of the report's pipeline, and of the next one; "" without one.
    label (str): "" for all.
    asked, count, added (int): texts or decisions to add, before, and added.
    f1 (float | None): F1 on test at the time.
    gain, interval: change of F1 on test, if it can be estimated.
    test (str): `split_digest` of the test set.
    change (float | None): of F1 since, if scored.
    """

    pipeline: str
    task: Literal["texts", "decisions"]
    label: str
    asked: int
    count: int
    f1: float | None = None
    gain: float | None = None
    interval: tuple[float, float] | None = None
    test: str
    by: str = ""
    outcome: Outcome = ""
    added: int = 0
    change: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return its key in a file."""
        return self.pipeline, self.task, self.label

    @property
    def held(self) -> bool | None:
        """Return whether the change of F1 is in the interval; None if unscored."""
        if self.change is None or self.interval is None:
            return None
        return self.interval[0] <= self.change <= self.interval[1]

    def describe(self, hours: str) -> str:
        """Describe cost and gain; empty without an interval."""
        if self.interval is None:
            return ""
        low, high = self.interval
        gain = f"at most {high:+.3f}"
        if self.gain is not None:
            gain = f"{self.gain:+.3f}, 95% interval {low:+.3f} to {high:+.3f}"
        cost = f"{counted(self.asked, self.task.removesuffix('s'))}{hours and f', {hours}'}"
        return f"{cost}; F1 of {self.label or 'all spans'} {gain}"

    def describe_outcome(self) -> str:
        """Describe the outcome."""
        label = f" of {self.label}" if self.label else ""
        asked = f"{self.asked:,} {'more texts' if self.task == 'texts' else 'decisions'}{label}: "
        if self.outcome == "not followed":
            return f"{asked}not followed ({self.added:,})"
        if self.change is None or self.interval is None:
            return f"{asked}followed ({self.added:,}), not scored: {self.outcome}"
        low, high = self.interval
        return f"{asked}followed ({self.added:,}), F1{label} {self.change:+.3f}, forecast {low:+.3f} to {high:+.3f}"


def count_done(merge: Ledger, task: str, label: str) -> int:
    """Count training texts complete for a label, or for all; or merged decisions."""
    if task == "decisions":
        return sum(merge.rows[reason] for reason in DECIDED)
    return merge.complete.get("train", Counter())[label] if label else merge.texts["train"] - merge.partly["train"]


def score_of(metrics: Metrics, label: str) -> float | None:
    """Return F1 on test of a label, as the page shows it, or of all spans."""
    if label in metrics.all_gold.labels:
        return metrics.shown(label, metrics.judging(label)).f
    return None if label else metrics.all_gold.f


def bound_gain(mistakes: Iterable[Mistakes], removes: int) -> float:
    """Bound the rise of F1 = 2 TP / (2 TP + FP + FN) by the removal of errors.

    An error is a false negative, a false positive, or both.
    """
    spans = [(n.right, n.gold, n.right + n.boundaries + n.taken + n.spurious) for n in mistakes]
    right, gold, predicted = (sum(column) for column in zip(*spans, strict=True))
    after = right + min(removes, gold - right)
    errors = max(0, gold - right - removes) + max(0, predicted - right - removes)
    return 2 * after / max(1, 2 * after + errors) - 2 * right / max(1, gold + predicted)


def forecast(
    step: Step, metrics: Metrics, merge: Ledger, cases: Mapping[str, int], learning: TrainCurve | None
) -> Forecast | None:
    """Forecast the gain of a task; None if its progress can't be counted.

    More texts bring the last doubling's gain for each doubling, if `train-curve` has measured it; the interval keeps
    its width, mostly that of the texts that score. Otherwise F1 changes by -MAX_BORDERLINE at least, as between
    two trainings, and at most as if a share of the errors that the task may remove is gone; see `bound_gain`. Of
    n texts and m more, the share is m / (n + m), as if errors fell as 1 / n, faster than most learning curves (Viering
    and Loog 2023, "The shape of learning curves: a review"); of cases, it is that of the reviewed ones.

    cases (Mapping[str, int]): suspected errors to decide, by label; "" for the random sample.
    """
    task: Literal["texts", "decisions"] = "texts" if step.command == PREDICT else "decisions"
    label, learned = "".join(step.labels[:1]), metrics.to_learn[1].mistakes
    count = count_done(merge, task, label)
    asked = min(MAX_ASKED, available := count if task == "texts" else cases.get(label, 0))
    if step.command not in (PREDICT, FIX) or len(step.labels) > 1 or not asked:
        return None
    gain = interval = None
    row = learning and (learning.labels.get(label) if label else learning.micro)
    change = row.changes[ALL] if row and task == "texts" else None
    if learning and change and change.difference is not None and change.low is not None and change.high is not None:
        gain = round(change.difference * log2(1 + asked / max(asked, learning.texts.get(ALL, 0))), 4)
        interval = gain + change.low - change.difference, gain + change.high - change.difference
    elif step.removes:
        removed = ceil(step.removes * asked / (available + asked * (task == "texts")))
        interval = -MAX_BORDERLINE, bound_gain([learned[label]] if label else learned.values(), removed)
    return Forecast(
        pipeline=metrics.pipeline_digest,
        task=task,
        label=label,
        asked=asked,
        count=count,
        f1=score_of(metrics, label),
        gain=gain,
        interval=interval and (round(interval[0], 4), round(interval[1], 4)),
        test=metrics.split_digest,
    )


def settle(rows: Sequence[Forecast], metrics: Metrics, merge: Ledger, common: Changes) -> list[Forecast]:
    """Add the outcome of forecasts, by a later pipeline's results.

    common (Mapping): changes of F1 on common test texts, by digest of the earlier pipeline and label.
    """
    added = [count_done(merge, row.task, row.label) - row.count for row in rows]
    followed = [n >= MIN_FOLLOWED * row.asked for row, n in zip(rows, added, strict=True)]
    tasks = Counter(row.pipeline for row, done in zip(rows, followed, strict=True) if done)
    settled = []
    for row, n, done in zip(rows, added, followed, strict=True):
        now, change = score_of(metrics, row.label), common.get((row.pipeline, row.label))
        if row.test == metrics.split_digest != "":
            change = None if now is None or row.f1 is None else round(now - row.f1, 4)
        outcome: Outcome = "scored" if change is not None else "the test set has changed"
        if not done or tasks[row.pipeline] > 1:
            outcome, change = "other advice was followed, too" if done else "not followed", None
        about = {"by": metrics.pipeline_digest, "outcome": outcome, "added": n, "change": change}
        settled.append(msgspec.structs.replace(row, **about))
    return settled


def read_forecasts(file: Path) -> list[Forecast]:
    """Read forecasts, sorted; of two equal keys after a git merge, the row with an outcome counts.

    RAISES (InputError): if a row isn't a forecast.
    """
    newest: dict[tuple[str, str, str], tuple[bool, bytes, Forecast]] = {}
    for number, line in enumerate(file.read_bytes().splitlines() if file.is_file() else (), 1):
        if line.strip() and not MARKER.match(line):
            row = decode_json(line, Forecast, f"{file}:{number}: not a forecast", "delete the line")
            candidate = (not row.by, line, row)
            newest[row.key] = min(newest.get(row.key, candidate), candidate, key=lambda item: item[:2])
    return [newest[key][2] for key in sorted(newest)]


def update_forecasts(
    file: Path, new: Sequence[Forecast], metrics: Metrics, merge: Ledger, common: Changes
) -> list[Forecast]:
    """Add outcomes to the forecasts of earlier pipelines, and this one's forecasts, once; return all forecasts.

    RAISES (InputError): if a row isn't a forecast, or another process is writing the file.
    """
    rows = read_forecasts(file)
    if any(metrics.pipeline_digest in (row.pipeline, row.by) for row in rows) or not (rows or new):
        return rows
    rows = [row for row in rows if row.by] + settle([row for row in rows if not row.by], metrics, merge, common)
    rows = sorted([*rows, *new], key=lambda row: row.key)
    with atomic(file) as [path]:
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return rows


def measure_seconds(corpus: Path) -> dict[frozenset[str], float]:
    """Compute the median gap between an annotator's answers in a session, by covered labels.

    For display only: it is a person's pace. Labels with fewer gaps than MIN_GAPS are missing.
    """
    names = ["dataset", "who", "when", "kind", "covered"]
    tables = [group.rows.filter(pc.is_valid(group.rows["when"])) for group in read_groups(corpus, columns=names)]
    rows = pa.concat_tables(tables).select(names).sort_by([(name, "ascending") for name in names[:3]]).to_pydict()
    gaps_of: dict[frozenset[str], list[float]] = {}
    before = None
    for dataset, who, when, kind, labels in zip(*rows.values(), strict=True):
        gap = when - before[1] if before and before[0] == (dataset, who) else 0
        if kind == "complete" and labels and 0 < gap <= MAX_PAUSE:
            gaps_of.setdefault(frozenset(labels), []).append(gap)
        before = (dataset, who), when
    return {labels: float(np.median(gaps)) for labels, gaps in gaps_of.items() if len(gaps) >= MIN_GAPS}


def say_hours(seconds: Mapping[frozenset[str], float], labels: Iterable[str], texts: int) -> str:
    """Format the time to annotate `texts` texts; "" if a label's answers have no times.

    Labels that were annotated together take the time of one answer.
    """
    asked, sets = frozenset(labels), set()
    for label in asked:
        if not (having := [group for group in seconds if label in group]):
            return ""
        sets.add(min(having, key=lambda group: (len(group - asked), -len(group & asked), sorted(group))))
    minutes = texts * sum(seconds[group] for group in sets) / 60
    short = f"about {counted(max(1, round(minutes)), 'minute')}"
    return short if minutes < 60 else f"about {round(minutes / 30) / 2:g} hours"
