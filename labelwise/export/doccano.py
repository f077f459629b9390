"""Write texts with spans as doccano's JSONL: https://doccano.github.io/doccano/"""

import json
from itertools import accumulate
from pathlib import Path

from labelwise.annotations import PREDICTED, REJECTED, UNCOVERED
from labelwise.export.source import Exported, ExportSource


def write_doccano(source: ExportSource, folder: Path) -> Exported:
    """Write all.jsonl.

    The rows have equal keys, because doccano can't import them otherwise, and are ASCII, whose encoding is unambiguous.
    doccano keeps other keys than text and label as metadata, and takes imported spans for annotations, so a prediction
    has its spans twice, for the merge to compare. Offsets count UTF-16 code units.
    """
    with (folder / "all.jsonl").open("w", encoding="ascii") as file:
        for doc in source.read():
            units = [0, *accumulate(1 + (char > "\uffff") for char in doc.text)]
            spans, rejected = (
                [(units[start], units[end], label) for start, end, label in group]
                for group in (doc.spans, doc.rejected)
            )
            extra = {PREDICTED: spans} if doc.predicted else {UNCOVERED: doc.unknown, REJECTED: rejected}
            file.write(json.dumps({"text": doc.text, "label": spans, "doc": doc.name, **extra}) + "\n")
    return Exported(source.texts, source.spans)
