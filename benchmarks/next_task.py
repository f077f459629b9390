"""The report's advice, replayed on gold: which annotation teaches more in equal hours, and do the forecasts hold?

    python -m benchmarks.next_task --corpus assets/wnut2020_wlp

In each round, one annotates random texts in full, one annotates them only for the label that *Next* would name first,
and one annotates the first texts of `export` (docs/benchmarks.md). Each round trains `cpu` from the beginning. A corpus
of one label has no label by label.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import typer

from benchmarks.binary_answers import WORDS_PER_MINUTE, Data, read_data
from benchmarks.measure import Cell, spread, write_result
from benchmarks.public import Task, merge_tasks, write_rows
from labelwise.corpus.ledger import Ledger
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.predict import predict_texts
from labelwise.evaluate.scores import Metrics
from labelwise.export.export_corpus import export
from labelwise.report import forecasts
from labelwise.report.advice import PREDICT, Step, advise
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

# Silent reading of English non-fiction: Brysbaert 2019, https://doi.org/10.1016/j.jml.2019.104047. The rest of the time
# for annotating in full goes to spans, equally; one label takes the reading, and its spans' share.
READ_PER_MINUTE = 238
STEPS = 150  # of each training
ROUNDS = 5
WAYS = ("random texts", "label by label", "least certain texts")
COLUMNS = {"corpus": "", "annotated": "", "minutes": ",", "texts": ",", "seeds": ",", "F1": ".3f", "macro F1": ".3f"}
COLUMNS |= {"gain over random texts, F1": "", "forecasts that held": ""}
Answers = dict[str, list[Task]]  # by label, "" for all


class Trained(NamedTuple):
    """A pipeline's folder, its scores, and its corpus's merge."""

    model: Path
    metrics: Metrics
    merge: Ledger


class Round(NamedTuple):
    """Texts annotated so far, F1 and macro F1 on test, and whether the forecast held; None if it wasn't scored."""

    texts: int
    f1: float
    macro_f1: float
    held: bool | None = None


def minutes_of(task: Task, label: str, per_span: float) -> float:
    """Compute the minutes of annotating a text for a label, or for all."""
    spans = sum(label in ("", span["label"]) for span in task["spans"])
    return len(task["text"].split()) / READ_PER_MINUTE + spans * per_span


def take(tasks: Sequence[Task], label: str, per_span: float, minutes: float) -> list[Task]:
    """Return the first texts that fit into the minutes."""
    chosen: list[Task] = []
    for task in tasks:
        minutes -= minutes_of(task, label, per_span)
        if minutes < 0:
            break
        chosen.append(task)
    return chosen


def merge_answers(data: Data, start: int, more: Answers, folder: Path) -> tuple[Path, Ledger]:
    """Merge the first texts of train and further ones, dev and test."""
    datasets: dict[str, list[Task]] = {}
    entries: list[dict[str, Any]] = []
    splits = {"train": data.train[:start], "dev": data.dev, "test": data.test}
    every = [(name, name, "", rows) for name, rows in splits.items()]
    every += [(f"more-{label or 'all'}", "train", label, rows) for label, rows in more.items()]
    for name, split, label, rows in every:
        labels = [label] if label else data.labels
        datasets[name] = [
            {**task, "spans": [span for span in task["spans"] if span["label"] in labels]} for task in rows
        ]
        entries.append({"name": name, "labels": labels, "kind": "complete", "split": split})
    return merge_tasks(datasets, entries, folder, coverage="by-label")


def train(data: Data, start: int, more: Answers, folder: Path, seed: int, steps: int = STEPS) -> Trained:
    """Merge, train, and score dev and test."""
    corpus, merge = merge_answers(data, start, more, folder)
    config = TrainingConfig(default_config("cpu"), corpus, seed=seed, max_steps=steps)
    train_pipeline(config, folder / "model", folder / "curve.tsv")
    metrics = evaluate_pipeline(folder / "model", corpus / "test", dev=corpus / "dev").metrics
    metrics.pipeline_digest = folder.name
    return Trained(folder / "model", metrics, merge)


def next_step(trained: Trained, *, in_full: bool) -> Step:
    """Return the report's step for more texts: in full, or for the label whose errors they remove most."""
    rows = advise(trained.metrics, None, "gpu", 0.8, {}, trained.merge).rows
    steps = [step.of(row.label) for row, step in rows if step.command == PREDICT]
    if in_full:
        return Step("annotate more texts in full", PREDICT, sum(step.removes for step in steps))
    return max(steps, key=lambda step: step.removes)


def rank(trained: Trained, unannotated: Sequence[Task], folder: Path) -> list[Task]:
    """Sort texts as an export of their predictions does."""
    folder.mkdir()
    write_rows(folder / "raw.jsonl", [{"text": task["text"]} for task in unannotated])
    for _ in predict_texts(trained.model, [folder / "raw.jsonl"], folder / "predicted.jsonl"):
        pass
    export(folder / "predicted.jsonl", folder / "asked", "prodigy")
    tasks = {task["text"]: task for task in unannotated}
    rows = map(json.loads, (folder / "asked/all.jsonl").read_text(encoding="utf8").splitlines())
    return [tasks[row["text"]] for row in rows]


def run_seed(corpus: Path, folder: Path, seed: int, start: int, minutes: int) -> dict[str, list[Round]]:
    """Annotate and train in rounds, each way.

    RETURNS (dict): rounds by way; an earlier call's, if it has ended.
    """
    file = folder / "scores.json"
    if file.exists():
        return {
            way: [Round(*way_rounds) for way_rounds in rounds] for way, rounds in json.loads(file.read_bytes()).items()
        }
    folder.mkdir(parents=True)
    data = read_data(corpus, folder, seed)
    start = min(start, len(data.train) // 2)
    words = sum(len(task["text"].split()) for task in data.train)
    spans = sum(len(task["spans"]) for task in data.train)
    per_span = words * (1 / WORDS_PER_MINUTE - 1 / READ_PER_MINUTE) / spans
    began = train(data, start, {}, folder / "start", seed)
    scores: dict[str, list[Round]] = {}
    for way in WAYS if len(data.labels) > 1 else (WAYS[0], WAYS[2]):
        trained, more = began, defaultdict[str, list[Task]](list)
        rows = scores[way] = [Round(0, *f1_of(trained))]
        for number in range(1, ROUNDS + 1):
            step = next_step(trained, in_full=way != "label by label")
            label = "".join(step.labels)
            done = [task["text"] for task in more[label]]
            unannotated = [task for task in data.train[start:] if task["text"] not in done]
            if way == "least certain texts" and unannotated:
                unannotated = rank(trained, unannotated, folder / f"{way}, {number}, ranked")
            spent = sum(minutes_of(task, done_task, per_span) for done_task, tasks in more.items() for task in tasks)
            new = take(unannotated, label, per_span, number * minutes - spent)
            more[label] += new
            with patch.object(forecasts, "MAX_ASKED", len(new)):
                gain = forecasts.forecast(step, trained.metrics, trained.merge, {}, None)
            trained = train(data, start, more, folder / f"{way}, {number}", seed)
            settled = forecasts.settle([gain] if gain else [], trained.metrics, trained.merge, {})
            held = settled[0].held if settled else None
            rows.append(Round(sum(map(len, more.values())), *f1_of(trained), held))
            print(seed, way, number, label, len(new), rows[-1], gain and gain.interval, flush=True)
    file.write_text(json.dumps(scores), encoding="utf8")
    return scores


def f1_of(trained: Trained) -> tuple[float, float]:
    """Return F1 and macro F1 on test."""
    scores = trained.metrics.all_gold
    return scores.f or 0, scores.macro.f or 0


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/next"),
    start: Annotated[int, typer.Option(help="Fully annotated texts at the start, at most half of all")] = 100,
    minutes: Annotated[int, typer.Option(help="Annotation of a round")] = 60,
    seeds: Annotated[int, typer.Option(help="Repetitions, each with other texts")] = 3,
    result: Annotated[str, typer.Option(help="Name of the result")] = "next_task",
) -> None:
    """Replay all rounds, and write the table."""
    rows: list[list[Cell]] = []
    for place in corpus:
        results = [run_seed(place, folder / f"{place.stem}-{seed}", seed, start, minutes) for seed in range(seeds)]
        for way in results[0]:
            for number in range(0 if way == WAYS[0] else 1, ROUNDS + 1):
                rounds, base = (
                    [result[way][number] for result in results],
                    [result[WAYS[0]][number] for result in results],
                )
                cells = [
                    spread([way_rounds.f1 for way_rounds in rounds]),
                    spread([way_rounds.macro_f1 for way_rounds in rounds]),
                ]
                gains = " ".join(f"{mine.f1 - other.f1:+.3f}" for mine, other in zip(rounds, base, strict=True))
                held = [way_rounds.held for way_rounds in rounds if way_rounds.held is not None]
                held_of_all = f"{sum(held)} of {len(held)}" if number else ""
                texts, name = median(way_rounds.texts for way_rounds in rounds), way if number else "start"
                gain = "" if way == WAYS[0] else gains
                rows.append([place.stem, name, number * minutes, texts, seeds, *cells, gain, held_of_all])
        write_result(result, COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)
