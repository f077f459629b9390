"""What does a label take that is added to a pipeline, all else as it is, and how good does it get with how many texts?

    python -m benchmarks.add_label

`Device` of the WNUT 2020 wet lab protocols is held back: in 400 steps, a pipeline learns the other 17 labels of all
texts. Then some texts, by hash, are annotated for Device, and it is added, with three seeds. A tenth of the texts is
dev; the dev folder is the test set. Corpora and the first pipeline are made once.
"""

import resource
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

from benchmarks.coverage.data import Kept, command, copy, declared, prepare, share
from benchmarks.coverage.methods import merge
from benchmarks.measure import Cell, write_result
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.extend import extend
from labelwise.train.recipe import Recipe

Option = typer.Option
OUT = Path("benchmarks/out/add_label")
CONFIG = Path("configs/cpu.cfg")
HELD_BACK = "Device"
ALL = 1000  # texts, more than there are
COLUMNS = {"texts for Device": "", "F of Device": ".3f", "F of each seed": "", "seconds": ",.0f", "CPU seconds": ",.0f"}


def annotated_for(texts: int) -> Kept:
    """Return what tells whether a text is annotated for a label: for the one held back, about so many of 370 are."""
    return lambda text, label: label != HELD_BACK or share("annotated", text) < texts / 370


def make_corpus(tasks: Path, texts: int) -> Path:
    """Merge the annotation of the other labels and, unless that is none, of so many texts for the one held back."""
    labels = [dataset["labels"][0] for dataset in declared(tasks / "train")]
    if not texts:
        labels.remove(HELD_BACK)
    train, test = OUT / f"tasks-{texts}" / "train", OUT / f"tasks-{texts}" / "test"
    copy(tasks / "train", train, annotated_for(texts), labels)
    copy(tasks / "test", test, lambda text, label: True, labels)
    corpus = OUT / f"corpus-{texts}"
    merge([train / "datasets.yml", test / "datasets.yml"], corpus, "--test-ratio", 0)
    return corpus


def cpu_seconds() -> float:
    """Add up what this process has computed, and those that it has started and that have ended."""
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in taken)


def add(corpus: Path, recipe: Recipe) -> tuple[float, float, float]:
    """Add the label; return its F in test, and the seconds of the training, by the clock and of all processors."""
    before = cpu_seconds()
    trained = extend(recipe, OUT / "extended").trained
    taken = cpu_seconds() - before
    f = evaluate_pipeline(OUT / "extended", corpus / "test").metrics.all_gold.labels[HELD_BACK].f
    return f or 0.0, trained.seconds if trained else 0.0, taken


def main(
    wnut: Annotated[Path, Option(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    steps: Annotated[int, Option(help="Updates for Device")] = 400,
    seeds: Annotated[int, Option(help="Trainings, with the seeds 0, 1, ...")] = 3,
    texts: Annotated[list[int], Option(help="Texts annotated for Device")] = [50, 100, 200, ALL],  # noqa: B006
) -> None:
    """Train a pipeline without the label, and add it."""
    tasks = prepare("wnut", wnut)
    base = OUT / "without"
    if not base.exists():
        given = ["--curve", OUT / "without.tsv", "--max-steps", 400, "--workers", 2]
        command("train", CONFIG, make_corpus(tasks, 0), base, *given)
    rows: list[list[Cell]] = []
    for count in texts:
        corpus = make_corpus(tasks, count)
        recipes = [
            Recipe(CONFIG, corpus, seed=seed, max_steps=steps, init_from=str(base), workers=2) for seed in range(seeds)
        ]
        found = [add(corpus, recipe) for recipe in recipes]
        each = " ".join(f"{f:.3f}" for f, _, _ in found)
        name = "all 370" if count == ALL else f"{count}"
        f, seconds, used = map(mean, zip(*found, strict=True))
        rows.append([name, f, each, seconds, used])
        print(rows[-1], flush=True)
    write_result("add_label", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)
