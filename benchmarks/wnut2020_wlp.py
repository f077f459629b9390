"""From start to finish on a real corpus: the WNUT 2020 wet lab protocols, trained on their train folder, tested on dev.

    python -m benchmarks.wnut2020_wlp
    python -m benchmarks.wnut2020_wlp --steps 500 --seeds 3 --loader streamed --loader in_memory

Fetch the corpus first, with `weasel assets --extra`. A tenth of the train folder, by hash, decides which pipeline is
the best; the dev folder is the test set, and where a text is in both, it is in the test set only.
"""

import json
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from spacy.util import load_config

from benchmarks.measure import Measured, measure, project_with, write_result

OUT = Path("benchmarks/out/wnut2020_wlp")


def merge_commands(corpus: Path) -> dict[str, list[Any]]:
    """Return the commands that make OUT/corpus from the folder with train and dev."""
    train, dev = OUT / "tasks" / "train", OUT / "tasks" / "dev"
    return {
        "convert train": ["convert_brat", corpus / "train", train, "--prefix", "train-"],
        "convert dev": ["convert_brat", corpus / "dev", dev, "--prefix", "dev-", "--split", "test"],
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
    loader: Annotated[list[str], typer.Option(help="streamed, indexed or in_memory")] = ["streamed"],  # noqa: B006
) -> None:
    """Convert, merge, train on the CPU and evaluate; where there are several loaders, write what F each gives."""
    OUT.mkdir(parents=True, exist_ok=True)
    commands, merged = merge_commands(corpus), OUT / "corpus"
    trainings = [f"{name}-{seed}" for name in loader for seed in range(seeds)]
    for training in trainings:
        name, seed = training.split("-")
        config = load_config("configs/cpu.cfg", {"corpora.train.loader": name}, interpolate=False)
        config.to_disk(OUT / f"{name}.cfg")
        commands[f"train, {name}, seed {seed}"] = [
            *("train", OUT / f"{name}.cfg", merged, OUT / training, "--curve", OUT / f"{training}.tsv"),
            *("--max-steps", steps, "--seed", seed),
        ]
        scores = OUT / f"{training}.json"
        commands[f"evaluate, {name}, seed {seed}"] = ["evaluate", OUT / training, merged / "test", scores]
    run(commands)
    f = {training: json.loads((OUT / f"{training}.json").read_text())["all_gold"]["f"] for training in trainings}
    of_each = {name: [f[f"{name}-{seed}"] for seed in range(seeds)] for name in loader}
    if len(loader) > 1:
        rows = [(name, mean(found), " ".join(f"{each:.4f}" for each in found)) for name, found in of_each.items()]
        write_result("streaming", {"loader": "", "F": ".4f", "F of each seed": ""}, rows)


if __name__ == "__main__":
    typer.run(main)
