"""Texts that are annotated for some labels only: the recognizers, on the WNUT 2020 wet lab protocols.

    python -m benchmarks.coverage --steps 400 --seeds 3

The train folder is annotated in full, and then some of the annotation is forgotten:

- `all`: none of it;
- `half`: each label is annotated on a random half of the texts, independently of the others;
- `groups`: texts and labels in three groups each; a group of texts is annotated for its group of labels alone.

The dev folder, annotated in full, is the test set. A tenth of the train folder, by hash, decides which one is best.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
import yaml

from benchmarks.measure import measure

OUT = Path("benchmarks/out/coverage")
COVERAGES = ("all", "half", "groups")
# Recognizer, and the merge's policy for unmarked tokens where a label isn't covered.
METHODS = {
    "per-label": ("per-label", "missing"),
    "ner, outside": ("ner", "outside"),
    "ner, missing": ("ner", "missing"),
}


def share(*what: object) -> float:
    """Draw a number from 0 to 1, by hash."""
    digest = hashlib.blake2b("/".join(map(str, what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def is_annotated(coverage: str, text: str, label: str, labels: list[str]) -> bool:
    """Tell whether a text is annotated for a label."""
    if coverage == "half":
        return share(text, label) < 0.5
    return coverage == "all" or int(share(text) * 3) == labels.index(label) % 3


def forget(tasks: Path, out: Path, coverage: str) -> None:
    """Copy data sets, one per label, without what isn't annotated."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    declared = yaml.safe_load((tasks / "datasets.yml").read_text(encoding="utf8"))
    labels = [dataset["labels"][0] for dataset in declared]
    for dataset in declared:
        with (tasks / dataset["path"]).open("rb") as rows, (out / dataset["path"]).open("wb") as kept:
            for row in rows:
                if is_annotated(coverage, json.loads(row)["text"], dataset["labels"][0], labels):
                    kept.write(row)
    (out / "datasets.yml").write_text(yaml.safe_dump(declared), encoding="utf8")


def command(script: str, *given: Any) -> None:
    """Run a script."""
    measure(f"scripts.{script}", *map(str, given))


def scores(
    config: str, corpus: Path, recognizer: str, steps: int, seeds: int, more: list[str]
) -> Iterator[tuple[float, float]]:
    """Train and evaluate; yield F over all spans, and the mean of the labels' F, for each seed."""
    for seed in range(seeds):
        model = OUT / "model"
        options = ["--recognizer", recognizer, "--max-steps", steps, "--seed", seed, *more]
        command("train", config, corpus, model, "--curve", OUT / "curve.tsv", *options)
        command("evaluate", model, corpus / "test", OUT / "scores.json")
        found = json.loads((OUT / "scores.json").read_text())["all_gold"]
        yield found["f"], found["macro"]["f"]


def main(
    folder: Annotated[Path, typer.Argument(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    steps: Annotated[int, typer.Option(help="Training steps")] = 400,
    seeds: Annotated[int, typer.Option(help="Trainings, with the seeds 0, 1, ...")] = 3,
    coverage: Annotated[list[str], typer.Option(help="all, half or groups")] = list(COVERAGES),  # noqa: B006
    method: Annotated[list[str], typer.Option(help="per-label; ner, outside; ner, missing")] = list(METHODS),  # noqa: B006
    config: Annotated[str, typer.Option(help="spaCy config")] = "configs/cpu.cfg",
) -> None:
    """Train and evaluate each method on each coverage, and print a table of F, micro and macro, mean over the seeds."""
    tasks = {name: OUT / "tasks" / name for name in ("train", "dev")}
    command("convert_brat", folder / "train", tasks["train"], "--prefix", "train-")
    command("convert_brat", folder / "dev", tasks["dev"], "--prefix", "dev-", "--split", "test")
    print("| annotated | method | F | macro F | F of each seed |\n|---|---|---|---|---|", flush=True)
    for covered in coverage:
        forget(tasks["train"], OUT / "tasks" / covered, covered)
        declared = [OUT / "tasks" / covered / "datasets.yml", tasks["dev"] / "datasets.yml"]
        for name in method:
            recognizer, policy = METHODS[name]
            if covered == "all" and policy == "missing" and recognizer == "ner":
                continue  # nothing is missing
            corpus = OUT / f"corpus-{covered}-{policy}"
            options = ["--tokenizer", "project.yml", "--test-ratio", 0, "--coverage", policy]
            command("merge", *declared, corpus, *options)
            f, macro = zip(*scores(config, corpus, recognizer, steps, seeds, []), strict=True)
            each = " ".join(f"{value:.3f}" for value in f)
            print(f"| {covered} | {name} | {mean(f):.3f} | {mean(macro):.3f} | {each} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
