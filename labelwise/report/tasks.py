"""What to do next. An undertrained pipeline is trained longer, before anything else; see `train_longer`.

For each label, its errors that cost the most decide:

- missed, and train never marks such words: annotate more texts; but if the CPU pipeline finds hardly any of those
  words, a transformer or word vectors.
- missed, and contradicted by train, more than a hundredth of gold: fix annotations.
- spurious: look at what is found but not marked; often it is an annotation that is missing.
- wrong boundaries: decide where spans begin and end.
- missed, though train marks the words variously, and hardly found though a pipeline sees their context: decide which
  of them count.
- missed, though train marks the words: leave it, that is for the pipeline to learn.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

from labelwise.common.code import command_line
from labelwise.common.wording import counted
from labelwise.corpus.merge_counts import MergeCounts
from labelwise.corpus.tasks import file_names
from labelwise.evaluate.ranking import FEW, RankedLabel, rank_labels, texts_needed
from labelwise.evaluate.results import Table
from labelwise.evaluate.scores import MARKINGS, Details, Found, Metrics

FIRST = 3  # tasks
AT_A_TIME = 50  # texts, or findings, of a task
RANDOM = 100  # test texts that are annotated anew for a label
SECONDS = 6  # for a span, by default
CONTRADICTED = 0.01  # of the spans in test, from which annotations are to be fixed
LEAST = 3  # contradicted spans
MANY = 0.2  # of those missed
WELL_FOUND = 0.9  # of the words that train never marks, from which more texts aren't needed
FEW_FOUND = 0.25  # of the words that train never marks, below which more texts hardly help
INCONSISTENT = 0.6  # of the words that train marks variously, below which context doesn't explain it
KNOWN = 10  # of those at least
TRAINED = 0.5  # of the words that train marks alike, below which a pipeline is undertrained
RISING = 0.005  # what the last evaluation on dev must add to F1, from which another is worth it
LONGER = 2  # times the steps
FIX = "weasel run fix"
EXPORT = f"{command_line('export')} training/cpu/raw.jsonl to-annotate --format prodigy-by-label"
MORE_TEXTS = f"weasel run predict && {EXPORT}"


class Task(NamedTuple):
    """What to do about a label.

    do (str): in a few words.
    why (str): the numbers that speak for it.
    file (str): the work list that the command writes; empty if there is none.
    command (str): empty if there is nothing to run.
    time (str): that it takes; empty if nobody can tell.
    """

    label: str
    do: str
    why: str
    file: str = ""
    command: str = ""
    time: str = ""

    def line(self) -> str:
        """Put it into a line, with its command."""
        about = f", {self.label}" if self.label else ""
        return f"First{about}: {self.do}{': ' if self.command else ''}{self.command}"


class LabelRow(NamedTuple):
    """A row of the table of labels.

    found (list[Found]): of the words that train marks alike, variously, and never.
    """

    ranked: RankedLabel
    found: list[Found]
    task: Task


class Pace(NamedTuple):
    """How long annotation takes.

    spans (float): of the label in a text, at least 1.
    seconds (int): of an answer about a text, as data sets tell; 0 if none does.
    """

    spans: float = 1.0
    seconds: int = 0

    def tell(self, texts: int, spans: float) -> str:
        """Tell the time that so many texts take, of each of which so many spans are looked at."""
        minutes = counted(ceil(texts * (self.seconds or spans * SECONDS) / 60), "minute")
        return f"{minutes} at {f'{self.seconds} s a text' if self.seconds else f'{SECONDS} s a span'}"


def list_labels(
    metrics: Metrics,
    details: Details | None,
    merge: MergeCounts | None = None,
    pipeline: str = "cpu",
) -> list[LabelRow]:
    """List the labels, the one that costs the most first, each with what to do.

    pipeline (str): "cpu" or "gpu", the pipeline that was evaluated.
    """
    ranked = rank_labels(metrics)
    files = file_names([row.label for row in ranked])
    found = details.familiarity if details else None
    total = sum(found.contradicted.values()) if found else 0
    # Where errors are everywhere, a single one of a label is no chance.
    least = 1 if total > CONTRADICTED * (metrics.all_gold.support or 0) else LEAST
    rows = []
    for row in ranked:
        by_marking = found.labels.get(row.label, {}) if found else {}
        contradicted = found.contradicted.get(row.label, 0) if found else 0
        is_noisy = contradicted >= max(least, CONTRADICTED * (row.scores.support or 0))
        marked = [by_marking.get(marking, Found()) for marking in MARKINGS]
        pace = Pace(max(1.0, (row.scores.support or 0) / max(1, metrics.texts)), _seconds(row.label, merge))
        task = choose(row, marked, is_noisy * contradicted, files[row.label], pace, pipeline)
        rows.append(LabelRow(row, marked, task))
    return rows


def _seconds(label: str, merge: MergeCounts | None) -> int:
    """Find the median time of an answer in data sets about a label; 0 if they have no times."""
    if merge is None:
        return 0
    covered = {name: merge.complete.get(name, {}) | merge.partial.get(name, {}) for name in merge.seconds}
    found = [merge.seconds[name] for name, labels in covered.items() if label in labels]
    return median_low(found) if found else 0


def choose(
    row: RankedLabel,
    found: Sequence[Found],
    contradicted: int,
    file: str,
    pace: Pace,
    pipeline: str = "cpu",
) -> Task:
    """Choose what to do about a label.

    found (Sequence[Found]): see `LabelRow`.
    contradicted (int): spans that train contradicts, if they are many.
    file (str): the name of its work lists.
    pipeline (str): "gpu" has a transformer already.
    """
    errors, label = row.errors, row.label
    if row.unjudged:
        judged = errors.right + errors.spurious + errors.boundaries
        why = f"{errors.unjudged:,} of its {errors.unjudged + judged:,} predictions can't be judged"
        do = f"annotate {RANDOM} random test texts for {label}, or declare it absent"
        return Task(label, do, why, f"training/check/test/{file}", FIX, pace.tell(RANDOM, pace.spans))
    review = f"the first {AT_A_TIME} findings: {pace.tell(AT_A_TIME, 1)}"
    all_of_it = errors.missed + errors.spurious + errors.boundaries
    if not all_of_it:
        return Task(label, "leave it", "no error")
    never = found[MARKINGS.index("never")]
    few_found = never.gold and never.found < FEW_FOUND * never.gold
    unseen = f"{never.found:,} of {never.gold:,} spans found whose words train never marks"
    groups = {
        "annotate": never.missed if never.found < WELL_FOUND * never.gold else 0,
        "look": errors.spurious,
        "decide": 2 * errors.boundaries,
        "leave": errors.missed - never.missed,
    }
    kind = max(groups, key=lambda name: groups[name])
    if contradicted > MANY * errors.missed:
        kind = "fix"
    tasks = f"training/check/tasks/{file}"
    match kind:
        case "fix":
            why = f"{contradicted:,} of {errors.missed:,} missed have words that train leaves unmarked"
            return Task(label, "fix annotations", why, tasks, FIX, review)
        case "look":
            why = f"{errors.spurious:,} spurious of {counted(all_of_it, 'error')}"
            return Task(label, "look at what is found but not marked", why, tasks, FIX, review)
        case "decide":
            why = f"{errors.boundaries:,} wrong boundaries of {counted(all_of_it, 'error')}"
            return Task(label, "decide where it begins and ends", why, tasks, FIX, review)
        case "annotate" if pipeline == "cpu" and few_found:
            return Task(label, "a transformer, or word vectors", f"only {unseen}", command="weasel run gpu")
        case "annotate":
            return Task(
                label,
                f"annotate {AT_A_TIME} more texts",
                unseen,
                f"to-annotate/{file}",
                MORE_TEXTS,
                pace.tell(AT_A_TIME, pace.spans),
            )
    variously = found[MARKINGS.index("variously")]
    if variously.gold >= KNOWN and variously.found < INCONSISTENT * variously.gold:
        why = f"only {variously.found:,} of {variously.gold:,} found whose words train marks variously"
        return Task(label, "decide which of its words count", why, tasks, FIX, review)
    return Task(label, "leave it", f"{errors.missed:,} missed of {row.scores.support or 0:,}")


def train_longer(details: Details | None, curve: Table, pipeline: str) -> Iterator[Task]:
    """Yield a task if a pipeline is undertrained: its scores say little of the annotations yet.

    It is if it finds fewer than half of the words that train marks alike, or if F1 on dev still rises: if the last
    evaluation is better than all before, by more than RISING, and by more than F1 ever fell between two of them.
    """
    by_label = details.familiarity.labels.values() if details else ()
    alike = [counts["alike"] for counts in by_label if "alike" in counts]
    gold, found = sum(one.gold for one in alike), sum(one.found for one in alike)
    *before, last = curve["score"]
    gain = last - max(before, default=last)
    why = ""
    if gold >= KNOWN and found < TRAINED * gold:
        why = f"only {found:,} of {gold:,} spans found whose words train marks alike"
    elif gain > max([RISING, *(earlier - later for earlier, later in pairwise(before))]):
        why = f"F1 on dev still rises: by {100 * gain:.1f} points at the last evaluation"
    if why:
        do = f"train longer ({pipeline}_steps: {LONGER * int(curve['step'][-1])} in project.yml)"
        yield Task("", do, why, command=f"weasel run {'all' if pipeline == 'cpu' else pipeline}")


def first_tasks(
    rows: Iterable[LabelRow],
    metrics: Metrics,
    details: Details | None = None,
    curve: Table | None = None,
    pipeline: str = "cpu",
) -> Iterator[Task]:
    """Yield the tasks that gain the most, of labels whose scores say something; or else more test texts.

    curve (Table | None): of the training on dev. An undertrained pipeline is trained longer first; see `train_longer`.
    """
    if curve and curve["step"]:
        yield from train_longer(details, curve, pipeline)
    useful = (row for row in rows if not row.ranked.few and row.ranked.points > 0 and row.task.command)
    tasks = [row.task for row, _ in zip(useful, range(FIRST), strict=False)]
    if needed := texts_needed(metrics):
        why = f"no label has {FEW} spans in test, so that nothing can be said of any"
        tasks.insert(0, Task("", f"annotate {counted(needed, 'test text')} more", why))
    yield from tasks


def open_lists(tasks: Iterable[Task], root: Path, lang: str, declared: Mapping[str, Sequence[str]]) -> Iterator[Task]:
    """Yield tasks; of one whose list a check has written, the command opens that in Prodigy.

    root (Path): the folder of the project.
    declared (Mapping): the labels of each data set: an answer that is saved there is about all of them.
    """
    for task in tasks:
        name = next((name for name, labels in declared.items() if task.label in labels), "")
        if task.command == FIX and name and (root / task.file).is_file():
            words = ["prodigy", "ner.manual", name, f"blank:{lang}", task.file, "--label", ",".join(declared[name])]
            yield task._replace(command=shlex.join(words))
        else:
            yield task


def verdicts(rows: Sequence[LabelRow], ship_at: float) -> dict[str, list[str]]:
    """List the labels by whether they may be used."""
    found: dict[str, list[Any]] = {"ship": [], "hold": [], "unknown": []}
    for row in rows:
        found[row.ranked.verdict(ship_at)].append(row.ranked.label)
    return found
