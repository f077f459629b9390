"""Write texts with spans as tasks for Label Studio, and its labelling configuration: https://labelstud.io/guide/tasks"""

import colorsys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import msgspec

from labelwise.corpus.tasks import UNCOVERED
from labelwise.export.docs import ExportDoc, worth
from labelwise.export.source import Source, highest_first

TURN = 0.618  # of the circle of colours, from one label to the next, so that neighbours differ


def write_label_studio(source: Source, folder: Path) -> int:
    """Write tasks.json, predictions with the least certain first, and config.xml; returns the number of spans."""
    spans = 0

    def lines() -> Iterator[tuple[float, bytes]]:
        """Encode the texts."""
        nonlocal spans
        for doc in source.read():
            spans += len(doc.spans)
            yield worth(doc), msgspec.json.encode(make_task(doc, source))

    with (folder / "tasks.json").open("wb") as file:
        for number, line in enumerate(highest_first(lines())):
            file.write((b",\n" if number else b"[\n") + line)
        file.write(b"\n]\n")
    (folder / "config.xml").write_text(make_config(source), encoding="utf8")
    return spans


def make_task(doc: ExportDoc, source: Source) -> dict[str, Any]:
    """Make a task: gold is an annotation of it, and what was predicted is a prediction."""
    results = [
        {"id": str(number), "from_name": "label", "to_name": "text", "type": "labels"}
        | {"value": {"start": start, "end": end, "text": doc.text[start:end], "labels": [label]}}
        | ({"score": doc.scores[start, end, label]} if (start, end, label) in doc.scores else {})
        for number, (start, end, label) in enumerate(doc.spans, 1)
    ]
    data = {"text": doc.text, "doc": doc.name}
    if doc.predicted:
        # Certainty, by which its table of tasks can be sorted.
        score = {"score": 1 - worth(doc)} if source.certain else {}
        return {
            "data": data,
            "predictions": [{"model_version": source.version, "result": results, **score}],
        }
    # It takes imported annotations for ground truth, which would win over all others, unless they say otherwise.
    uncovered = {UNCOVERED: doc.unknown} if doc.unknown else {}
    return {"data": data | uncovered, "annotations": [{"ground_truth": False, "result": results}]}


def make_config(source: Source) -> str:
    """Make the configuration of a project: its labels, and the text."""
    labels = "".join(
        f'    <Label value={quoteattr(label)} background="{_colour(number)}"/>\n'
        for number, label in enumerate(source.labels)
    )
    return (
        f'<View>\n  <Labels name="label" toName="text">\n{labels}  </Labels>\n'
        '  <Text name="text" value="$text"/>\n</View>\n'
    )


def _colour(number: int) -> str:
    parts = colorsys.hls_to_rgb(number * TURN % 1, 0.5, 0.7)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
