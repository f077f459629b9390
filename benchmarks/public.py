"""Public corpora, merged for a benchmark with all or a part of the annotation.

`weasel assets benchmarks --extra` fetches them. A corpus is a folder of brat documents, or a file of Prodigy tasks.
Test is its folder dev, if any, and a quarter of the other texts, by hash; dev is a tenth of the rest.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from labelwise.corpus.ledger import Ledger
from labelwise.datasets.convert_brat import convert_brat
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import read_settings

ANNOTATED = {
    "all": "all labels on all texts",
    "labels": "a third of the labels on each text",
    "texts": "all labels on a third of the texts",
}
GROUPS = 3  # of texts, and of labels
TEST = 0.25  # of the texts that no folder puts into a split
Task = dict[str, Any]


def chance(*parts: str) -> float:
    """Return a number from 0 to 1 by the hash of its arguments."""
    return zlib.crc32("/".join(parts).encode()) / 2**32


def read_tasks(corpus: Path, folder: Path) -> tuple[list[Task], list[Task]]:
    """Read a corpus's tasks: for train and dev, and for test."""
    if corpus.is_dir():
        convert_brat(corpus, folder / "brat")
    files = [corpus] if corpus.is_file() else [folder / f"brat/{split}.jsonl" for split in ("auto", "train", "dev")]
    train: list[Task] = []
    test: list[Task] = []
    for file in files:
        for task in map(json.loads, file.read_text(encoding="utf8").splitlines() if file.is_file() else ()):
            if "text" in task and task.get("answer", "accept") == "accept":
                drawn = file.stem not in ("train", "dev") and chance("test", task["text"]) < TEST
                (test if drawn or file.stem == "dev" else train).append(task)
    return train, test


def write_rows(path: Path, rows: Iterable[Task]) -> None:
    """Write rows as JSONL."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")


def merge_tasks(
    datasets: Mapping[str, Iterable[Task]], entries: Sequence[Mapping[str, Any]], folder: Path, **settings: Any
) -> tuple[Path, Ledger]:
    """Write tasks and their declaration into a folder, and merge them; return the corpus and the counts of outcomes.

    datasets (Mapping): tasks by dataset.
    entries (Sequence): entries of datasets.yml, without `path`.
    settings: of the section merge, in place of project.yml's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, tasks in datasets.items():
        write_rows(folder / f"{name}.jsonl", tasks)
    declared = [{**entry, "path": f"{entry['name']}.jsonl"} for entry in entries]
    (folder / "datasets.yml").write_text(yaml.safe_dump(declared), encoding="utf8")
    merge_settings = msgspec.structs.replace(read_settings(Path("project.yml")), near_duplicates="off", **settings)
    return folder / "corpus", merge_data([folder / "datasets.yml"], folder / "corpus", merge_settings)


def merge(corpus: Path, annotated: str, folder: Path, group: int | None = None, *, choice: bool = False) -> Path:
    """Merge a corpus with a part of its annotation; return the merged one's folder.

    group (int | None): of "labels", keep only this group of texts and labels, annotated in full.
    choice (bool): hold out a quarter of the texts of train as test, by hash, and leave the corpus's test alone.
    """
    train, test = read_tasks(corpus, folder)
    if choice:
        drawn = [chance("choice", task["text"]) < TEST for task in train]
        train, test = ([task for task, out in zip(train, drawn, strict=True) if out is held] for held in (False, True))
    labels = sorted({span["label"] for task in (*train, *test) for span in task["spans"]})
    of_groups: list[list[Task]] = [[] for _ in range(GROUPS)]
    for task in train:
        of_groups[int(GROUPS * chance("group", task["text"]))].append(task)
    declared = [("test", test, labels if group is None else labels[group::GROUPS], "test")]
    if annotated == "labels":
        groups = range(GROUPS) if group is None else [group]
        declared += [(f"group-{n}", of_groups[n], labels[n::GROUPS], "auto") for n in groups]
    else:
        declared.append(("train", of_groups[0] if annotated == "texts" else train, labels, "auto"))
    merged, _ = merge_tasks(
        {
            name: [{**task, "spans": [span for span in task["spans"] if span["label"] in known]} for task in tasks]
            for name, tasks, known, _ in declared
        },
        [{"name": name, "labels": known, "split": split} for name, _, known, split in declared],
        folder,
        dev_ratio=0.1,
        test_ratio=0.0,
        coverage="by-label",
    )
    return merged
