"""What is to be looked at, as files: a table, JSON, and for each label tasks that Prodigy opens, best first."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.check.findings import Kind
from labelwise.common.spans import SpanKey
from labelwise.corpus.tasks import file_names, input_hash, task_hash

TABLE, INCONSISTENCIES, SUMMARY, TASKS = "findings.tsv", "inconsistencies.tsv", "check.json", "tasks"


class Finding(msgspec.Struct):
    """An annotation that contradicts the others; offsets are characters.

    score (float): how much speaks for it, in log-odds.
    kind (str): "missing", "spurious", "wrong label" or "wrong boundaries".
    label, form: of the span that is there, or, if none is, of the one that is proposed.
    proposed (list | None): start, end and label of what may rather be there; None if nothing should.
    current (list | None): start, end and label of what is there; None if nothing is.
    explains (int): mistakes of the pipeline on test that are about the same form and label.
    similar (int): findings of this kind with this form and these labels.
    split, doc, key: where the text is: its split, the document's name, and the digest.
    places (list[str]): data set, file and line that the annotation is in, and who annotated, as far as is known.
    datasets (dict): those data sets, each with all the labels that it declares.
    context (str): the text around it.
    why (str): what speaks for it, in words, if it is an inconsistency; see `inconsistencies`.
    """

    score: float
    kind: Kind
    label: str
    form: str
    current: SpanKey | None
    proposed: SpanKey | None
    split: str
    doc: str
    key: str
    context: str
    places: list[str] = []
    datasets: dict[str, tuple[str, ...]] = {}
    explains: int = 0
    similar: int = 1
    why: str = ""

    @property
    def labels(self) -> list[str]:
        """The labels that it is about."""
        return list(dict.fromkeys(span[2] for span in (self.current, self.proposed) if span))

    @property
    def start(self) -> int:
        """Where it begins, in characters."""
        return next((span[0] for span in (self.current, self.proposed) if span), 0)

    @property
    def worth(self) -> float:
        """What fixing it would pay: the mistakes that it explains, as far as it is probable."""
        return self.explains / (1 + math.exp(-self.score))

    def advice(self, text: str) -> str:
        """Say in words what may rather be there."""
        if self.why:
            return self.why
        if self.proposed is None:
            return f"{self.form!r} isn't {self.label} elsewhere"
        start, end, label = self.proposed
        if self.kind == "wrong boundaries":
            return f"{self.form!r} should perhaps be {text[start:end]!r}"
        return f"{text[start:end]!r} is {label} elsewhere"


Text = tuple[str, set[SpanKey]]  # with its accepted spans


def write_table(findings: Sequence[Finding], file: Path) -> None:
    """Write a row for each finding, best first."""
    with file.open("w", encoding="utf8", newline="") as opened:
        table = csv.writer(opened, delimiter="\t", lineterminator="\n")
        names = ["score", "kind", "label", "form", "start", "end", "proposed", "proposed_start", "proposed_end"]
        table.writerow([*names, "explains", "similar", "why", "split", "doc", "places", "context"])
        for one in findings:
            here, better = one.current or ("", "", ""), one.proposed or ("", "", "")
            spans = [*here[:2], better[2], *better[:2]]
            where = [one.explains, one.similar, one.why, one.split, one.doc, "; ".join(one.places), one.context]
            table.writerow([f"{one.score:.2f}", one.kind, one.label, one.form, *spans, *where])


def write_tasks(findings: Iterable[Finding], texts: Mapping[str, Text], labels: Sequence[str], folder: Path) -> None:
    """Write LABEL.jsonl for each label that something was found of: a task for each text, in the findings' order.

    A task says in `meta` what to look at, which `ner.manual` shows. It has the spans of the label as they are, and of
    all labels of the data sets that it is from, as an answer that is saved there again is about these, too.
    """
    folder.mkdir()
    names = file_names(labels)
    by_label: dict[str, dict[str, list[Finding]]] = {}
    for one in findings:
        for label in one.labels:
            by_label.setdefault(label, {}).setdefault(one.key, []).append(one)
    for label, by_text in by_label.items():
        with (folder / names[label]).open("wb") as file:
            for key, found in by_text.items():
                file.write(msgspec.json.encode(_task(*texts[key], label, found)) + b"\n")


def _task(text: str, gold: set[SpanKey], label: str, findings: Sequence[Finding]) -> dict[str, Any]:
    text_hash = input_hash(text)
    declared = [labels for one in findings for labels in one.datasets.values() if label in labels]
    labels = sorted({label}.union(*declared))
    spans = [{"start": start, "end": end, "label": name} for start, end, name in sorted(gold) if name in labels]
    meta = {
        "look": "; ".join(dict.fromkeys(f"{one.start}: {one.advice(text)}" for one in findings)),
        "doc": findings[0].doc,
        "from": "; ".join(dict.fromkeys(place for one in findings for place in one.places)),
        "score": round(findings[0].score, 2),
        "labels": ",".join(labels) if len(labels) > 1 else "",
    }
    return {
        "text": text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, spans),
        "_view_id": "ner_manual",
        "spans": spans,
        "answer": "accept",
        "meta": {name: value for name, value in meta.items() if value != ""},
    }
