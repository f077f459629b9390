"""Write texts with spans as doccano's JSONL: https://doccano.github.io/doccano/"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelwise.corpus.tasks import PREDICTED, UNCOVERED
from labelwise.export.docs import ExportDoc, worth
from labelwise.export.source import Source, highest_first


def write_doccano(source: Source, folder: Path) -> int:
    """Write all.jsonl, predictions with the least certain first; returns the number of spans.

    The rows have equal keys, as doccano can't import them otherwise, and are ASCII, whose encoding it can't mistake.
    """
    spans = 0

    def lines() -> Iterator[tuple[float, bytes]]:
        """Encode the texts."""
        nonlocal spans
        for doc in source.read():
            spans += len(doc.spans)
            yield worth(doc), json.dumps(make_row(doc)).encode() + b"\n"

    with (folder / "all.jsonl").open("wb") as file:
        file.writelines(highest_first(lines()))
    return spans


def make_row(doc: ExportDoc) -> dict[str, Any]:
    """Make a row; doccano keeps all but text and label as data about the text.

    What is imported is an annotation there, so a prediction has its spans twice: the merge compares them.
    """
    row: dict[str, Any] = {"text": doc.text, "label": doc.spans, "doc": doc.name}
    return row | ({PREDICTED: doc.spans} if doc.predicted else {UNCOVERED: doc.unknown})
