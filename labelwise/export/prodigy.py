"""Write texts with spans as tasks for Prodigy: https://prodi.gy/docs/api-interfaces"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from spacy.tokens import Doc

from labelwise.annotations import DOCUMENT, PREDICTED, UNCOVERED
from labelwise.base.errors import InputError
from labelwise.base.settings import DATASETS
from labelwise.base.text import SpanKey
from labelwise.corpus.tasks import VERDICTS, file_names, make_task, place_in_tokens, task_tokens
from labelwise.datasets.entries import Entry, write_entries
from labelwise.export.source import ExportDoc, Exported, ExportSource

Verdicts = list[tuple[SpanKey, str]]  # spans, each with its answer
FOUND = np.dtype([("margin", "f4"), ("doc", "i8"), ("span", "i4")])  # a predicted span: |p - 0.5|, and its place


def write_together(source: ExportSource, folder: Path) -> Exported:
    """Write all labels to all.jsonl, and rejected spans to verdicts.jsonl."""
    with (folder / "all.jsonl").open("wb") as file:
        for doc in source.read():
            # Then a merge doesn't take unannotated labels as absent; saving a prediction makes it complete.
            extra = {UNCOVERED: doc.unknown} if doc.unknown and not doc.predicted else {}
            # Spans of two labels may overlap, which `ner_manual` can't show.
            file.write(encode_task(doc, doc.spans, source.tokenize, _view_id="spans_manual", **extra))
    verdicts = write_verdicts(source, folder, lambda doc: [(span, "reject") for span in doc.rejected])
    return Exported(source.texts, source.spans, verdicts.total(), source.rejected)


def write_texts(source: ExportSource, folder: Path) -> Exported:
    """Write all texts, without spans, to texts.jsonl, to annotate a new label."""
    with (folder / "texts.jsonl").open("wb") as file:
        for doc in source.read():
            meta = {"meta": {DOCUMENT: doc.name}} if doc.name else {}
            file.write(msgspec.json.encode({"text": doc.text, **meta}) + b"\n")
    return Exported(source.texts, 0)


def write_by_label(source: ExportSource, folder: Path) -> Exported:
    """Write LABEL.jsonl for each label: texts that are complete for it; of predictions, the others.

    Spans of other texts, and all rejected ones, are in verdicts.jsonl. `datasets.yml` declares the files; texts with a
    declared split are in a folder of that name.
    """
    spans = 0
    rows = Counter(dict.fromkeys(source.labels, 0))
    overlapping = set[str]()
    entries = []
    names = file_names(source.labels)
    for split, label in product(source.splits, source.labels):
        path = folder / split / names[label]
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            for doc in source.read(label):
                if doc.split == split and (label in doc.unknown) == source.predicted:
                    spans_of_label = [span for span in doc.spans if span[2] == label]
                    if any(one[1] > other[0] for one, other in pairwise(spans_of_label)):  # they are sorted
                        overlapping.add(label)
                    file.write(encode_task(doc, spans_of_label, source.tokenize))
                    rows[label] += 1
                    spans += len(spans_of_label)
        name = f"{split}-{label}" if split else label
        path_there = path.relative_to(folder).as_posix()
        entries.append(Entry(name=name, path=path_there, labels=(label,), kind="complete", split=split or "auto"))
    verdicts = Counter[str]()
    if not source.predicted:
        if verdicts := write_verdicts(source, folder, _verdicts_by_label):
            name = VERDICTS
            while any(entry.name == name for entry in entries):
                name += "_"
            labels_with_verdicts = tuple(label for label in source.labels if label in verdicts)
            entries.append(Entry(name=name, path=f"{VERDICTS}.jsonl", labels=labels_with_verdicts, kind="binary"))
        (folder / DATASETS).write_text(write_entries(entries), encoding="utf8")
    warnings = []
    if overlapping:
        files = ", ".join(names[label] for label in source.labels if label in overlapping)
        warnings.append((f"Spans overlap in {files}", "Load such a file into spans.manual; ner.manual can't show them"))
    if empty := ", ".join(label for label in rows if not rows[label]):
        verb = "aren't" if source.predicted else "are"
        warnings.append((f"No row for {empty}", f"LABEL.jsonl has the texts that {verb} complete for the label"))
    return Exported(rows.total(), spans, verdicts.total(), source.rejected, warnings)


def write_binary(source: ExportSource, folder: Path) -> Exported:
    """Write LABEL.jsonl for each label: a row per predicted span, as in `ner.teach`, least certain first.

    Leaves out texts that are complete for the label, repeated texts, and spans that annotators answered. The order is
    uncertainty sampling: Lewis and Gale 1994, https://doi.org/10.1007/978-1-4471-2099-5_1

    RAISES (InputError): if the source has no spans with probabilities.
    """
    if not (source.predicted and source.certain):
        raise InputError(
            "--format prodigy-binary: no predicted span has a probability; give a file that "
            "`python -m scripts.predict` wrote with a per-label pipeline, such as cpu"
        )
    keys = np.fromiter((int(doc.key[:16], 16) for doc in source.read_stored()), "u8")
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True  # of equal texts
    rows = Counter(dict.fromkeys(source.labels, 0))
    names = file_names(source.labels)
    for label in source.labels:
        unanswered = np.fromiter(_unanswered(source, label, first), FOUND)
        unanswered = unanswered[np.argsort(unanswered["margin"], kind="stable")]
        with (folder / names[label]).open("wb") as file:
            for number, doc in zip(unanswered["span"].tolist(), source.read_at(unanswered["doc"]), strict=True):
                span = doc.spans[number]
                meta = {"score": doc.scores[span]}
                file.write(encode_task(doc, [span], source.tokenize, meta, _is_binary=True, _view_id="ner"))
        rows[label] = len(unanswered)
    empty = ", ".join(label for label in rows if not rows[label])
    warnings = [(f"No row for {empty}", "The pipeline finds no span of it that lacks an answer")] if empty else []
    order = "the least certain spans of each label first"
    return Exported(rows.total(), rows.total(), warnings=warnings, ordered_by=order)


def _unanswered(source: ExportSource, label: str, first: np.ndarray) -> Iterator[tuple[float, int, int]]:
    """Yield the predicted spans of a label that lack an answer (FOUND); `first` is False for repeated texts."""
    for number, doc in enumerate(source.read_stored()):
        if first[number] and label in doc.unknown:
            for place, span in enumerate(doc.spans):
                if span[2] == label and span not in doc.answered:
                    yield abs(doc.scores[span] - 0.5), number, place


def _verdicts_by_label(doc: ExportDoc) -> Verdicts:
    accepted = [(span, "accept") for span in doc.spans if span[2] in doc.unknown]
    return sorted([*accepted, *((span, "reject") for span in doc.rejected)])


def write_verdicts(source: ExportSource, folder: Path, judge: Callable[[ExportDoc], Verdicts]) -> Counter[str]:
    """Write verdicts.jsonl, if any: a row per reviewed span, as in `ner.teach`; count rows by label."""
    rows = Counter[str]()
    path = folder / f"{VERDICTS}.jsonl"
    with path.open("wb") as file:
        for doc in source.read():
            for span, answer in judge(doc):
                binary: dict[str, Any] = {"_is_binary": True, "_view_id": "ner", "answer": answer}
                file.write(encode_task(doc, [span], source.tokenize, **binary))
                rows[span[2]] += 1
    if not rows:
        path.unlink()
    return rows


def encode_task(
    doc: ExportDoc,
    marked: Sequence[SpanKey],
    tokenize: Callable[[str], Doc],
    meta: Mapping[str, Any] = {},
    **more: Any,
) -> bytes:
    """Encode a text with its tokens and some of its spans as a line of JSON."""
    plain: list[dict[str, Any]] = [{"start": start, "end": end, "label": name} for start, end, name in marked]
    tokens = task_tokens(tokenize(doc.text), [edge for start, end, _ in marked for edge in (start, end)])
    spans = place_in_tokens(plain, tokens)
    if doc.scores:
        spans = [{**span, "score": doc.scores[key]} for span, key in zip(spans, marked, strict=True)]
    values = {DOCUMENT: doc.name, PREDICTED: "yes" if doc.predicted else ""}
    meta = {**meta, **{name: value for name, value in values.items() if value}}
    keys: dict[str, Any] = {"tokens": tokens, "_view_id": "ner_manual", "spans": spans}
    # An unreviewed prediction has no answer, and a mark for the merge: see `annotations.Task`.
    if not doc.predicted:
        keys["answer"] = "accept"
    if meta:
        keys["meta"] = meta
    return msgspec.json.encode(make_task(doc.text, marked, **keys | more)) + b"\n"
