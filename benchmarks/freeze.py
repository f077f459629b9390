"""What does adding a label to a trained pipeline take, with all else frozen, and how good is the label then?

    python -m benchmarks.freeze --label Device

A pipeline is trained on the wet lab protocols (or another brat corpus with the folders `train` and `dev`) without one
label; then that label is added with `--freeze yes`. Beside it stands a pipeline that has learned all labels at once.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.coverage.data import OUT, command, copy, declared, prepare
from benchmarks.coverage.methods import evaluate, merge

LEARNED = OUT / "freeze"


def main(
    corpus: Annotated[Path, typer.Option(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    label: Annotated[str, typer.Option(help="The label that is added")] = "Device",
    steps: Annotated[int, typer.Option(help="Training steps")] = 400,
    frozen_steps: Annotated[int, typer.Option(help="Training steps of the added label")] = 300,
) -> None:
    """Train twice and once more, evaluate, and print a table."""
    tasks = prepare("wnut", corpus)
    rest = [dataset["labels"][0] for dataset in declared(tasks / "train") if dataset["labels"] != [label]]
    parts = [tasks / f"without {label}, {part}" for part in ("train", "test")]
    for part, folder in zip(("train", "test"), parts, strict=True):
        copy(tasks / part, folder, lambda text, label: True, rest)
    without, everything = OUT / f"wnut-without-{label}", OUT / "wnut-all-by-label"
    merge([folder / "datasets.yml" for folder in parts], without, "--test-ratio", 0)
    merge([tasks / part / "datasets.yml" for part in ("train", "test")], everything, "--test-ratio", 0)

    def train(name: str, merged: Path, steps: int, *options: Any) -> list[str]:
        """Train, evaluate against all labels; returns the cells of a row."""
        model = LEARNED / name
        given = ["--curve", LEARNED / "curve.tsv", "--max-steps", steps, *options]
        seconds = command("train", "configs/cpu.cfg", merged, model, *given).seconds
        labels = evaluate(model, everything / "test")[0]["all_gold"]["labels"]
        others = [labels[each]["f"] or 0.0 for each in rest]
        return [str(steps), f"{seconds:.0f}", f"{labels[label]['f'] or 0:.4f}", f"{sum(others) / len(others):.6f}"]

    frozen = ("--init-from", LEARNED / "without", "--freeze", "yes")
    rows = {
        f"without {label}": train("without", without, steps),
        f"{label} added, frozen": train("frozen", everything, frozen_steps, *frozen),
        "all at once": train("all", everything, steps),
    }
    print(f"\n| trained | steps | seconds | F of {label} | mean F of the others |")
    print("|---|---|---|---|---|")
    for name, row in rows.items():
        print("|", " | ".join([name, *row]), "|")


if __name__ == "__main__":
    typer.run(main)
