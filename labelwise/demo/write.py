"""Write the demo corpus: a brat folder, Prodigy datasets, or both, each with half of the labels."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Literal

import spacy

from labelwise.base.files import atomic, check_replaceable, check_unchanged, list_digests
from labelwise.base.parallel import Progress, no_progress
from labelwise.base.settings import DATASETS
from labelwise.corpus.tasks import make_task, task_tokens
from labelwise.datasets.entries import Entry, write_entries
from labelwise.demo.corpus import DemoDoc, add_noise, count_words, make_doc
from labelwise.demo.grammar import LABELS

DemoFormat = Literal["brat", "prodigy", "both"]
ANNOTATORS = ("alice", "bob", "carol", "dan")
MARK = ".demo.json"  # the digests of the files of a demo corpus


def make_demo(
    out: Path,
    *,
    format: DemoFormat = "brat",
    docs: int = 400,
    labels: int = len(LABELS),
    words: int | None = None,
    seed: int = 0,
    noise: float = 0.0,
    progress: Progress = no_progress,
) -> Counter[str]:
    """Write a demo corpus, replacing an earlier one; return its number of documents, words and spans."""
    chosen = LABELS[:labels]
    counts: Counter[str] = Counter()

    def make_docs() -> Iterator[DemoDoc]:
        for index in progress(range(docs), "make"):
            doc = add_noise(make_doc(index, seed=seed, labels=chosen, words=words), noise, seed=seed, labels=chosen)
            counts.update(documents=1, words=count_words(doc.text), spans=len(doc.spans))
            yield doc

    write_docs(make_docs(), chosen, out, format)
    return counts


def write_docs(docs: Iterable[DemoDoc], labels: Sequence[str], out: Path, format: DemoFormat) -> None:
    """Write documents to a folder: OUT, or OUT/brat and OUT/prodigy, each with every second label."""
    check_replaceable(out, (MARK,), "demo corpus")
    check_unchanged(out, MARK)
    in_brat = {"brat": labels, "prodigy": (), "both": labels[::2]}[format]
    in_prodigy = [label for label in labels if label not in in_brat]
    with atomic(out, folders=[out]) as [folder], ExitStack() as stack:
        brat, prodigy = (folder / ("" if format != "both" else name) for name in ("brat", "prodigy"))
        brat.mkdir(parents=True)
        prodigy.mkdir(exist_ok=True)
        files = {label: stack.enter_context((prodigy / f"{label}.jsonl").open("wb")) for label in in_prodigy}
        if format != "brat":
            entries = [
                Entry(name=_name(label), path=f"{label}.jsonl", labels=(label,), kind="complete")
                for label in in_prodigy
            ]
            (prodigy / DATASETS).write_text(write_entries(entries))
        nlp = spacy.blank("en")
        for doc, number in zip(docs, count(), strict=False):
            tokens = task_tokens(nlp(doc.text)) if files else []
            if format != "prodigy":
                write_brat(doc, in_brat, brat)
            for shift, (label, file) in enumerate(files.items()):
                annotator = f"{_name(label)}-{ANNOTATORS[(number + shift) % len(ANNOTATORS)]}"
                file.write(encode_task(doc, tokens, label, annotator, number))
        stack.close()
        (folder / MARK).write_text(json.dumps({"files": list_digests(folder)}))


def write_brat(doc: DemoDoc, labels: Sequence[str], folder: Path) -> None:
    """Write a document as DOMAIN/doc-00000.txt and .ann."""
    file = folder / doc.path
    file.parent.mkdir(exist_ok=True)
    file.write_text(doc.text, encoding="utf-8", newline="")
    spans = (span for span in doc.spans if span[2] in labels)
    lines = (f"T{n}\t{label} {start} {end}\t{doc.text[start:end]}\n" for n, (start, end, label) in enumerate(spans, 1))
    file.with_suffix(".ann").write_text("".join(lines), encoding="utf-8", newline="")


def encode_task(doc: DemoDoc, tokens: list[dict[str, Any]], label: str, annotator: str, number: int) -> bytes:
    """Encode a document as a line of Prodigy's JSONL, annotated for one label."""
    task = make_task(
        doc.text,
        tokens=tokens,
        _view_id="ner_manual",
        spans=[{"start": start, "end": end, "label": name} for start, end, name in doc.spans if name == label],
        answer="accept",
        _timestamp=1_700_000_000 + number,
        _annotator_id=annotator,
        _session_id=annotator,
    )
    return json.dumps(task, separators=(",", ":")).encode() + b"\n"


def _name(label: str) -> str:
    return label.lower().replace("_", "-")
