"""How much of a report's advice is true? Gold of real corpora is forgotten or spoiled, or training stopped too early.

    python -m benchmarks.advice assets/wnut2020_wlp/train assets/litbank assets/materials_syntheses

A third of the texts is held out. Advice is followed, and is true if that helps: training twice as long adds half a
point of F1; the texts held out improve the label that needs more; what is to be fixed or decided was forgotten or
spoiled by us; a label that is ready reaches the goal on the texts held out. Advice to annotate test, or nothing, isn't
judged.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
import yaml

from benchmarks.measure import Cell, write_result
from labelwise.check.run import check
from labelwise.evaluate.results import load_results
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import Metrics
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.report.advice import Advice, advise
from labelwise.report.deck import read_deck
from labelwise.sources.convert_brat import convert_brat
from labelwise.train.recipe import Recipe, default_config
from labelwise.train.run import train_pipeline

GOAL = 0.6  # of small trainings
GAIN = 0.005  # of F1 over all, by which longer training is worth it
SHARE = 0.5  # of the spans of a label that are forgotten, or spoiled
FIXES = {
    "fix contradictions": "forgotten",
    "decide its boundaries": "spoiled",
}
MODEL = Path("training/cpu/model-best")
Task = dict[str, Any]


class State(NamedTuple):
    """A corpus as somebody may have it: what was done to the gold of which labels, and how long is trained."""

    name: str
    steps: int
    damage: Callable[[Task], Task] = lambda task: task
    damaged: Mapping[str, str] = {}


def chance(*parts: Any) -> float:
    """Draw a number from 0 to 1 that is the same for the same parts."""
    return zlib.crc32(repr(parts).encode()) / 2**32


def split_of(task: Task) -> str:
    """Choose the split of a text; "held" is for following the advice."""
    place = chance("split", task["text"])
    return "test" if place < 0.25 else "dev" if place < 0.35 else "held" if place < 0.67 else "train"


def forget(label: str) -> Callable[[Task], Task]:
    """Leave out some spans of a label."""
    return lambda task: {
        **task,
        "spans": [one for one in task["spans"] if one["label"] != label or chance(task["text"], one["start"]) > SHARE],
    }


def spoil(label: str) -> Callable[[Task], Task]:
    """Let some spans of a label begin with the word before them."""

    def moved(task: Task, one: Task) -> Task:
        """Move the start of a span."""
        before = task["text"][: one["start"]].rstrip()
        start = len(before) - len(before.split()[-1]) if before else one["start"]
        wrong = one["label"] == label and chance(task["text"], one["start"]) < SHARE
        return {**one, "start": start} if wrong else one

    return lambda task: {**task, "spans": [moved(task, one) for one in task["spans"]]}


def run(
    tasks: list[Task], folder: Path, state: State, train: set[str], test: str = "test", trained: Path | None = None
) -> Path:
    """Merge, train if no pipeline is given, evaluate and check; return the folder of the project."""
    if (folder / "metrics" / "cpu.json").is_file():
        return folder
    splits: dict[str, list[Task]] = {"train": [], "dev": [], "test": []}
    for task in tasks:
        split = split_of(task)
        if split in train:
            splits["train"].append(state.damage(task))
        elif split == "dev":
            splits["dev"].append(state.damage(task))
        elif split == test:
            splits["test"].append(task)
    labels = sorted({one["label"] for task in tasks for one in task["spans"]})
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    declared = []
    for split, some in splits.items():
        (folder / "tasks" / f"{split}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in some))
        declared.append({"name": split, "path": f"{split}.jsonl", "labels": labels, "split": split})
    (folder / "tasks" / "datasets.yml").write_text(yaml.safe_dump(declared))
    merge_data(
        [folder / "tasks" / "datasets.yml"], folder / "corpus", Settings(), metrics=folder / "metrics/merge.json"
    )
    model = trained or folder / MODEL
    often = {"training.eval_frequency": max(20, state.steps // 5), "training.batcher.size": 1000}
    recipe = Recipe(default_config("cpu"), folder / "corpus", seed=0, max_steps=state.steps, overrides=often)
    if not trained:
        train_pipeline(recipe, model, folder / "plots" / "cpu.tsv")
    found = evaluate_pipeline(model, folder / "corpus" / "test", tables=folder / "training" / "cpu")
    check(folder / "corpus", folder / "training" / "check")
    (folder / "metrics" / "cpu.json").write_bytes(msgspec.json.encode(found.metrics))
    return folder


def read_advice(folder: Path) -> tuple[Advice, Metrics]:
    """Read what a report says of a project."""
    results = load_results(folder, "cpu")
    assert results.metrics
    return advise(results.metrics, results.curve, "cpu", GOAL, read_deck(folder).counts, results.merge), results.metrics


def judge(tasks: list[Task], folder: Path, state: State) -> Iterator[tuple[str, bool]]:
    """Yield each piece of advice about a state, and whether following it helps."""
    advice, metrics = read_advice(run(tasks, folder / state.name, state, {"train"}))
    before = {label: scores.f or 0.0 for label, scores in metrics.all_gold.labels.items()}
    if "training stopped too early" in advice.why:
        longer = state._replace(name=f"{state.name}-longer", steps=2 * state.steps)
        _, after = read_advice(run(tasks, folder / longer.name, longer, {"train"}))
        yield "train longer", (after.with_gold.f or 0) > (metrics.with_gold.f or 0) + GAIN
        return
    for row, step in advice.rows:
        if step in FIXES:
            yield step, state.damaged.get(row.label) == FIXES[step]
        elif step == "label more texts":
            _, after = read_advice(run(tasks, folder / f"{state.name}-more", state, {"train", "held"}))
            yield step, (after.all_gold.labels[row.label].f or 0) > before[row.label]
        elif step == "ready":
            _, after = read_advice(
                run(tasks, folder / f"{state.name}-held", state, {"train"}, "held", folder / state.name / MODEL)
            )
            yield step, (after.all_gold.labels[row.label].f or 0) >= GOAL


def main(
    corpora: Annotated[list[Path], typer.Argument(help="brat folders")],
    out: Annotated[Path, typer.Option(help="Folder to work in; what is there is used")] = Path("benchmarks/out/advice"),
    steps: Annotated[int, typer.Option(help="Steps of a training that isn't cut short")] = 300,
    texts: Annotated[int, typer.Option(help="Documents of each corpus, at most")] = 200,
) -> None:
    """Simulate, and store the result."""
    said: Counter[str] = Counter()
    true: Counter[str] = Counter()
    for number, corpus in enumerate(corpora):
        folder = out / str(number)
        if not (folder / "all").is_dir():
            convert_brat(corpus, folder / "all", split="auto")
        tasks = [json.loads(line) for line in (folder / "all" / "auto.jsonl").read_text().splitlines()][:texts]
        frequent = [name for name, _ in Counter(one["label"] for task in tasks for one in task["spans"]).most_common(2)]
        states = [
            State("clean", steps),
            State("short", steps // 6),
            State("forgotten", steps, forget(frequent[0]), {frequent[0]: "forgotten"}),
            State("spoiled", steps, spoil(frequent[1]), {frequent[1]: "spoiled"}),
        ]
        for state in states:
            for step, right in judge(tasks, folder, state):
                print(f"{corpus}, {state.name}: {step}: {right}", flush=True)
                said[step] += 1
                true[step] += right
    rows: list[list[Cell]] = [[step, said[step], true[step], true[step] / said[step]] for step in sorted(said)]
    rows.append(["all", said.total(), true.total(), true.total() / max(1, said.total())])
    write_result("advice", {"advice": "", "said": ",", "true": ",", "share": ".0%"}, rows)


if __name__ == "__main__":
    typer.run(main)
