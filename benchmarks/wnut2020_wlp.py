"""The whole way on a real corpus: the WNUT 2020 wet lab protocols, trained on their train folder, tested on dev.

    python -m benchmarks.wnut2020_wlp

Fetch the corpus before with `weasel assets --extra`. A tenth of the train folder, by hash, decides which pipeline is
the best; the dev folder is the test set, and where a text is in both, it is in the test set only.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import measure

OUT = Path("benchmarks/out/wnut2020_wlp")


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    steps: Annotated[int, typer.Option(help="Training steps")] = 1500,
    seeds: Annotated[int, typer.Option(help="Trainings, with the seeds 0, 1, ...")] = 1,
) -> None:
    """Convert, merge, train on the CPU and evaluate; print what each took, and the score."""
    train, dev, merged = OUT / "tasks" / "train", OUT / "tasks" / "dev", OUT / "corpus"
    commands = {
        "convert train": ["convert_brat", corpus / "train", train, "--prefix", "train-"],
        "convert dev": ["convert_brat", corpus / "dev", dev, "--prefix", "dev-", "--split", "test"],
        "merge": [
            *("merge", train / "datasets.yml", dev / "datasets.yml", merged, "--metrics", OUT / "merge.json"),
            *("--tokenizer", "project.yml", "--test-ratio", 0),
        ],
    }
    for seed in range(seeds):
        model = OUT / f"seed-{seed}"
        commands[f"train, seed {seed}"] = [
            *("train", "configs/cpu.cfg", merged, model, "--curve", OUT / f"seed-{seed}.tsv"),
            *("--max-steps", steps, "--seed", seed),
        ]
        commands[f"evaluate, seed {seed}"] = ["evaluate", model, merged / "test", OUT / f"seed-{seed}.json"]
    taken = {name: measure(f"scripts.{command}", *map(str, rest)) for name, (command, *rest) in commands.items()}
    print("\n| step | seconds | peak memory, MB |\n|---|---|---|")
    for name, (seconds, peak, _) in taken.items():
        print(f"| {name} | {seconds:.0f} | {peak / 2**20:.0f} |")
    labels = json.loads((OUT / "merge.json").read_text())["labels"].values()
    lost, gold = (sum(counts.get(name, 0) for counts in labels) for name in ("no token boundary", "gold"))
    print(f"\nGold without token boundaries: {lost:,} of {gold:,} ({lost / gold:.2%})")
    for seed in range(seeds):
        scores = json.loads((OUT / f"seed-{seed}.json").read_text())
        print(f"F against all gold, seed {seed}: {scores['all_gold']['f']:.4f}")


if __name__ == "__main__":
    typer.run(main)
