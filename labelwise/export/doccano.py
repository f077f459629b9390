"""Write texts with spans as doccano's JSONL: https://doccano.github.io/doccano/"""

import json
from pathlib import Path

from labelwise.corpus.tasks import PREDICTED, UNCOVERED
from labelwise.export.source import Source


def write_doccano(source: Source, folder: Path) -> int:
    """Write all.jsonl; return the number of spans.

    The rows have equal keys, as doccano can't import them otherwise, and are ASCII, whose encoding it can't mistake. It
    keeps all but text and label as data about the text. What is imported is an annotation there, so a prediction has
    its spans twice: the merge compares them.
    """
    with (folder / "all.jsonl").open("w", encoding="ascii") as file:
        for doc in source.read():
            more = {PREDICTED: doc.spans} if doc.predicted else {UNCOVERED: doc.unknown}
            file.write(json.dumps({"text": doc.text, "label": doc.spans, "doc": doc.name, **more}) + "\n")
    return source.spans
