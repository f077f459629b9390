"""What becomes of slips that several annotators make: python -m benchmarks.annotators assets/wnut2020_wlp/dev

Each annotator has the gold of a brat corpus with slips of their own: of every hundred spans, `--missed` are missing,
`--shifted` lose or gain a word at one end, and `--added` spans are no entities. All are merged under each policy; F is
that of the merged spans that are learned against those of the gold without slips, over all labels, three seeds.
"""

import argparse
import random
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.measure import Cell, write_result
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import ANNOTATORS, Policies
from labelwise.sources.convert_brat import convert_brat
from labelwise.sources.declarations import DataSet, load_datasets
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import Task, TaskSpan

Key = tuple[int, int, str]


def main() -> None:
    """Write benchmarks/results/annotators.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brat", type=Path)
    for name, percent in (("missed", 10), ("shifted", 10), ("added", 5)):
        parser.add_argument(f"--{name}", type=float, default=percent / 100)
    given = parser.parse_args()
    gold = read_gold(given.brat)
    rows: list[list[Cell]] = []
    for people in (2, 3):
        for name, policy in [*((policy, policy) for policy in ANNOTATORS), ("the first alone", "annotator 0")]:
            scores = sorted(f_of(gold, people, policy, random.Random(seed), given) for seed in range(3))
            rows.append([str(people), name, (scores[1], scores[0], scores[2])])
    note = f"Slips: {given.missed:.0%} missed, {given.shifted:.0%} shifted by a word, {given.added:.0%} added."
    write_result("annotators", {"annotators": "", "policy": "", "F": ".3f"}, rows, note=note)


def read_gold(brat: Path) -> dict[str, tuple[set[Key], set[str]]]:
    """Read all spans of each text, and the labels of the corpus."""
    with tempfile.TemporaryDirectory() as folder:
        convert_brat(brat, Path(folder) / "tasks")
        datasets = load_datasets([Path(folder) / "tasks" / "datasets.yml"])
        labels = {label for dataset in datasets for label in dataset.labels}
        gold: dict[str, tuple[set[Key], set[str]]] = {}
        for dataset in datasets:
            for file in dataset.files:
                for item in read_items(file, ""):
                    if item.task and item.task.text:
                        spans, _ = gold.setdefault(item.task.text, (set(), labels))
                        spans |= {(span.start, span.end, span.label) for span in item.task.spans or ()}
    return gold


def f_of(
    gold: dict[str, tuple[set[Key], set[str]]], people: int, policy: str, rng: random.Random, slips: argparse.Namespace
) -> float:
    """Compute F of what several annotators with slips give, merged, against the gold."""
    both = found = right = 0
    for text, (spans, labels) in gold.items():
        dataset = DataSet("all", (Path("all.jsonl"),), tuple(sorted(labels)))
        answers = []
        for number in range(people):
            marked = [TaskSpan(*span) for span in sorted(set(slip(text, spans, sorted(labels), rng, slips)))]
            task = Task(text, marked, view_id="ner_manual", annotator_id=f"annotator {number}")
            answers.append(Answer(dataset, number + 1, task, dataset.files[0]))
        merged = learned(merge_text(text, answers, Policies(annotators=policy)).accepted)
        expected = learned(spans)
        both, found, right = both + len(merged & expected), found + len(merged), right + len(expected)
    return 2 * both / (found + right)


def learned(spans: Iterable[Key]) -> set[Key]:
    """Keep the spans that a head for each label learns: of those of one label that overlap, the longest."""
    kept: set[Key] = set()
    for start, end, label in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        if not any(label == other and start < last and first < end for first, last, other in kept):
            kept.add((start, end, label))
    return kept


def slip(text: str, spans: set[Key], labels: list[str], rng: random.Random, slips: argparse.Namespace) -> Iterator[Key]:
    """Yield what an annotator marks."""
    words = [place for place in word_places(text) if text[slice(*place)].strip()]
    for start, end, label in sorted(spans):
        if rng.random() >= slips.missed:
            yield shifted(words, start, end, label, rng) if rng.random() < slips.shifted else (start, end, label)
        if rng.random() < slips.added:
            yield (*rng.choice(words), rng.choice(labels))


def shifted(words: list[tuple[int, int]], start: int, end: int, label: str, rng: random.Random) -> Key:
    """Move one end of a span by a word; a span of one word grows."""
    inside = [number for number, (first, last) in enumerate(words) if first < end and start < last]
    grown = [number for number in (inside[0] - 1, inside[-1] + 1) if 0 <= number < len(words)]
    if len(inside) > 1 and rng.random() < 0.5:
        inside = inside[1:] if rng.random() < 0.5 else inside[:-1]
    elif grown:
        inside = sorted([*inside, rng.choice(grown)])
    return words[inside[0]][0], words[inside[-1]][1], label


def word_places(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the words of a text are, between white space."""
    start = 0
    for word in text.split():
        start = text.index(word, start)
        yield start, start + len(word)
        start += len(word)


if __name__ == "__main__":
    main()
