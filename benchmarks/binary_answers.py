"""Answers to single predicted spans against full annotation, in equal seconds.

    python -m benchmarks.binary_answers --corpus assets/prodigy_jsonl/food_data.jsonl

Both begin with the same fully annotated texts. In each round, one annotator continues with random texts; the other
answers the first rows of `export --format prodigy-binary` for the remaining texts, equally many per label. Each round
trains `cpu` from the beginning.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer

from benchmarks.measure import Cell, spread, write_result
from benchmarks.public import Task, chance, merge_tasks, read_tasks, write_rows
from labelwise.corpus.tasks import file_names
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.predict import predict_texts
from labelwise.export.export_corpus import export
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

# Nine annotators of clinical texts and three labels, random sentences: the median of Table 4 in Wei et al. 2019,
# https://doi.org/10.1093/jamia/ocz102
WORDS_PER_MINUTE = 71.44
# The middle of the 10 to 30 that Montani gives: "Rapid NLP annotation through binary decisions, pattern bootstrapping
# and active learning", https://speakerdeck.com/inesmontani
ANSWERS_PER_MINUTE = 20
DEV = 0.1  # of the texts that aren't test
STEPS = 300  # of each training
ROUNDS = 3
COLUMNS = {"corpus": "", "annotated": "", "minutes": ",", "texts": ",", "answers": ",", "accepted": ".0%"}
COLUMNS |= {"seeds": ",", "F1": ".3f", "macro F1": ".3f", "gain over texts, F1": ""}


class Scores(NamedTuple):
    """The annotation so far, and F1 and macro F1 on test after training on it."""

    texts: int
    answers: int
    accepted: int
    f1: float
    macro_f1: float


class Data(NamedTuple):
    """Fully annotated tasks of each split, in random order, and their labels."""

    train: list[Task]
    dev: list[Task]
    test: list[Task]
    labels: list[str]


def read_data(corpus: Path, folder: Path, seed: int) -> Data:
    """Read a corpus; the seed orders train."""
    rest, test = read_tasks(corpus, folder)
    rest = [*{task["text"]: task for task in rest}.values()]
    dev = [task for task in rest if chance("dev", task["text"]) < DEV]
    train = [task for task in rest if chance("dev", task["text"]) >= DEV]
    random.Random(seed).shuffle(train)
    return Data(train, dev, test, sorted({span["label"] for task in (*rest, *test) for span in task["spans"]}))


def train(data: Data, texts: int, answers: Sequence[Task], folder: Path, seed: int) -> Scores:
    """Merge the first texts of train and the answers, train, and score test."""
    datasets = {"train": data.train[:texts], "dev": data.dev, "test": data.test}
    entries = [{"name": name, "labels": data.labels, "kind": "complete", "split": name} for name in datasets]
    if answers:
        datasets["answers"] = [*answers]
        entries.append({"name": "answers", "labels": data.labels, "kind": "binary", "split": "train"})
    corpus, _ = merge_tasks(datasets, entries, folder, coverage="by-label")
    model = folder / "model"
    config = TrainingConfig(default_config("cpu"), corpus, seed=seed, max_steps=STEPS)
    train_pipeline(config, model, folder / "curve.tsv")
    scores = evaluate_pipeline(model, corpus / "test").metrics.all_gold
    accepted = sum(row["answer"] == "accept" for row in answers)
    return Scores(texts, len(answers), accepted, scores.f or 0, scores.macro.f or 0)


def answer(data: Data, texts: int, before: Sequence[Task], model: Path, folder: Path, count: int) -> list[Task]:
    """Answer a pipeline's least certain spans in unannotated texts, except answered ones (`before`).

    count (int): answers to all labels, shared out equally.
    """
    folder.mkdir()
    raw = data.train[texts:]
    write_rows(folder / "raw.jsonl", [{"text": task["text"]} for task in raw])
    for _ in predict_texts(model, [folder / "raw.jsonl"], folder / "predicted.jsonl"):
        pass
    export(folder / "predicted.jsonl", folder / "asked", "prodigy-binary")
    gold = {(task["text"], span["start"], span["end"], span["label"]) for task in raw for span in task["spans"]}
    answered, answers = {row["_task_hash"] for row in before}, list[Task]()
    for number, name in enumerate(file_names(data.labels)[label] for label in data.labels):
        path = folder / "asked" / name
        rows = map(json.loads, path.read_text(encoding="utf8").splitlines() if path.exists() else ())
        new = [row for row in rows if row["_task_hash"] not in answered]
        for row in new[: count * (number + 1) // len(data.labels) - count * number // len(data.labels)]:
            (span,) = row["spans"]
            right = (row["text"], span["start"], span["end"], span["label"]) in gold
            answers.append({**row, "answer": "accept" if right else "reject", "_timestamp": 1})
    return answers


def run_seed(corpus: Path, folder: Path, seed: int, start: int, minutes: int) -> dict[tuple[int, str], Scores]:
    """Annotate and train in rounds, by both ways.

    RETURNS (dict): by minutes of annotation since the start, and way; an earlier call's, if it has ended.
    """
    file = folder / "scores.json"
    if file.exists():
        return {(passed, way): Scores(*score) for passed, way, *score in json.loads(file.read_bytes())}
    folder.mkdir(parents=True)
    data = read_data(corpus, folder, seed)
    scores = {(0, "start"): train(data, start, [], folder / "start", seed)}
    words = [len(task["text"].split()) for task in data.train]
    answers: list[Task] = []
    model = folder / "start/model"
    for passed in range(minutes, ROUNDS * minutes + 1, minutes):
        texts = start
        while texts < len(words) and sum(words[start : texts + 1]) <= passed * WORDS_PER_MINUTE:
            texts += 1
        scores[passed, "texts"] = train(data, texts, [], folder / f"texts-{passed}", seed)
        answers += answer(data, start, answers, model, folder / f"asked-{passed}", minutes * ANSWERS_PER_MINUTE)
        scores[passed, "answers"] = train(data, start, answers, folder / f"answers-{passed}", seed)
        model = folder / f"answers-{passed}/model"
    file.write_text(json.dumps([[*key, *score] for key, score in scores.items()]), encoding="utf8")
    return scores


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/answers"),
    start: Annotated[int, typer.Option(help="Fully annotated texts at the start")] = 50,
    minutes: Annotated[int, typer.Option(help="Annotation of a round")] = 10,
    seeds: Annotated[int, typer.Option(help="Repetitions, each with other texts")] = 3,
) -> None:
    """Simulate all rounds, and write the table."""
    rows: list[list[Cell]] = []
    for place in corpus:
        results = [run_seed(place, folder / f"{place.stem}-{seed}", seed, start, minutes) for seed in range(seeds)]
        for key in sorted(results[0], key=lambda key: (key[1] != "start", key[1], key[0])):
            texts, answers, accepted, *f1 = zip(*(result[key] for result in results), strict=True)
            share = sum(accepted) / sum(answers) if sum(answers) else None
            cells = [spread(score) for score in f1]
            passed, way = key
            gains = (
                [f"{result[key].f1 - result[passed, 'texts'].f1:+.3f}" for result in results]
                if way == "answers"
                else []
            )
            rows.append(
                [place.stem, way, passed, median(texts), median(answers), share, seeds, *cells, " ".join(gains)]
            )
        write_result("binary_answers", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)
