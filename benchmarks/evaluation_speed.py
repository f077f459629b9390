"""How fast is evaluation on one core, against `spacy evaluate`?

    python -m benchmarks.evaluation_speed CORPUS     # merged, such as benchmarks/out/wnut2020_wlp/corpus

A pipeline with spaCy's ner and one with heads for labels are trained for some steps. Then the texts of train, of which
there are most, are predicted and scored, in turn: `spacy evaluate` with the ner, `scripts.evaluate` with either. A time
is that of the whole command, loading included; a process computes in one thread. `scripts.evaluate` has more to do:
intervals, and the tables of texts and pairs.
"""

import os
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.measure import Measured, measure, write_result
from labelwise.corpus.manifest import read_split

OUT = Path("benchmarks/out/evaluation_speed")
CONFIG = "configs/cpu.cfg"
STOCK = "spacy evaluate, ner"


def main(
    corpus: Annotated[Path, typer.Argument(help="Merged corpus")],
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 200,
    rounds: Annotated[int, typer.Option(help="How often each is evaluated")] = 3,
) -> None:
    """Train, evaluate in turn, and write medians."""
    OUT.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    texts = str(corpus / "train")
    commands = {STOCK: ["spacy", "evaluate", str(OUT / "ner"), texts, "--output", str(OUT / "spacy.json")]}
    for recognizer in ("ner", "per-label"):
        model = OUT / recognizer
        if not model.exists():
            options = ["--recognizer", recognizer, "--max-steps", str(steps), "--curve", str(OUT / "curve.tsv")]
            measure("scripts.train", CONFIG, str(corpus), str(model), *options)
        files = [str(OUT / name) for name in ("metrics.json", "texts.parquet", "pairs.parquet")]
        given = [str(model), texts, files[0], "--texts", files[1], "--pairs", files[2]]
        commands[f"scripts.evaluate, {recognizer}"] = ["scripts.evaluate", *given]
    runs: dict[str, list[Measured]] = {}
    for _ in range(rounds):
        for name, command in commands.items():
            runs.setdefault(name, []).append(measure(*command))
    words = read_split(corpus / "train")["words"]
    rows = []
    for name, found in runs.items():
        ratios = [stock.seconds / one.seconds for one, stock in zip(found, runs[STOCK], strict=True)]
        spread = (median(ratios), min(ratios), max(ratios))
        rate, peak = words / median(one.seconds for one in found), median(one.megabytes for one in found)
        rows.append((name, rate, spread, peak))
    columns = {"command": "", "words per second": ",.0f", "of spacy evaluate": ".2f", "memory, MB": ",.0f"}
    write_result("evaluation_speed", columns, rows)


if __name__ == "__main__":
    typer.run(main)
