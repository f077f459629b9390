"""From start to finish on a real corpus: the WNUT 2020 wet lab protocols, trained on their train folder, tested on dev.

    python -m benchmarks.wnut2020_wlp
    python -m benchmarks.wnut2020_wlp --steps 500 --seeds 3

Fetch the corpus first, with `weasel assets --extra`. A tenth of the train folder, by hash, decides which pipeline is
the best; the dev folder is the test set, and where a text is in both, it is in the test set only.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.measure import Measured, measure, project_with

OUT = Path("benchmarks/out/wnut2020_wlp")


def merge_commands(corpus: Path) -> dict[str, list[Any]]:
    """Return the commands that make OUT/corpus from the folder with train and dev."""
    train, dev = OUT / "tasks" / "train", OUT / "tasks" / "dev"
    return {
        "convert train": [
            "convert_brat",
            corpus / "train",
            train,
            *project_with(OUT / "train", "brat", prefix="train-"),
        ],
        "convert dev": [
            *("convert_brat", corpus / "dev", dev),
            *project_with(OUT / "dev", "brat", prefix="dev-", split="test"),
        ],
        "merge": [
            *("merge", train / "datasets.yml", dev / "datasets.yml", OUT / "corpus", "--metrics", OUT / "merge.json"),
            *project_with(OUT, test_ratio=0),
        ],
    }


def run(commands: dict[str, list[Any]]) -> dict[str, Measured]:
    """Run scripts one after the other; return what each took."""
    return {name: measure(f"scripts.{command}", *map(str, rest)) for name, (command, *rest) in commands.items()}


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    steps: Annotated[int, typer.Option(help="Training steps")] = 1500,
    seeds: Annotated[int, typer.Option(help="Trainings, with the seeds 0, 1, ...")] = 1,
) -> None:
    """Convert, merge, train on the CPU and evaluate; print the F1 score of each seed."""
    OUT.mkdir(parents=True, exist_ok=True)
    commands, merged = merge_commands(corpus), OUT / "corpus"
    for seed in range(seeds):
        model, scores = OUT / f"model-{seed}", OUT / f"scores-{seed}.json"
        commands[f"train, seed {seed}"] = [
            *("train", "configs/cpu.cfg", merged, model, "--curve", OUT / f"curve-{seed}.tsv"),
            *("--max-steps", steps, "--seed", seed),
        ]
        commands[f"evaluate, seed {seed}"] = ["evaluate", model, merged / "test", scores]
    run(commands)
    for seed in range(seeds):
        f = json.loads((OUT / f"scores-{seed}.json").read_text())["all_gold"]["f"]
        print(f"seed {seed}: F1 {f:.4f}")


if __name__ == "__main__":
    typer.run(main)
