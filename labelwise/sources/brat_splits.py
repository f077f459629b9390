"""The splits of a brat corpus: the folders that are named after them, and the kinds of files that one of them lacks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from labelwise.corpus.manifest import Split
from labelwise.sources.brat import SUFFIXES

SPLIT_FOLDERS: Mapping[str, Split] = {
    "train": "train",
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    "test": "test",
}
Tell = Callable[[str], Any]


def split_folders(stems: Sequence[Path], brat_dir: Path, tell: Tell) -> dict[str, Split]:
    """Find the splits that the folders of a corpus are named after: train, dev (or valid, validation, val), and test.

    Where dev or test has no folder, the texts of train are split by hash, so that there is one.

    tell (Callable): is told the splits.
    """
    names = sorted({parts[0] for stem in stems if (parts := stem.relative_to(brat_dir).parts[:-1])})
    found = {name: SPLIT_FOLDERS[name.lower()] for name in names if name.lower() in SPLIT_FOLDERS}
    if not found:
        return {}
    lacking = [split for split in ("dev", "test") if split not in found.values()]
    kept = {name: split for name, split in found.items() if split != "train" or not lacking}
    tell("Splits by folder: " + ", ".join(f"{name} is {split}" for name, split in kept.items()))
    if lacking:
        without = " and ".join(lacking)
        tell(f"No folder for {without}: other texts are split by hash, by dev_ratio and test_ratio in project.yml")
    return kept


def find_lacking(kinds: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """Find the splits of which no document has a kind of annotation file that documents of others have.

    kinds (Mapping): by split, how many "documents" there are, and how many have each kind.
    """
    lacking: dict[str, dict[str, int]] = {}
    for split, suffix in product(sorted(kinds), SUFFIXES):
        if not kinds[split][suffix] and any(others[suffix] for others in kinds.values()):
            lacking.setdefault(split, {})[suffix] = kinds[split]["documents"]
    return lacking
