"""*Fix*, replayed on gold with planted errors: the gain of reviewing suspected errors, in equal minutes.

    python -m benchmarks.fix_errors --corpus assets/wnut2020_wlp

Half of the texts of train are annotated, with planted errors, as in dev; test is clean. Each way trains `cpu` again:

    cases           review the cases of `check`, in the order of the report
    random texts    correct random texts
    new texts       annotate new texts in full, without errors

A case is accepted if its proposal is gold, and its annotated span isn't. If the cases end early, random texts follow. A
corrected text takes its reading, and, for each planted error, the time of annotating a span.
"""

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import msgspec
import typer

from benchmarks.annotators import shift, word_places
from benchmarks.binary_answers import ANSWERS_PER_MINUTE, WORDS_PER_MINUTE, read_data
from benchmarks.measure import Cell, mean_interval, spread, write_result
from benchmarks.next_task import READ_PER_MINUTE, Trained, f1_of, merge_answers, take, train
from benchmarks.public import Task
from labelwise.base.text import SpanKey, text_key
from labelwise.check.check_corpus import check
from labelwise.report.advice import advise
from labelwise.report.review_queue import Case, ReviewQueue

STEPS = 100  # of each training
WRONG = 0.05  # share of the spans with a planted error
BASE = "random texts"
CASES = "cases"
WAYS = ("no errors", "all errors", BASE, CASES, "new texts")
COLUMNS = {"corpus": "", "way": "", "seeds": ",", "cases": ",", "accepted": ",", "texts": ",", "errors": ","}
COLUMNS |= {"corrected": ",", f"more than {BASE}": "+.1%", "from": "+.1%", "to": "+.1%"}
COLUMNS |= {"trainings": ",", "F1": ".3f", f"gain over {BASE}, F1": ""}
Annotation = dict[str, set[SpanKey]]  # spans by text


class Planted(NamedTuple):
    """A planted error: a text, its right span, and the wrong span in its place, if any."""

    text: str
    right: SpanKey
    wrong: set[SpanKey]

    def is_corrected(self, annotation: Annotation) -> bool:
        """Return whether an annotation has the right span, and no wrong one."""
        return self.right in annotation[self.text] and annotation[self.text].isdisjoint(self.wrong)


class Outcome(NamedTuple):
    """Numbers of reviewed cases and texts, planted and corrected errors, and F1 on test, if trained."""

    cases: int
    accepted: int
    texts: int
    errors: int
    corrected: int
    f1: float | None


class Kept(msgspec.Struct):
    """Outcomes by way, CPU seconds, and errors on dev of labels that aren't ready."""

    outcomes: dict[str, Outcome] = {}
    seconds: float = 0
    costs: dict[str, int] = {}


def spans_of(tasks: Iterable[Task]) -> Annotation:
    """Return spans by text."""
    return {task["text"]: {(span["start"], span["end"], span["label"]) for span in task["spans"]} for task in tasks}


def as_tasks(tasks: Iterable[Task], spans: Annotation) -> list[Task]:
    """Return tasks with other spans."""
    names = ("start", "end", "label")
    return [
        {"text": text, "spans": [dict(zip(names, span, strict=True)) for span in sorted(spans[text])]}
        for text in (task["text"] for task in tasks)
    ]


def plant(gold: Annotation, labels: Sequence[str], rng: random.Random) -> list[Planted]:
    """Delete, relabel or move some spans; one label can't be relabeled."""
    planted = []
    for text, spans in gold.items():
        words = [*word_places(text)]
        for start, end, label in sorted(spans):
            if rng.random() < WRONG:
                ways = [set(), {shift(words, (start, end, label), rng)}]
                if others := [other for other in labels if other != label]:
                    ways.append({(start, end, rng.choice(others))})
                planted.append(Planted(text, (start, end, label), rng.choice(ways) - spans))
    return planted


def with_errors(gold: Annotation, planted: Iterable[Planted]) -> Annotation:
    """Apply planted errors to gold."""
    annotation = {text: {*spans} for text, spans in gold.items()}
    for text, right, wrong in planted:
        annotation[text] = annotation[text] - {right} | wrong
    return annotation


def find_costs(trained: Trained) -> dict[str, int]:
    """Count the errors of each label that isn't ready; they order the report's cases."""
    rows = advise(trained.metrics, None, "cpu", 0.8, {}, trained.merge).rows
    return {row.label: row.total for row, _ in rows if row.verdict != "ready"}


def list_cases(corpus: Path, out: Path, costs: Mapping[str, int]) -> list[Case]:
    """Check a corpus, and list the cases as the report does."""
    _, findings = check(corpus, out)
    queue = ReviewQueue([msgspec.to_builtins(finding) for finding in findings])
    return [case for case in queue.choose(costs) if case["listed"]]


def review(cases: Iterable[Case], annotation: Annotation, gold: Annotation) -> int:
    """Answer cases by gold, and change the annotation; return the number of accepted ones."""
    texts, accepted = {text_key(text).hex(): text for text in annotation}, 0
    for case in cases:
        text = texts[case["key"]]
        current, proposed = ({tuple(case[name])} if case[name] else set() for name in ("current", "proposed"))
        if current <= annotation[text] - gold[text] and proposed <= gold[text]:
            annotation[text] = annotation[text] - current | proposed
            accepted += 1
    return accepted


def correct(texts: Sequence[str], minutes: float, annotation: Annotation, gold: Annotation, per_span: float) -> int:
    """Correct the first texts that fit into the minutes; return their number."""
    for number, text in enumerate(texts):
        minutes -= len(text.split()) / READ_PER_MINUTE + len(gold[text] - annotation[text]) * per_span
        if minutes < 0:
            return number
        annotation[text] = gold[text]
    return len(texts)


def run_seed(corpus: Path, folder: Path, seed: int, minutes: int, costs: Mapping[str, int] | None) -> Kept:
    """Review or annotate, each way, and train; skip ways that an earlier call has ended.

    costs (Mapping[str, int] | None): another seed's, to count corrections without training; see `find_costs`.
    """
    file = folder / "kept.json"
    state = msgspec.json.decode(file.read_bytes(), type=Kept) if file.exists() else Kept()
    ways = [way for way in (WAYS if costs is None else WAYS[1:-1]) if way not in state.outcomes]
    if not ways:
        return state
    folder.mkdir(parents=True, exist_ok=True)
    data, rng = read_data(corpus, folder, seed), random.Random(seed)
    half, words = len(data.train) // 2, sum(len(task["text"].split()) for task in data.train)
    spans = sum(len(task["spans"]) for task in data.train)
    per_span = words * (1 / WORDS_PER_MINUTE - 1 / READ_PER_MINUTE) / spans
    gold = spans_of([*data.train[:half], *data.dev])
    planted = plant(gold, data.labels, rng)
    texts = rng.sample([*gold], len(gold))
    for way in ways:
        began, annotation, new = time.process_time(), with_errors(gold, planted), list[Task]()
        cases, accepted, corrected = list[Case](), 0, 0
        if way == "no errors":
            annotation = gold
        elif way == "new texts":
            new = take(data.train[half:], "", per_span, minutes)
        elif way != "all errors":
            if way == CASES:
                listed = list_cases(folder / "all errors/corpus", folder / "check", state.costs)
                cases = listed[: minutes * ANSWERS_PER_MINUTE]
                accepted = review(cases, annotation, gold)
            corrected = correct(texts, minutes - len(cases) / ANSWERS_PER_MINUTE, annotation, gold, per_span)
        right, f1 = sum(error.is_corrected(annotation) for error in planted), None
        data_of_way = data._replace(train=as_tasks(data.train[:half], annotation), dev=as_tasks(data.dev, annotation))
        if costs is None:
            trained = train(data_of_way, half, {"": new} if new else {}, folder / way, seed, STEPS)
            f1, _ = f1_of(trained)
            state.costs = find_costs(trained) if way == "all errors" else state.costs
        elif way == "all errors":
            merge_answers(data_of_way._replace(test=data.test[:1]), half, {}, folder / way)  # check leaves test out
            state.costs = {**costs}
        state.outcomes[way] = Outcome(len(cases), accepted, corrected + len(new), len(planted), right, f1)
        state.seconds += time.process_time() - began
        file.write_bytes(msgspec.json.encode(state))
        print(corpus.stem, seed, way, state.outcomes[way], flush=True)
    return state


def make_rows(name: str, outcomes: Sequence[dict[str, Outcome]]) -> list[list[Cell]]:
    """Make the rows of a corpus, or of all: medians, and mean gains with their interval."""
    rows: list[list[Cell]] = []
    for way in WAYS:
        having = [(by_way[way], by_way[BASE]) for by_way in outcomes if way in by_way]
        *numbers, _ = zip(*(mine for mine, _ in having), strict=True)
        more = [(mine.corrected - base.corrected) / mine.errors for mine, base in having]
        interval = mean_interval(more) if way == CASES else (None, None, None)
        f1 = [(mine.f1, base.f1) for mine, base in having if mine.f1 is not None and base.f1 is not None]
        gains = "" if way == BASE else " ".join(f"{mine - base:+.3f}" for mine, base in f1)
        cells = [len(f1), spread([mine for mine, _ in f1]), gains]
        rows.append([name, way, len(having), *map(median, numbers), *interval, *cells])
    return rows


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/fix"),
    minutes: Annotated[int, typer.Option(help="Minutes of review; the report lists the cases of about 20")] = 20,
    seeds: Annotated[int, typer.Option(help="Repetitions, each with other texts and errors")] = 3,
    trained: Annotated[int, typer.Option(help="Repetitions that train; the others count corrections")] = 3,
) -> None:
    """Replay all, and write the table."""
    states: dict[tuple[Path, int], Kept] = {}
    for seed in range(seeds):
        for place in corpus:
            costs = states[place, 0].costs if seed >= trained else None
            states[place, seed] = run_seed(place, folder / f"{place.stem}-{seed}", seed, minutes, costs)
    rows = [
        row
        for place in corpus
        for row in make_rows(place.stem, [state.outcomes for (origin, _), state in states.items() if origin == place])
    ]
    rows += make_rows("all", [state.outcomes for state in states.values()]) if len(corpus) > 1 else []
    spent = sum(state.seconds for state in states.values()) / 60
    n = sum(outcome.f1 is not None for state in states.values() for outcome in state.outcomes.values())
    note = f"{n} trainings of {STEPS} steps; {spent:.0f} minutes of CPU time"
    write_result("fix_errors", COLUMNS, rows, note=note)


if __name__ == "__main__":
    typer.run(main)
