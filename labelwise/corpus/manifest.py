"""The manifest of a merged corpus: what it was made with, and what it holds. It is written last of all."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwise.common.errors import InputError

MANIFEST = "manifest.json"


def write_manifest(
    folder: Path,
    *,
    settings: Any,
    labels: Sequence[str],
    datasets: Mapping[str, int],
    splits: Mapping[str, Any],
    partitions: Mapping[str, str],
) -> None:
    """Write the manifest.

    settings (Any): all that the corpus depends on besides the data, as JSON has it.
    datasets (Mapping[str, int]): rows read of each data set.
    splits (Mapping): for each split, "texts", "words", and "digest", which is the same for the same texts.
    partitions (Mapping[str, str]): SHA-256 of every `.spacy` file.
    """
    manifest = {
        "settings": settings,
        "labels": labels,
        "datasets": datasets,
        "splits": splits,
        "partitions": dict(sorted(partitions.items())),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def read_manifest(corpus: Path) -> dict[str, Any]:
    """Read the manifest of a corpus.

    RAISES (InputError): there is none, so the merge didn't finish.
    """
    check_whole(corpus)
    return json.loads((corpus / MANIFEST).read_text(encoding="utf8"))


def is_corpus(folder: Path) -> bool:
    """Tell whether a folder has the manifest of a merge, whichever version made it."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= {"settings", "splits", "partitions"}


def read_split(split: Path) -> dict[str, Any]:
    """Read what the manifest says of a split, such as corpus/test: its "texts", "words" and "digest".

    RAISES (InputError): it isn't a split of a merged corpus.
    """
    folder = split.resolve()
    splits = read_manifest(folder.parent)["splits"]
    if folder.name not in splits:
        raise InputError(f"{split}: not a split of that corpus; give {' or '.join(splits)}")
    return splits[folder.name]


def check_whole(corpus: Path) -> None:
    """Check that the merge of a corpus finished.

    RAISES (InputError): it has no manifest, which is written last of all.
    """
    if not (corpus / MANIFEST).is_file():
        raise InputError(f"{corpus / MANIFEST}: there is no such file; run the merge to completion")


def find_partitions(path: Path) -> list[Path]:
    """List the `.spacy` files of a folder, sorted.

    RAISES (InputError): there is none.
    """
    files = sorted(path.glob("*.spacy"))
    if not files:
        raise InputError(f"{path}: no .spacy file; run the merge, with a share for this split")
    return files
