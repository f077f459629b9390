"""F1 of a corpus merged from several annotators with slips: python -m benchmarks.annotators assets/wnut2020_wlp/dev

Each annotator has the gold of a brat corpus with different slips. F1 is of the merged entities against the gold, over
all labels, with three seeds.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import numpy as np
import typer
import yaml

from benchmarks.measure import Cell, write_result
from benchmarks.public import Task
from labelwise.base.counts import count_spans, score_table
from labelwise.corpus.annotation import SpanKey
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.datasets.convert_brat import convert_brat
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.policies import ANNOTATORS
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions

SEEDS = 3
Place = tuple[int, int]  # of a word, in characters


class Slips(NamedTuple):
    """Shares of spans that an annotator misses, shifts by a word, and adds."""

    missed: float
    shifted: float
    added: float


def write_tasks(
    tasks: list[Task], labels: list[str], people: int, folder: Path, rng: random.Random, how: Slips
) -> None:
    """Write a dataset for each annotator, with different slips."""
    folder.mkdir()
    declared = [{"name": f"set {n}", "path": f"{n}.jsonl", "labels": labels} for n in range(people)]
    (folder / "datasets.yml").write_text(yaml.safe_dump(declared), encoding="utf8")
    for n in range(people):
        with (folder / f"{n}.jsonl").open("w", encoding="utf8") as file:
            for task in tasks:
                marked = {(span["start"], span["end"], span["label"]) for span in task["spans"]}
                slipped = sorted(set(slip(task["text"], marked, labels, rng, how)))
                spans = [{"start": start, "end": end, "label": label} for start, end, label in slipped]
                file.write(json.dumps({**task, "spans": spans, "_annotator_id": f"annotator {n}"}) + "\n")


def merge(folder: Path, policy: str) -> dict[str, set[SpanKey]]:
    """Merge datasets; return the entities by text."""
    settings = Settings(annotators=policy, dev_ratio=0, test_ratio=0, near_duplicates="off")
    merge_data([folder / "datasets.yml"], folder / "corpus", settings)
    files = find_partitions(folder / "corpus/train")
    return {stored.text: stored.entities() for file in files for stored in read_stored_docs(file)}


def slip(text: str, spans: set[SpanKey], labels: list[str], rng: random.Random, how: Slips) -> Iterator[SpanKey]:
    """Yield an annotator's spans."""
    words = list(word_places(text))
    for start, end, label in sorted(spans):
        if rng.random() >= how.missed:
            yield shift(words, (start, end, label), rng) if rng.random() < how.shifted else (start, end, label)
        if rng.random() < how.added:
            yield (*rng.choice(words), rng.choice(labels))


def shift(words: list[Place], span: SpanKey, rng: random.Random) -> SpanKey:
    """Move one end of a span by a word; a span of one word grows."""
    inside = [number for number, (first, last) in enumerate(words) if first < span[1] and span[0] < last]
    grown = [number for number in (inside[0] - 1, inside[-1] + 1) if 0 <= number < len(words)]
    if len(inside) > 1 and rng.random() < 0.5:
        inside = inside[1:] if rng.random() < 0.5 else inside[:-1]
    elif grown:
        inside = sorted([*inside, rng.choice(grown)])
    return words[inside[0]][0], words[inside[-1]][1], span[2]


def word_places(text: str) -> Iterator[Place]:
    """Yield the offsets of words between white space."""
    start = 0
    for word in text.split():
        start = text.index(word, start)
        yield start, start + len(word)
        start += len(word)


def f_of(entities: dict[str, set[SpanKey]], gold: dict[str, set[SpanKey]]) -> float:
    """Compute F1 of entities by text."""
    labels = sorted({label for spans in gold.values() for *_, label in spans})
    counts = [count_spans(spans, entities[text], labels) for text, spans in gold.items()]
    return score_table(np.sum(counts, 0), labels).f or 0.0


def main(
    brat: Annotated[Path, typer.Argument(help="Folder of brat documents")],
    missed: Annotated[float, typer.Option(help="Share of the spans that are left out")] = 0.1,
    shifted: Annotated[float, typer.Option(help="Share of the spans that are shifted by a word")] = 0.1,
    added: Annotated[float, typer.Option(help="Spans that are added, as a share")] = 0.05,
) -> None:
    """Merge two and three people's annotations by each policy, and store the result."""
    how, rows = Slips(missed, shifted, added), list[list[Cell]]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        convert_brat(brat, folder / "brat", BratOptions(split="auto"))
        lines = (folder / "brat/auto.jsonl").read_text(encoding="utf8").splitlines()
        tasks = [task for task in map(json.loads, lines) if "text" in task]
        labels = sorted({span["label"] for task in tasks for span in task["spans"]})
        gold = merge(folder / "brat", "half")
        for people in (2, 3):
            for seed in range(SEEDS):
                write_tasks(tasks, labels, people, folder / f"{people}-{seed}", random.Random(seed), how)
            for shown, policy in [*((policy, policy) for policy in ANNOTATORS), ("the first alone", "annotator 0")]:
                scores = sorted(f_of(merge(folder / f"{people}-{seed}", policy), gold) for seed in range(SEEDS))
                rows.append([str(people), shown, (scores[1], scores[0], scores[2])])
    note = f"Slips: {missed:.0%} missed, {shifted:.0%} shifted by a word, {added:.0%} added."
    write_result("annotators", {"annotators": "", "policy": "", "F1": ".3f"}, rows, note=note)


if __name__ == "__main__":
    typer.run(main)
