"""How good is one model where each text is annotated for some labels only?

    python -m benchmarks.coverage --corpus wnut --annotated all --annotated 50% --method per-label --method ner
    python -m benchmarks.coverage --corpus mixed
    python -m benchmarks.coverage --table

The annotation of a corpus is forgotten in part (`data`), a model is made of the rest (`methods`), and tested on texts
that are annotated in full: the dev folder of wnut, a quarter of the texts of the others. A tenth of the training texts,
by hash, decides which pipeline is best. Beside that, two studies of data sets that were never annotated for the others'
labels: `prodigy` and `mixed` (`domains`).

Each training is appended to benchmarks/out/coverage/results.jsonl, and isn't computed again. `--table` writes tables
of that to benchmarks/results.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.coverage.data import ANNOTATED, OUT, forget, prepare
from benchmarks.coverage.domains import MIXED, PUBLIC, run_mixed, run_public
from benchmarks.coverage.methods import METHODS, Training, merge, run_method
from benchmarks.coverage.results import Row, once
from benchmarks.coverage.table import write_tables
from benchmarks.minilm import write_config

Option = typer.Option
CORPORA = ("wnut", "materials", "litbank", "prodigy", "mixed")


def is_sensible(annotated: str, name: str) -> bool:
    """Tell whether a method has a meaning where so much is annotated."""
    method = METHODS[name]
    if annotated == "all" or annotated.startswith("first"):
        return not (method.whole or method.policy != "by-label")
    return name != "ner"


def run_one(corpus: str, folder: Path, annotated: str, name: str, training: Training) -> Row:
    """Forget, merge, train by one method, and evaluate."""
    method = METHODS[name]
    kept = f"whole {annotated}" if method.whole else annotated
    declarations = forget(prepare(corpus, folder), kept)
    merged = OUT / f"{corpus}-{kept}-{method.policy}".replace(" ", "-")
    texts = merge(declarations, merged, test_ratio=0, coverage=method.policy)
    return run_method(name, merged, texts, training)


def main(
    wnut: Annotated[Path, Option(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    materials: Annotated[Path, Option(help="Folder of brat documents")] = Path("assets/materials_syntheses"),
    litbank: Annotated[Path, Option(help="Folder of brat documents")] = Path("assets/litbank"),
    prodigy: Annotated[Path, Option(help="Folder of Prodigy data sets")] = Path("assets/prodigy_jsonl"),
    corpus: Annotated[list[str], Option(help=" | ".join(CORPORA))] = ["wnut"],  # noqa: B006
    annotated: Annotated[list[str], Option(help="What is annotated; see `data`")] = list(ANNOTATED),  # noqa: B006
    method: Annotated[list[str], Option(help="As the table calls it; all, if left out")] = [],  # noqa: B006
    steps: Annotated[int, Option(help="Training steps")] = 400,
    seeds: Annotated[int, Option(help="Trainings, with the seeds 0, 1, ...")] = 1,
    config: Annotated[str, Option(help="spaCy config; or minilm, for a transformer on the CPU")] = "configs/cpu.cfg",
    table: Annotated[bool, Option("--table", help="Write what is there to benchmarks/results, and stop")] = False,
) -> None:
    """Train and evaluate what isn't in the results yet."""
    if table:
        write_tables()
        return
    folders = {"wnut": wnut, "materials": materials, "litbank": litbank}
    for name, seed in product(corpus, range(seeds)):
        training = Training(config, steps, seed)
        key: Row = {"corpus": name, "seed": seed, "steps": steps}
        if config == "minilm":
            training = training._replace(config=str(write_config(OUT / "minilm.cfg", steps)))
            key["corpus"] = f"{name}, MiniLM"
        if name == "prodigy":
            for way in method or PUBLIC:
                once({**key, "method": way}, partial(run_public, prodigy, way, training))
        elif name == "mixed":
            for way in method or MIXED:
                once({**key, "method": way}, partial(run_mixed, folders, way, training))
        else:
            for kept, way in product(annotated, method or METHODS):
                if is_sensible(kept, way):
                    row = {**key, "annotated": kept, "method": way}
                    once(row, partial(run_one, name, folders[name], kept, way, training))


if __name__ == "__main__":
    typer.run(main)
