"""Write texts with spans as tasks for Prodigy: https://prodi.gy/docs/api-interfaces"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec
import numpy as np

from labelwise.corpus.tasks import PREDICTED, LabelFiles, file_names, input_hash, task_hash
from labelwise.export.docs import ExportDoc


def write_together(docs: Iterable[ExportDoc], folder: Path) -> int:
    """Write all labels to one file, all.jsonl, in the order of the texts; returns the number of spans."""
    spans = 0
    with (folder / "all.jsonl").open("wb") as file:
        for doc in docs:
            file.write(encode_task(doc, None))
            spans += len(doc.spans)
    return spans


def write_texts(docs: Iterable[ExportDoc], folder: Path) -> None:
    """Write all texts, without any span, to one file, texts.jsonl: what a new label is annotated on."""
    with (folder / "texts.jsonl").open("wb") as file:
        for doc in docs:
            meta = {"meta": {"doc": doc.name}} if doc.name else {}
            file.write(msgspec.json.encode({"text": doc.text, **meta}) + b"\n")


def write_by_label(docs: Iterable[ExportDoc], folder: Path, labels: Sequence[str]) -> int:
    """Write LABEL.jsonl for each label: the texts that are complete for it; returns the number of spans."""
    spans = 0
    with LabelFiles(folder, labels) as files:
        for doc in docs:
            for label in labels:
                if label not in doc.unknown:
                    files.write(label, encode_task(doc, label))
                    spans += sum(name == label for _, _, name in doc.spans)
    return spans


def write_to_annotate(read: Callable[[], Iterator[ExportDoc]], folder: Path, labels: Sequence[str]) -> int:
    """Write LABEL.jsonl for each label: the texts that aren't complete for it, with what was predicted.

    Those come first of which a pipeline is least certain; without probabilities, those with the most spans.

    read (Callable): yields the texts; it is called twice.
    RETURNS (int): the number of spans.
    """
    spans = 0
    names = file_names(labels)
    for label in labels:
        worth = np.array([_worth(doc, label) for doc in read()])
        order = np.argsort(-worth, kind="stable")
        sizes = np.zeros(len(worth), np.int64)
        with TemporaryFile() as lines:
            for number, doc in enumerate(read()):
                if worth[number] >= 0:
                    sizes[number] = lines.write(encode_task(doc, label))
                    spans += sum(name == label for _, _, name in doc.spans)
            starts = np.cumsum(sizes) - sizes
            with (folder / names[label]).open("wb") as file:
                for number in order:
                    lines.seek(starts[number])
                    file.write(lines.read(sizes[number]))
    return spans


def _worth(doc: ExportDoc, label: str) -> float:
    """Say how much there is to learn from a text; less than 0 if it is complete for the label."""
    if label not in doc.unknown:
        return -1.0
    spans = [span for span in doc.spans if span[2] == label]
    if not doc.scores:
        return float(len(spans))
    return max((1 - abs(2 * doc.scores[span] - 1) for span in spans), default=0.0)


def encode_task(doc: ExportDoc, label: str | None) -> bytes:
    """Encode a text with its spans of a label, or of all, as a line of JSON."""
    spans: list[dict[str, Any]] = [
        {"start": start, "end": end, "label": name}
        | ({"score": doc.scores[start, end, name]} if (start, end, name) in doc.scores else {})
        for start, end, name in doc.spans
        if label in (None, name)
    ]
    meta = ({"doc": doc.name} if doc.name else {}) | ({PREDICTED: "yes"} if doc.predicted else {})
    text_hash = input_hash(doc.text)
    plain = [{key: span[key] for key in ("start", "end", "label")} for span in spans]
    task = {
        "text": doc.text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, plain),
        "_is_binary": False,
        "_view_id": "ner_manual",
        "spans": spans,
        # What nobody has looked at has no answer, and a mark, which the merge knows: see `answers.why_not`.
        **({} if doc.predicted else {"answer": "accept"}),
        **({"meta": meta} if meta else {}),
        # So that a merge doesn't take what nobody has looked for as missing.
        **({"_labelwise_uncovered": dict(doc.unknown)} if label is None and doc.unknown else {}),
    }
    return msgspec.json.encode(task) + b"\n"
