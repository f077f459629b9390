"""Write texts with spans as tasks for Prodigy: https://prodi.gy/docs/api-interfaces"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import yaml

from labelwise.corpus.tasks import DATASETS, PREDICTED, UNCOVERED, LabelFiles, file_names, input_hash, task_hash
from labelwise.export.docs import ExportDoc, worth
from labelwise.export.source import Source, highest_first


def write_together(source: Source, folder: Path) -> int:
    """Write all labels to one file, all.jsonl, in the order of the texts; returns the number of spans."""
    spans = 0
    with (folder / "all.jsonl").open("wb") as file:
        for doc in source.read():
            file.write(encode_task(doc, None))
            spans += len(doc.spans)
    return spans


def write_texts(source: Source, folder: Path) -> int:
    """Write all texts, without any span, to one file, texts.jsonl: what a new label is annotated on."""
    with (folder / "texts.jsonl").open("wb") as file:
        for doc in source.read():
            meta = {"meta": {"doc": doc.name}} if doc.name else {}
            file.write(msgspec.json.encode({"text": doc.text, **meta}) + b"\n")
    return 0


def write_by_label(source: Source, folder: Path) -> int:
    """Write LABEL.jsonl for each label: the texts that are complete for it; of predictions, those that aren't.

    What is complete is declared in `datasets.yml`; texts with a declared split are in a folder of that name.

    RETURNS (int): the number of spans.
    """
    if source.predicted:
        return write_to_annotate(source, folder)
    spans = 0
    with ExitStack() as stack:
        files: dict[str, LabelFiles] = {}
        for doc in source.read():
            if doc.split not in files:
                (folder / doc.split).mkdir(exist_ok=True)
                files[doc.split] = stack.enter_context(LabelFiles(folder / doc.split, source.labels))
            for label in source.labels:
                if label not in doc.unknown:
                    files[doc.split].write(label, encode_task(doc, label))
                    spans += sum(name == label for _, _, name in doc.spans)
        declared = [
            {
                "name": f"{split}-{label}" if split else label,
                "path": path.relative_to(folder).as_posix(),
                "labels": [label],
                "kind": "complete",
                "split": split or "auto",
            }
            for split, made in files.items()
            for label, path in made.paths.items()
        ]
    (folder / DATASETS).write_text(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True), encoding="utf8")
    return spans


def write_to_annotate(source: Source, folder: Path) -> int:
    """Write LABEL.jsonl for each label: the texts that aren't complete for it, with what was predicted.

    Those come first of which a pipeline is least certain; without probabilities, those with the most spans.

    RETURNS (int): the number of spans.
    """
    spans = 0

    def lines(label: str) -> Iterator[tuple[float, bytes]]:
        """Encode the texts for a label."""
        nonlocal spans
        for doc in source.read():
            if label in doc.unknown:
                spans += sum(name == label for _, _, name in doc.spans)
                yield worth(doc, label), encode_task(doc, label)

    for label, name in file_names(source.labels).items():
        with (folder / name).open("wb") as file:
            file.writelines(highest_first(lines(label)))
    return spans


def encode_task(doc: ExportDoc, label: str | None) -> bytes:
    """Encode a text with its spans of a label, or of all, as a line of JSON."""
    spans: list[dict[str, Any]] = [
        {"start": start, "end": end, "label": name}
        | ({"score": doc.scores[start, end, name]} if (start, end, name) in doc.scores else {})
        for start, end, name in doc.spans
        if label in (None, name)
    ]
    meta = {"doc": doc.name, PREDICTED: "yes" if doc.predicted else "", "labels": label if doc.predicted else ""}
    meta = {name: value for name, value in meta.items() if value}
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
        # So that a merge doesn't take what nobody has looked for as missing; who saves a prediction has looked.
        **({UNCOVERED: dict(doc.unknown)} if label is None and doc.unknown and not doc.predicted else {}),
    }
    return msgspec.json.encode(task) + b"\n"
