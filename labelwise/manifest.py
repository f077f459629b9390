"""The manifest of a merged corpus: what it was made with, and what there is. It is written last of all."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwise.errors import InputError

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
    """Write what there is.

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


def check_whole(corpus: Path) -> None:
    """Check that a corpus was merged to its end.

    RAISES (InputError): it has no manifest, which is written last of all.
    """
    if not (corpus / MANIFEST).is_file():
        raise InputError(f"{corpus / MANIFEST}: there is no such file; run the merge, to its end")
