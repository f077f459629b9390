"""Forecasts of the report's tasks: what they cost and bring; and later, whether F1 changed as they said.

    {"pipeline": "0a5f…", "task": "texts", "label": "DOSE", "asked": 100, "count": 320, "f1": 0.61, "gain": 0.03,
     "low": 0.01, "high": 0.05, "test": "91c2…"}

`metrics/forecasts/NAME.jsonl` has a row for each pipeline and task. The next pipeline's report adds what came of it:

1. A task is followed if the merge counts at least half of the texts or decisions that it asked for.
2. It is scored if no other task of the same report was followed, and the test set is the same; if it has changed, by
   the texts that both have, where `compare` can read the earlier predictions.

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
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.text import DECODE_ERRORS, counted
from labelwise.compare.train_curve import ALL, TrainCurve
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import is_corpus
from labelwise.corpus.tables import read_groups
from labelwise.evaluate.ranking import MAX_BORDERLINE
from labelwise.evaluate.scores import Metrics, Mistakes
from labelwise.report.advice import FIX, PREDICT, Step

FOLDER = Path("metrics/forecasts")
MAX_ASKED = 100  # texts, or cases, of one task
MIN_FOLLOWED = 0.5  # of these
MIN_GAPS = 20  # between answers, for their median to be said
MAX_PAUSE = 600.0  # seconds: after a longer gap, another session begins
DECIDED = (Reason.CORRECTED, Reason.CONFIRMED, Reason.POLICY_QUESTION)
MARKER = re.compile(rb"(<{7}|\|{7}|={7}|>{7})( |$)")  # of a git conflict
TASKS = {PREDICT: "texts", FIX: "decisions"}
Outcome = Literal["", "not followed", "not alone", "other test set", "scored"]


class Forecast(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a task should bring, and what it brought.

    pipeline (str): digest of the pipeline whose report has the task.
    task (str): "texts" to annotate, or "decisions" about suspected errors.
    label (str): its label; "" for all.
    asked, count (int): the number to add, and the number at the time.
    f1 (float | None): F1 on test at the time.
    gain, low, high (float | None): the change of F1, where it can be estimated, and its interval.
    test (str): `split_digest` of the test set.
    by (str): digest of the next pipeline; "" if there is none yet.
    added (int): texts or decisions added since.
    change (float | None): the change of F1 since, if it is scored.
    """

    pipeline: str
    task: Literal["texts", "decisions"]
    label: str
    asked: int
    count: int
    f1: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    test: str
    by: str = ""
    outcome: Outcome = ""
    added: int = 0
    change: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What a file has once."""
        return self.pipeline, self.task, self.label

    @property
    def held(self) -> bool:
        """Whether the change of F1 is in the interval."""
        return None not in (self.low, self.change, self.high) and self.low <= self.change <= self.high  # type: ignore[operator]

    def describe(self, hours: str) -> str:
        """Write what it costs and brings; empty without an interval.

        hours (str): see `say_hours`; "" if they aren't known.
        """
        cost = [counted(self.asked, self.task.removesuffix("s")), *filter(None, [hours])]
        if self.low is None or self.high is None:
            return ""
        gain = f"at most {self.high:+.3f}"
        if self.gain is not None:
            gain = f"{self.gain:+.3f}, 95% interval {self.low:+.3f} to {self.high:+.3f}"
        return f"{', '.join(cost)}; F1 of {self.label or 'all spans'} {gain}"

    def describe_outcome(self) -> str:
        """Write what came of it."""
        of = f" of {self.label}" if self.label else ""
        asked = f"{self.asked:,} {'more texts' if self.task == 'texts' else 'decisions'}{of}"
        if self.outcome == "not followed":
            return f"{asked}: not followed ({self.added:,})"
        if self.change is None or self.low is None or self.high is None:
            others = {"not alone": "so was other advice", "other test set": "the test set has changed"}
            return f"{asked}: followed ({self.added:,}), not scored: {others.get(self.outcome, 'no forecast')}"
        interval = f"{self.low:+.3f} to {self.high:+.3f}"
        return f"{asked}: followed ({self.added:,}), F1{of} {self.change:+.3f}, forecast {interval}"


def count_done(merge: Ledger, task: str, label: str) -> int:
    """Count the training texts that are complete for a label, or for all; or the decisions that the merge knows."""
    if task == "decisions":
        return sum(merge.rows[reason] for reason in DECIDED)
    if label:
        return merge.complete.get("train", Counter())[label]
    return merge.texts["train"] - merge.partly["train"]


def score_of(metrics: Metrics, label: str) -> float | None:
    """Return F1 on test of a label, as the page shows it, or of all spans."""
    if not label:
        return metrics.all_gold.f
    return metrics.shown(label, metrics.judging(label)).f if label in metrics.all_gold.labels else None


def bound_gain(mistakes: Iterable[Mistakes], removes: int) -> float:
    """Compute by how much F1 rises at most if so many errors go, by F1 = 2 TP / (2 TP + FP + FN) before and after.

    An error is a false negative, a false positive, or both.
    """
    spans = [(one.right, one.gold, one.right + one.boundaries + one.taken + one.spurious) for one in mistakes]
    right, gold, predicted = (sum(column) for column in zip(*spans, strict=True))
    missed, false = gold - right, predicted - right
    after = right + min(removes, missed)
    errors = max(0, missed - removes) + max(0, false - removes)
    before = 2 * right / (gold + predicted) if gold + predicted else 0.0
    return (2 * after / (2 * after + errors) if after else 0.0) - before


def forecast(
    step: Step, metrics: Metrics, merge: Ledger, cases: Mapping[str, int], learning: TrainCurve | None
) -> Forecast | None:
    """Forecast what a task brings; None if its progress can't be counted.

    More texts bring the last doubling's gain for each doubling, if `train-curve` has measured it; the interval keeps
    its width, which is mostly that of the texts that score. Otherwise F1 changes by -MAX_BORDERLINE at least, by which
    two trainings differ, and at most as if a share of the errors that the task may remove is gone; see `bound_gain`. Of
    n texts and m more, the share is m / (n + m), as if errors fell as 1 / n, faster than most learning curves (Viering
    and Loog 2023, "The shape of learning curves: a review"); of cases, it is that of the reviewed ones.

    cases (Mapping[str, int]): suspected errors to decide, by label; "" for the random sample.
    """
    if step.command not in TASKS or len(step.labels) > 1 or not metrics.pipeline_digest:
        return None
    task, label = TASKS[step.command], "".join(step.labels)
    count = count_done(merge, task, label)
    asked = min(MAX_ASKED, available := count if task == "texts" else cases.get(label, 0))
    if not asked:
        return None
    gain = low = high = None
    learned = metrics.to_learn[1].mistakes
    row = learning and (learning.labels.get(label) if label else learning.micro)
    change = row.changes[ALL] if row and task == "texts" else None
    if learning and change and change.difference is not None and change.low is not None and change.high is not None:
        gain = change.difference * log2(1 + asked / max(asked, learning.texts.get(ALL, 0)))
        low, high = gain + change.low - change.difference, gain + change.high - change.difference
    elif step.removes:
        removed = ceil(step.removes * asked / (available + asked * (task == "texts")))
        low, high = -MAX_BORDERLINE, bound_gain([learned[label]] if label else learned.values(), removed)
    f1, test = score_of(metrics, label), metrics.split_digest
    bounds = [one if one is None else round(one, 4) for one in (f1, gain, low, high)]
    return Forecast(
        pipeline=metrics.pipeline_digest,
        task=task,  # type: ignore[arg-type]
        label=label,
        asked=asked,
        count=count,
        test=test,
        **dict(zip(("f1", "gain", "low", "high"), bounds, strict=True)),  # type: ignore[arg-type]
    )


def settle(
    rows: Iterable[Forecast], metrics: Metrics, merge: Ledger, common: Mapping[tuple[str, str], float | None]
) -> list[Forecast]:
    """Add what came of forecasts without an outcome, by the results of a later pipeline.

    common (Mapping): changes of F1 on the texts that two test sets have in common, by earlier pipeline and label.
    """
    rows = list(rows)
    added = {row.key: count_done(merge, row.task, row.label) - row.count for row in rows}
    followed = [row for row in rows if added[row.key] >= MIN_FOLLOWED * row.asked]
    settled = []
    for row in rows:
        now, change = score_of(metrics, row.label), common.get((row.pipeline, row.label))
        if row.test == metrics.split_digest != "":
            change = None if now is None or row.f1 is None else round(now - row.f1, 4)
        alone = sum(one.pipeline == row.pipeline for one in followed) == 1
        outcome: Outcome = "scored" if alone and change is not None else "other test set" if alone else "not alone"
        outcome = outcome if row in followed else "not followed"
        about = {"by": metrics.pipeline_digest, "outcome": outcome, "added": added[row.key]}
        settled.append(msgspec.structs.replace(row, **about, change=change if outcome == "scored" else None))
    return settled


def read_forecasts(file: Path) -> list[Forecast]:
    """Read the forecasts of a pipeline's name, sorted; of both sides of a git merge, rows with an outcome count.

    RAISES (InputError): if a row isn't a forecast.
    """
    found: dict[tuple[str, str, str], tuple[bool, bytes, Forecast]] = {}
    for number, line in enumerate(file.read_bytes().splitlines() if file.is_file() else (), 1):
        if not line.strip() or MARKER.match(line):
            continue
        try:
            row = msgspec.json.decode(line, type=Forecast)
        except DECODE_ERRORS as error:
            raise InputError(f"{file}:{number}: not a forecast ({error}); delete the line") from error
        found[row.key] = min(found.get(row.key, (True, line, row)), (not row.by, line, row), key=lambda one: one[:2])
    return [row for _, (_, _, row) in sorted(found.items())]


def update_forecasts(
    file: Path,
    new: Sequence[Forecast],
    metrics: Metrics,
    merge: Ledger,
    common: Mapping[tuple[str, str], float | None],
) -> list[Forecast]:
    """Settle the forecasts of earlier pipelines, add those of this one, and return all; a pipeline does that once.

    RAISES (InputError): if a row isn't a forecast, or another process is writing the file.
    """
    rows = read_forecasts(file)
    if any(metrics.pipeline_digest in (row.pipeline, row.by) for row in rows):
        return rows
    done = settle((row for row in rows if not row.by), metrics, merge, common)
    rows = sorted([*(row for row in rows if row.by), *done, *new], key=lambda row: row.key)
    if rows:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic(file) as [path]:
            path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return rows


def describe_record(rows: Sequence[Forecast]) -> str:
    """Count how often the interval held; empty if nothing was scored."""
    scored = [row for row in rows if row.outcome == "scored" and row.high is not None]
    return f"The intervals of forecasts held in {sum(row.held for row in scored)} of {len(scored)}." if scored else ""


def measure_seconds(corpus: Path) -> dict[frozenset[str], float]:
    """Compute the median gap between answers of one annotator in a session, by the labels that the answers cover.

    For display only: it is somebody's pace. Labels with fewer gaps than MIN_GAPS are missing.
    """
    if not is_corpus(corpus):
        return {}
    names = ["dataset", "who", "when", "kind", "covered"]
    tables = [group.rows.filter(pc.is_valid(group.rows["when"])) for group in read_groups(corpus, columns=names)]
    if not any(map(len, tables)):
        return {}
    rows = pa.concat_tables(tables).select(names).sort_by([(name, "ascending") for name in names[:3]])
    when = rows["when"].to_numpy()
    sources = [rows[name].fill_null("").to_numpy() for name in names[:2]]
    complete = pc.equal(rows["kind"], "complete").to_numpy()
    gaps = np.diff(when)
    kept = complete[1:] & (gaps > 0) & (gaps <= MAX_PAUSE)
    for column in sources:
        kept &= column[1:] == column[:-1]
    places = np.flatnonzero(kept)
    found: dict[frozenset[str], list[float]] = {}
    for labels, gap in zip(rows["covered"].take(pa.array(places + 1)).to_pylist(), gaps[places].tolist(), strict=True):
        found.setdefault(frozenset(labels or ()), []).append(gap)
    return {labels: float(np.median(some)) for labels, some in found.items() if labels and len(some) >= MIN_GAPS}


def say_hours(seconds: Mapping[frozenset[str], float], labels: Iterable[str], texts: int) -> str:
    """Write how long annotating so many texts takes; empty where the times of a label's answers are missing.

    Labels that were annotated together take the time of one answer.
    """
    wanted, sets = frozenset(labels), set()
    for label in wanted:
        if not (having := [one for one in seconds if label in one]):
            return ""
        sets.add(min(having, key=lambda one: (len(one - wanted), -len(one & wanted), sorted(one))))
    minutes = texts * sum(seconds[one] for one in sets) / 60
    if minutes < 60:
        return f"about {counted(max(1, round(minutes)), 'minute')}"
    return f"about {round(minutes / 30) / 2:g} hours"
