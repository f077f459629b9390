"""Write texts with spans as tasks for Prodigy: https://prodi.gy/docs/api-interfaces"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import yaml
from spacy.tokens import Doc

from labelwise.corpus.tasks import DATASETS, PREDICTED, UNCOVERED, file_names, input_hash, task_hash, task_tokens
from labelwise.export.source import ExportDoc, Source


def write_together(source: Source, folder: Path) -> int:
    """Write all labels to one file, all.jsonl; return the number of spans."""
    with (folder / "all.jsonl").open("wb") as file:
        file.writelines(encode_task(doc, None, source.tokenize) for doc in source.read())
    return source.spans


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
    spans = 0
    declared = []
    names = file_names(source.labels)
    for split, label in product(source.splits, source.labels):
        path = folder / split / names[label]
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            for doc in source.read(label):
                if doc.split == split and (label in doc.unknown) == source.predicted:
                    file.write(encode_task(doc, label, source.tokenize))
                    spans += sum(name == label for *_, name in doc.spans)
        declared.append(
            {
                "name": f"{split}-{label}" if split else label,
                "path": path.relative_to(folder).as_posix(),
                "labels": [label],
                "kind": "complete",
                "split": split or "auto",
            }
        )
    if not source.predicted:
        (folder / DATASETS).write_text(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True), encoding="utf8")
    return spans


def encode_task(doc: ExportDoc, label: str | None, tokenize: Callable[[str], Doc]) -> bytes:
    """Encode a text with its tokens and its spans of a label, or of all, as a line of JSON."""
    tokens = task_tokens(tokenize(doc.text))
    first = {token["start"]: token["id"] for token in tokens}
    last = {token["end"]: token["id"] for token in tokens}
    plain = [{"start": start, "end": end, "label": name} for start, end, name in doc.spans]
    spans: list[dict[str, Any]] = [
        {**span, "token_start": first[span["start"]], "token_end": last[span["end"]]}
        if span["start"] in first and span["end"] in last
        else span
        for span in plain
    ]
    if doc.scores:
        spans = [{**span, "score": score} for span, score in zip(spans, doc.scores, strict=True)]
    meta = {"doc": doc.name, PREDICTED: "yes" if doc.predicted else ""}
    meta = {name: value for name, value in meta.items() if value}
    text_hash = input_hash(doc.text)
    task = {
        "text": doc.text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, [span for span in plain if label in (None, span["label"])]),
        "_is_binary": False,
        "_view_id": "ner_manual",
        "tokens": tokens,
        "spans": [span for span in spans if label in (None, span["label"])],
        # What nobody has looked at has no answer, and a mark, which the merge knows: see `answers.why_not`.
        **({} if doc.predicted else {"answer": "accept"}),
        **({"meta": meta} if meta else {}),
        # So that a merge doesn't take what nobody has looked for as missing; who saves a prediction has looked.
        **({UNCOVERED: doc.unknown} if label is None and doc.unknown and not doc.predicted else {}),
    }
    return msgspec.json.encode(task) + b"\n"
