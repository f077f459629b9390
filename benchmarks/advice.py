"""How much of a report's advice is true? Gold of real corpora is forgotten or spoiled, or training is cut short.

    python -m benchmarks.advice assets/litbank assets/wnut2020_wlp/train assets/materials_syntheses \
        assets/prodigy_jsonl/food_data.jsonl

A third of the texts is held out. Advice is followed, and is true if that helps: training twice as long adds half a
point of F1; the texts held out improve the label that needs more; the labels to fix are those that were damaged; a
label that is ready reaches the goal on the texts held out, too. Where a corpus has more texts, F1 is that on these.
Where cases are to be decided first, they are, by the gold before the damage, and the advice that follows must be true.
Advice to annotate test texts, or to leave a label, isn't judged.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
import yaml

from benchmarks.measure import Cell, write_result
from benchmarks.public import Task, chance
from labelwise.base.counts import AllScores
from labelwise.base.text import text_key
from labelwise.check.run import check
from labelwise.datasets.convert_brat import convert_brat
from labelwise.evaluate.results import load_results
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import Metrics
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.report.advice import LABEL_MORE, WRONG_BOUNDARIES, Advice, Shares, advise
from labelwise.report.deck import Deck, estimate_shares, read_deck
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


class Corpus(NamedTuple):
    """The texts of a study, and others that nothing is trained on, by which advice is judged; and where results go."""

    tasks: list[Task]
    more: list[Task]
    folder: Path
    seed: int

    @property
    def judges(self) -> str:
        """The part that advice is judged by: of a small corpus, it is test."""
        return "more" if self.more else "test"

    def parts(self) -> Iterator[tuple[str, Task]]:
        """Yield each task with the part that it is in."""
        for task in self.tasks:
            place = chance("part", str(self.seed), task["text"])
            yield next(part for part, end in PARTS.items() if place < end), task
        yield from (("more", task) for task in self.more)


def run(corpus: Corpus, state: State, train: str = "train", test: str = "test", *, judge: bool = False) -> Path:
    """Merge, train, evaluate and check, where it wasn't done; return the folder of the project.

    train, test (str): the parts that are trained on, and the one that is evaluated.
    judge (bool): evaluate the pipeline that was trained on these parts already.
    """
    out = corpus.folder / f"{state.name} {train} {test}"
    if (out / "metrics/cpu.json").is_file():
        return out
    splits: dict[str, list[Task]] = {"train": [], "dev": [], "test": []}
    for part, task in corpus.parts():
        if part == test:
            splits["test"].append(task)
        elif part == "dev" or part in train:
            splits["dev" if part == "dev" else "train"].append(damage(task, state))
    labels = sorted({one["label"] for task in (*corpus.tasks, *corpus.more) for one in task["spans"]})
    (out / "tasks").mkdir(parents=True, exist_ok=True)
    declared = [{"name": one, "path": f"{one}.jsonl", "labels": labels, "split": one} for one in splits]
    for split, some in splits.items():
        (out / f"tasks/{split}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in some))
    (out / "tasks/datasets.yml").write_text(yaml.safe_dump(declared))
    merge_data([out / "tasks/datasets.yml"], out / "corpus", Settings(), metrics=out / "metrics/merge.json")
    model = corpus.folder / f"{state.name} {train} test" / MODEL
    if not judge:
        often = {"training.eval_frequency": max(20, state.steps // 5), "training.batcher.size": 1000}
        recipe = TrainingConfig(
            default_config("cpu"), out / "corpus", seed=corpus.seed, max_steps=state.steps, overrides=often
        )
        train_pipeline(recipe, model, out / "plots/cpu.tsv")
        check(out / "corpus", out / "training/check")
    tables, dev = out / "training/cpu", out / "corpus/dev"
    found = evaluate_pipeline(model, out / "corpus/test", dev=dev, tables=tables, other_tokens=judge)
    (out / "metrics/cpu.json").write_bytes(msgspec.json.encode(found.metrics))
    return out


def read_advice(folder: Path, shares: Shares | None = None) -> tuple[Advice, Deck]:
    """Read what a report says of a project.

    shares (Shares | None): those of the findings that are right; None if nobody has decided cases drawn at random.
    """
    results, deck = load_results(folder, "cpu"), read_deck(folder)
    decided: dict[str, Any] = {"shares": shares} if shares else {"sample": len(deck.sample())}
    return advise(results.metrics, results.curve, "cpu", GOAL, deck.counts, results.merge, **decided), deck


def decide(tasks: list[Task], deck: Deck) -> Shares:
    """Decide the cases drawn at random by the gold before the damage, and estimate from them how many are right."""
    gold = {
        (text_key(task["text"]).hex(), one["start"], one["end"], one["label"])
        for task in tasks
        for one in task["spans"]
    }
    told = [
        (
            case["kind"] == WRONG_BOUNDARIES,
            all(
                span is None or ((case["key"], *span) in gold) == (side == "proposed")
                for side, span in ((side, case[side]) for side in ("current", "proposed"))
            ),
        )
        for case in deck.sample()
    ]
    return estimate_shares(told)


def score(corpus: Corpus, state: State, train: str, test: str) -> AllScores:
    """Score a pipeline that was trained on some parts on another one."""
    file = run(corpus, state, train, test, judge=True) / "metrics/cpu.json"
    return msgspec.json.decode(file.read_bytes(), type=Metrics).all_gold


def judge(corpus: Corpus, state: State) -> Iterator[tuple[str, str, bool]]:
    """Yield each piece of advice about a state, the label that it is about, and whether following it helps."""
    own = run(corpus, state)
    advice, deck = read_advice(own)
    if "training stopped too early" in advice.why:
        longer = state._replace(name=f"{state.name}-longer", steps=2 * state.steps)
        run(corpus, longer)
        before, after = (score(corpus, one, "train", corpus.judges) for one in (state, longer))
        yield "train longer", "", (after.f or 0) > (before.f or 0) + GAIN
        return

    def helps(label: str, step: str) -> bool | None:
        """Follow the advice about a label; None for what isn't judged."""
        if step in FIXES:
            return state.label == label and FIXES[step] == state.name
        if step == LABEL_MORE.words:
            run(corpus, state, "train, held")
            before, after = (score(corpus, state, parts, corpus.judges) for parts in ("train", "train, held"))
            return (after.labels[label].f or 0) > (before.labels[label].f or 0)
        if step == "ready":
            return (score(corpus, state, "train", "held").labels[label].f or 0) >= GOAL
        return None

    if advice.first.words.startswith("decide the"):
        advice, _ = read_advice(own, decide(corpus.tasks, deck))
        label, step = (*advice.first.words.split(": "), "")[:2]
        if (right := helps(label, step)) is not None:
            yield f"decide cases, then {step}", label, right
    for row, advised in advice.rows:
        step = "ready" if row.verdict == "ready" else advised.words
        if (right := helps(row.label, step)) is not None:
            yield step, row.label, right


def read_tasks(corpus: Path, folder: Path) -> list[Task]:
    """Read the tasks of a corpus: a folder of brat documents, or a file of Prodigy's."""
    if corpus.is_dir():
        convert_brat(corpus, folder, BratOptions(split="auto"))
    lines = (folder / "auto.jsonl" if corpus.is_dir() else corpus).read_text(encoding="utf8").splitlines()
    tasks = (task for task in map(json.loads, lines) if "text" in task and task.get("answer", "accept") == "accept")
    return [{**task, "spans": task.get("spans") or []} for task in tasks]


def main(
    corpora: Annotated[list[Path], typer.Argument(help="brat folders, or files of Prodigy tasks")],
    steps: Annotated[int, typer.Option(help="Steps of a training that isn't cut short")] = 300,
    texts: Annotated[int, typer.Option(help="Documents of each corpus, at most; the others judge")] = 120,
    pieces: Annotated[int, typer.Option("--tasks", help="Tasks of each file, at most; the others judge")] = 600,
    seeds: Annotated[int, typer.Option(help="Of trainings, and of the parts that texts are in")] = 3,
    keep: Annotated[Path | None, typer.Option(help="Folder to keep trainings in, for other rules")] = None,
) -> None:
    """Simulate, and store the result."""
    said: Counter[str] = Counter()
    true: Counter[str] = Counter()
    with TemporaryDirectory() as name:
        for seed, path in product(range(seeds), corpora):
            folder = (keep or Path(name)) / path.as_posix().replace("/", "-") / str(seed)
            tasks, most = read_tasks(path, folder / "all"), texts if path.is_dir() else pieces
            corpus = Corpus(tasks[:most], tasks[most : 3 * most], folder, seed)
            labels = Counter(one["label"] for task in corpus.tasks for one in task["spans"]).most_common(2)
            for state in (
                *(State("clean", steps), State("short", steps // 6)),
                *(State("forgotten", steps, labels[0][0]), State("spoiled", steps, labels[-1][0])),
            ):
                for step, label, right in judge(corpus, state):
                    print(f"{path}, seed {seed}, {state.name} {state.label}: {label}: {step}: {right}", flush=True)
                    said[step] += 1
                    true[step] += right
    rows: list[list[Cell]] = [[step, said[step], true[step], true[step] / said[step]] for step in sorted(said)]
    rows.append(["all", said.total(), true.total(), true.total() / max(1, said.total())])
    write_result("advice", {"advice": "", "said": ",", "true": ",", "share": ".0%"}, rows)


if __name__ == "__main__":
    typer.run(main)
