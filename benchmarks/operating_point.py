"""How often does test reach the precision or recall that an operating point was fitted for on dev?

    python -m benchmarks.operating_point assets/prodigy_jsonl/food_data.jsonl assets/wnut2020_wlp

Dev and test, equally large, are drawn again and again from HELD_OUT of each corpus's texts. A label counts on test if
dev says that the goal is reached; labels that share a point count together.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import typer
import yaml

from benchmarks.measure import Cell, write_result
from benchmarks.public import chance, read_tasks
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import read_settings
from labelwise.train.held_out import find_longest
from labelwise.train.reader import make_reference
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config
from spacy_per_label.operating_point import GOLD, PREDICTED, RIGHT, Goal, OperatingPoints

HELD_OUT = 0.6
GOALS: dict[str, dict[Literal["precision", "recall"], tuple[float, ...]]] = {
    "food_data": {"precision": (0.8,), "recall": (0.65,)},
    "": {"precision": (0.85, 0.9), "recall": (0.75,)},
}


def train(corpus: Path, folder: Path, steps: int) -> Path:
    """Merge a corpus and train on it, unless that is done; return the folder."""
    if not (folder / "model").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        tasks = [task for some in read_tasks(corpus, folder) for task in some]
        labels = sorted({span["label"] for task in tasks for span in task["spans"]})
        entries = []
        for name, split, held in (("train", "auto", False), ("test", "test", True)):
            own = (task for task in tasks if (chance("held", task["text"]) < HELD_OUT) == held)
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in own), encoding="utf8")
            entries.append({"name": name, "path": f"{name}.jsonl", "labels": labels, "split": split})
        (folder / "datasets.yml").write_text(yaml.safe_dump(entries), encoding="utf8")
        own_settings = {"dev_ratio": 0.2, "test_ratio": 0.0, "near_duplicates": "off"}
        settings = msgspec.structs.replace(read_settings(Path("project.yml")), **own_settings)
        merge_data([folder / "datasets.yml"], folder / "corpus", settings)
        recipe = TrainingConfig(default_config("cpu"), folder / "corpus", max_steps=steps)
        train_pipeline(recipe, folder / "model", folder / "curve.tsv")
    return folder


def predict(folder: Path, goal: Goal, texts: list[StoredDoc]) -> tuple[OperatingPoints, float]:
    """Return the pipeline's spans in texts, and words predicted per CPU second."""
    nlp = load_pipeline(folder / "model")
    ner: Any = nlp.get_pipe("ner")
    every = OperatingPoints(ner, dict.fromkeys(ner.labels, goal), find_longest(folder / "corpus"))
    ner.cfg["points"] = every.candidates
    began = time.process_time()
    docs = [doc for _, doc in predict_each(nlp, iter(texts), len)]
    seconds = time.process_time() - began
    for stored, doc in zip(texts, docs, strict=True):
        every.add(doc, make_reference(stored, nlp.vocab), stored.annotation.unit or None)
    return every, sum(map(len, texts)) / seconds


def part_of(every: OperatingPoints, units: list[list[int]]) -> OperatingPoints:
    """Return the texts of some units."""
    part = object.__new__(OperatingPoints)
    part.__dict__ |= every.__dict__
    numbers = [number for unit in units for number in unit]
    part.texts, part.gold = [every.texts[number] for number in numbers], [every.gold[number] for number in numbers]
    ends = np.cumsum([len(unit) for unit in units]).tolist()
    part.units = {end: list(range(end - len(unit), end)) for end, unit in zip(ends, units, strict=True)}
    return part


def draw_points(every: OperatingPoints, goal: Goal, draws: int) -> Iterator[tuple[float, float, float, float]]:
    """Yield precision and recall on test of each draw and point that reaches the goal on dev, and without points."""
    units = list(every.units.values())
    for number in range(draws):
        order = np.random.default_rng(number).permutation(len(units))
        dev, test = (part_of(every, [units[unit] for unit in some]) for some in np.array_split(order, 2))
        points = dev.fit()
        counts = test.count(np.array([points[name]["least"] for name in test.names])).sum(0)
        plain = test.count(np.full(len(test.names), 0.5 if goal.figure == "recall" else 0.0)).sum(0)
        groups: dict[Any, list[int]] = {}
        for label, name in enumerate(test.names):
            if points[name]["bound"] >= goal.value:
                groups.setdefault((points[name]["least"], points[name]["bound"]), []).append(label)
        for own in groups.values():
            rows = [table[own].sum(0) for table in (counts, plain)]
            if rows[0][PREDICTED] and rows[0][GOLD]:
                (p, r), (p0, r0) = ((row[RIGHT] / max(row[PREDICTED], 1), row[RIGHT] / row[GOLD]) for row in rows)
                yield p, r, p0, r0


def main(
    corpora: Annotated[list[Path], typer.Argument()],
    draws: int = 25,
    steps: int = 300,
    keep: Path | None = None,
) -> None:
    """Train once on each corpus, draw, and store the result."""
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for corpus in corpora:
            folder = train(corpus, (keep or Path(temporary)) / corpus.stem, steps)
            files = find_partitions(folder / "corpus/test")
            texts = [stored for file in files for stored in read_stored_docs(file)]
            for figure, goals in GOALS.get(corpus.stem, GOALS[""]).items():
                for value in goals:
                    goal = Goal(figure, value)
                    every, speed = predict(folder, goal, texts)
                    figures = np.array([*draw_points(every, goal, draws)])
                    own = figures[:, 0 if figure == "precision" else 1]
                    held = int((own >= value).sum())
                    rows.append([corpus.stem, len(texts), f"{figure} {value}", draws, len(own), held, held / len(own)])
                    rows[-1] += [*np.median(figures, 0).tolist(), speed]
    columns = {"corpus": "", "held-out texts": ",", "goal": "", "draws": ",", "points that reach it on dev": ","}
    columns |= {"reach it on test": ",", "share": ".0%", "precision": ".3f", "recall": ".3f"}
    columns |= {"precision without": ".3f", "recall without": ".3f", "words per CPU second": ",.0f"}
    write_result("operating_point", columns, rows)


if __name__ == "__main__":
    typer.run(main)
