"""Write texts with spans as Label Studio tasks, with configuration: https://labelstud.io/guide/tasks"""

import colorsys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import msgspec

from labelwise.annotations import REJECTED, UNCOVERED
from labelwise.export.source import ExportDoc, Exported, ExportSource

TURN = 0.618  # of the color circle, between neighboring labels, so that they differ


def write_label_studio(source: ExportSource, folder: Path) -> Exported:
    """Write tasks.json, and config.xml with the labels."""
    with (folder / "tasks.json").open("wb") as file:
        for number, doc in enumerate(source.read()):
            file.write((b",\n" if number else b"[\n") + msgspec.json.encode(make_task(doc, source)))
        file.write(b"\n]\n" if source.texts else b"[\n]\n")
    labels = "".join(
        f'    <Label value={quoteattr(label)} background="{_color(number)}"/>\n'
        for number, label in enumerate(source.labels)
    )
    (folder / "config.xml").write_text(
        f'<View>\n  <Labels name="label" toName="text">\n{labels}  </Labels>\n'
        '  <Text name="text" value="$text"/>\n</View>\n',
        encoding="utf8",
    )
    return Exported(source.texts, source.spans)


def make_task(doc: ExportDoc, source: ExportSource) -> dict[str, Any]:
    """Make a task: gold as an annotation, predictions as a prediction."""
    results: list[dict[str, Any]] = [
        {"id": str(number), "from_name": "label", "to_name": "text", "type": "labels"}
        | {"value": {"start": start, "end": end, "text": doc.text[start:end], "labels": [label]}}
        for number, (start, end, label) in enumerate(doc.spans, 1)
    ]
    if doc.scores:
        results = [result | {"score": doc.scores[span]} for result, span in zip(results, doc.spans, strict=True)]
    data = {"text": doc.text, "doc": doc.name}
    if doc.predicted:
        # Certainty, to sort Label Studio's table of tasks.
        certainty = {"score": max(0.0, 1 - doc.mistakes_per_word())} if source.certain else {}
        return {"data": data, "predictions": [{"model_version": source.version, "result": results, **certainty}]}
    # By default, it takes imported annotations for ground truth, which would win over all others.
    known = {key: value for key, value in ((UNCOVERED, doc.unknown), (REJECTED, doc.rejected)) if value}
    return {"data": data | known, "annotations": [{"ground_truth": False, "result": results}]}


def _color(number: int) -> str:
    parts = colorsys.hls_to_rgb(number * TURN % 1, 0.5, 0.7)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
