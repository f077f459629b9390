"""How much of a report's advice is true? Gold of real corpora is forgotten or spoiled, or training is cut short.

    python -m benchmarks.advice assets/litbank assets/wnut2020_wlp/train assets/materials_syntheses --seed 1

A third of the texts is held out. Advice is followed, and is true if that helps: training twice as long adds half a
point of F1; the texts held out improve the label that needs more; most of the cases to decide, and the labels to fix,
are those that were damaged; a label that is ready reaches the goal on the texts held out, too. Advice to annotate test
texts, or to leave a label, isn't judged.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import msgspec
import typer
import yaml

from benchmarks.measure import Cell, write_result
from benchmarks.public import Task, chance
from labelwise.check.run import check
from labelwise.datasets.convert_brat import convert_brat
from labelwise.evaluate.results import load_results
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import Metrics
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.report.advice import CASES, Advice, advise
from labelwise.report.deck import Deck, read_deck
from labelwise.sources.brat import BratOptions
from labelwise.train.run import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

GOAL = 0.6  # of small trainings
GAIN = 0.005  # of F1 over all, by which longer training is worth it
SHARE = 0.5  # of the spans of a label that are forgotten or spoiled
FIXES = {"fix contradictions": "forgotten", "decide its boundaries": "spoiled"}
PARTS = {"test": 0.25, "dev": 0.35, "held": 0.67, "train": 1.0}  # of texts, by hash: where each ends
MODEL = Path("training/cpu/model-best")


class State(NamedTuple):
    """A corpus as somebody may have it: how long is trained, and what was done to the gold of which label."""

    name: str
    steps: int
    label: str = ""


def damage(task: Task, state: State) -> Task:
    """Leave out some spans of a label, or let them begin with the word before them."""
    spans = []
    for one in task["spans"]:
        if one["label"] != state.label or chance(state.name, task["text"], str(one["start"])) > SHARE:
            spans.append(one)
        elif state.name == "spoiled" and (words := task["text"][: one["start"]].split()):
            spans.append({**one, "start": task["text"].rindex(words[-1], 0, one["start"])})
    return {**task, "spans": spans}


def run(tasks: list[Task], folder: Path, state: State, seed: int, train: str = "train", test: str = "test") -> Path:
    """Merge, train, evaluate and check, where it wasn't done; return the folder of the project.

    train (str): the parts that are trained on; empty for the pipeline that the state has already.
    """
    out = folder / f"{state.name} {train} {test}"
    if (out / "metrics/cpu.json").is_file():
        return out
    splits: dict[str, list[Task]] = {"train": [], "dev": [], "test": []}
    for task in tasks:
        place = chance("part", str(seed), task["text"])
        part = next(part for part, end in PARTS.items() if place < end)
        if part == test:
            splits["test"].append(task)
        elif part == "dev" or part in (train or "train"):
            splits["dev" if part == "dev" else "train"].append(damage(task, state))
    labels = sorted({one["label"] for task in tasks for one in task["spans"]})
    (out / "tasks").mkdir(parents=True, exist_ok=True)
    declared = [{"name": one, "path": f"{one}.jsonl", "labels": labels, "split": one} for one in splits]
    for split, some in splits.items():
        (out / f"tasks/{split}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in some))
    (out / "tasks/datasets.yml").write_text(yaml.safe_dump(declared))
    merge_data([out / "tasks/datasets.yml"], out / "corpus", Settings(), metrics=out / "metrics/merge.json")
    model = (out if train else folder / f"{state.name} train test") / MODEL
    if train:
        often = {"training.eval_frequency": max(20, state.steps // 5), "training.batcher.size": 1000}
        recipe = TrainingConfig(
            default_config("cpu"), out / "corpus", seed=seed, max_steps=state.steps, overrides=often
        )
        train_pipeline(recipe, model, out / "plots/cpu.tsv")
    found = evaluate_pipeline(model, out / "corpus/test", tables=out / "training/cpu", other_tokens=not train)
    check(out / "corpus", out / "training/check")
    (out / "metrics/cpu.json").write_bytes(msgspec.json.encode(found.metrics))
    return out


def read_advice(folder: Path) -> tuple[Advice, Metrics, Deck]:
    """Read what a report says of a project."""
    results, deck = load_results(folder, "cpu"), read_deck(folder)
    assert results.metrics
    said = advise(results.metrics, results.curve, "cpu", GOAL, deck.counts, results.merge, sample=len(deck.sample()))
    return said, results.metrics, deck


def judge(tasks: list[Task], folder: Path, state: State, seed: int) -> Iterator[tuple[str, bool]]:
    """Yield each piece of advice about a state, and whether following it helps."""
    advice, metrics, deck = read_advice(run(tasks, folder, state, seed))
    if "training stopped too early" in advice.why:
        longer = state._replace(name=f"{state.name}-longer", steps=2 * state.steps)
        _, after, _ = read_advice(run(tasks, folder, longer, seed))
        yield "train longer", (after.all_gold.f or 0) > (metrics.all_gold.f or 0) + GAIN
        return
    if advice.do.startswith("decide the"):
        yield "decide cases", 2 * sum(case["label"] == state.label for case in deck.sample()) >= CASES
    for row, step in advice.rows:
        if step in FIXES:
            yield step, state.label == row.label and FIXES[step] == state.name
        elif step == "label more texts":
            _, after, _ = read_advice(run(tasks, folder, state, seed, "train, held"))
            yield step, (after.all_gold.labels[row.label].f or 0) > (row.scores.f or 0)
        elif step == "ready":
            _, after, _ = read_advice(run(tasks, folder, state, seed, "", "held"))
            yield step, (after.all_gold.labels[row.label].f or 0) >= GOAL


def main(
    corpora: Annotated[list[Path], typer.Argument(help="brat folders")],
    steps: Annotated[int, typer.Option(help="Steps of a training that isn't cut short")] = 300,
    texts: Annotated[int, typer.Option(help="Documents of each corpus, at most")] = 120,
    seed: Annotated[int, typer.Option(help="Of trainings, and of the parts that texts are in")] = 0,
) -> None:
    """Simulate, and store the result."""
    said: Counter[str] = Counter()
    true: Counter[str] = Counter()
    for corpus in corpora:
        with TemporaryDirectory() as name:
            folder = Path(name)
            convert_brat(corpus, folder / "all", BratOptions(split="auto"))
            tasks = [json.loads(line) for line in (folder / "all/auto.jsonl").read_text().splitlines()][:texts]
            (first, _), (second, _) = Counter(one["label"] for task in tasks for one in task["spans"]).most_common(2)
            for state in (
                *(State("clean", steps), State("short", steps // 6)),
                *(State("forgotten", steps, first), State("spoiled", steps, second)),
            ):
                for step, right in judge(tasks, folder, state, seed):
                    print(f"{corpus}, {state.name}: {step}: {right}", flush=True)
                    said[step] += 1
                    true[step] += right
    rows: list[list[Cell]] = [[step, said[step], true[step], true[step] / said[step]] for step in sorted(said)]
    rows.append(["all", said.total(), true.total(), true.total() / max(1, said.total())])
    write_result("advice", {"advice": "", "said": ",", "true": ",", "share": ".0%"}, rows)


if __name__ == "__main__":
    typer.run(main)
