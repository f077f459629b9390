"""Write texts with spans as doccano's JSONL: https://doccano.github.io/doccano/"""

import json
from pathlib import Path

from labelwise.corpus.tasks import PREDICTED, REJECTED, UNCOVERED
from labelwise.export.source import Exported, Source


def write_doccano(source: Source, folder: Path) -> Exported:
    """Write all.jsonl.

    The rows have equal keys, as doccano can't import them otherwise, and are ASCII, whose encoding it can't mistake. It
    keeps all but text and label as data about the text. What is imported is an annotation there, so a prediction has
    its spans twice: the merge compares them.
    """
    with (folder / "all.jsonl").open("w", encoding="ascii") as file:
        for doc in source.read():
            more = {PREDICTED: doc.spans} if doc.predicted else {UNCOVERED: doc.unknown, REJECTED: doc.rejected}
            file.write(json.dumps({"text": doc.text, "label": doc.spans, "doc": doc.name, **more}) + "\n")
    return Exported(source.texts, source.spans)
