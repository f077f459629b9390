"""Data sets, one for each label, with some of the annotation forgotten, as files.

What is annotated is named by one of

- `all`: everything;
- `50%`, or another share: each label on this share of the texts, by hash, independently of the other labels;
- `3 groups`, or another number: texts and labels in so many groups; a group of texts is annotated for its labels;
- `whole 50%`, `whole 3 groups`: as many annotations, but a share of the texts is annotated, for all labels;
- `first 4`, or another number: so many labels, those with the most annotations, on all texts, and no others anywhere.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import Measured, measure

OUT = Path("benchmarks/out/coverage")
TASKS = OUT / "tasks"
ANNOTATED = ("all", "75%", "50%", "25%", "3 groups", "18 groups", "first 1", "first 2", "first 4", "first 9")
TEST_SHARE = 0.25  # of the texts, by hash, if the corpus has no test set

Kept = Callable[[str, str], bool]  # of a text and a label


def command(script: str, *given: Any) -> Measured:
    """Run a script, and measure it."""
    return measure(f"scripts.{script}", *map(str, given))


def share(*what: object) -> float:
    """Draw a number from 0 to 1, by hash."""
    digest = hashlib.blake2b("/".join(map(str, what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def prepare(name: str, folder: Path) -> Path:
    """Convert a brat corpus to data sets, one for each label, in the folders `train` and `test`, unless they are there.

    folder (Path): with `train` and `dev`, which is the test set then, or with all documents.
    """
    tasks = TASKS / name
    if not (tasks / "test").exists():
        if (folder / "dev").exists():
            command("convert_brat", folder / "train", tasks / "train", "--prefix", "train-")
            command("convert_brat", folder / "dev", tasks / "test", "--prefix", "test-", "--split", "test")
        else:
            command("convert_brat", folder, tasks / "both")
            copy(tasks / "both", tasks / "train", lambda text, _: share("split", text) >= TEST_SHARE)
            copy(tasks / "both", tasks / "test", lambda text, _: share("split", text) < TEST_SHARE, split="test")
    return tasks


def declared(tasks: Path) -> list[dict[str, Any]]:
    """Read the declaration of data sets."""
    return yaml.safe_load((tasks / "datasets.yml").read_text(encoding="utf8"))


def copy(tasks: Path, out: Path, kept: Kept, labels: Sequence[str] = (), split: str = "auto") -> None:
    """Copy data sets, those rows that are kept.

    labels (Sequence[str]): copy the data sets of these labels only; of all, if there are none.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    datasets = [dataset for dataset in declared(tasks) if not labels or dataset["labels"][0] in labels]
    for dataset in datasets:
        label = dataset["labels"][0]
        with (tasks / dataset["path"]).open("rb") as rows, (out / dataset["path"]).open("wb") as file:
            file.writelines(row for row in rows if kept(json.loads(row)["text"], label))
        if split != "auto":
            dataset.update(name=f"{split}-{dataset['name']}", split=split)
    (out / "datasets.yml").write_text(yaml.safe_dump(datasets), encoding="utf8")


def by_frequency(tasks: Path) -> list[str]:
    """List the labels, those with the most annotations first."""
    counts = {}
    for dataset in declared(tasks):
        with (tasks / dataset["path"]).open("rb") as rows:
            counts[dataset["labels"][0]] = sum(len(json.loads(row).get("spans", ())) for row in rows)
    return sorted(counts, key=lambda label: (-counts[label], label))


def is_kept(annotated: str, labels: list[str]) -> Kept:
    """Return what tells whether a text is annotated for a label."""
    number = int("".join(re.findall(r"\d", annotated)) or 1)
    if annotated.startswith("whole"):
        part = number / 100 if annotated.endswith("%") else 1 / number
        return lambda text, _: share("whole", text) < part
    if annotated.endswith("%"):
        return lambda text, label: share(text, label) < number / 100
    if annotated.endswith("groups"):
        return lambda text, label: int(share(text) * number) == labels.index(label) % number
    return lambda text, label: True


def forget(tasks: Path, annotated: str) -> list[Path]:
    """Write data sets without what isn't annotated, unless they are there, and return all declarations.

    tasks (Path): what `prepare` returns.
    """
    labels = by_frequency(tasks / "train")[: int(annotated.split()[1])] if annotated.startswith("first") else []
    kept = is_kept(annotated, sorted(dataset["labels"][0] for dataset in declared(tasks / "train")))
    train, test = (tasks / f"{annotated}, {part}" for part in ("train", "test"))
    if not (test / "datasets.yml").exists():
        copy(tasks / "train", train, kept, labels)
        copy(tasks / "test", test, lambda text, label: True, labels)
    return [train / "datasets.yml", test / "datasets.yml"]
