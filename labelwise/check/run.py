"""Check a corpus: count, let pipelines that were trained without a text give their opinion, and list what to look at.

1. Count how often each form is marked with each label, and how often it isn't (`forms`): two passes over the corpus.
2. Train a pipeline for each fold, without the fold (`folds`).
3. Find what contradicts the others, text by text (`findings`), and keep the best findings of each label.
4. Look up where they are from: one pass over the sources, and which mistakes on test they are about.
5. Write work lists (`worklists`).
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from labelwise.check.findings import Candidate, Place, find_candidates
from labelwise.check.folds import CheckedDoc, add_opinions, load_fold, read_docs, train_fold
from labelwise.check.look_up import explain, locate, read_texts
from labelwise.check.worklists import SUMMARY, TABLE, TASKS, Finding, write_table, write_tasks
from labelwise.common.errors import InputError
from labelwise.common.keys import text_key
from labelwise.common.outputs import check_replaceable, own_name, remove, staged
from labelwise.corpus.docbin_reader import merged_data
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import read_manifest
from labelwise.sources.declarations import load_datasets

AROUND = 40  # characters of context on either side
FEW = 20  # spans in train below which a label has few


class Group(msgspec.Struct):
    """Findings of a kind with the same form and labels.

    explains (int): mistakes on test that are about them; see `Finding`.
    """

    kind: str
    label: str
    form: str
    proposed: str
    findings: int
    explains: int
    score: float


class Summary(msgspec.Struct):
    """What a check found.

    texts (int): those looked at.
    findings (dict): by label and kind, all there were, kept or not.
    groups (list[Group]): of those kept; first what explains the most mistakes, then the largest.
    few (dict): labels with few spans in train, each with their number.
    only (dict): labels whose spans are in one split alone, each with the split.
    without_letters (dict): by label, spans that have neither letters nor digits.
    near_duplicates (int): pairs of texts that are nearly equal, in two splits.
    """

    texts: int
    findings: dict[str, dict[str, int]]
    groups: list[Group]
    few: dict[str, int]
    only: dict[str, str]
    without_letters: dict[str, int]
    near_duplicates: int


def check(
    corpus: Path,
    datasets: Sequence[Path],
    out: Path,
    *,
    config: Path,
    folds: int = 3,
    most: int = 500,
    predictions: Path | None = None,
    tell: Callable[[str], Any] = lambda message: None,
    **options: Any,
) -> Summary:
    """Check the annotation of a corpus, and write work lists to a folder, which is replaced as a whole.

    datasets (Sequence[Path]): the declarations that the corpus was merged from.
    config (Path): of the pipelines of the folds.
    folds (int): how many; 0 for no opinions, which takes seconds, and finds much less.
    most (int): findings of each label that are kept.
    predictions (Path | None): those for test, whose mistakes may be explained.
    tell (Callable): is told what is going on.
    options (Any): those of `train.run.train`, for the pipelines.
    RAISES (InputError): a number is out of its range, there is no corpus, `out` has something else, or what `train`
        raises.
    """
    if folds == 1 or folds < 0:
        raise InputError(f"--folds {folds}: give at least 2, or 0 for none")
    if most < 1:
        raise InputError(f"--most {most}: give at least 1")
    check_replaceable(out, (TABLE, SUMMARY), "check")
    manifest = read_manifest(corpus)
    labels = manifest["labels"]
    declared = load_datasets(datasets)
    if predictions and not predictions.is_file():
        raise InputError(f"{predictions}: there is no such file; run the evaluation")
    pipelines = own_name(out, "folds")
    with staged(out, folder=True) as folder:
        folder.mkdir()
        forms, books = Forms(labels), _Books(labels)
        for doc in read_docs(corpus):
            forms.look_for(doc.stored, forms.spans(doc.stored))
            forms.mark(doc.stored)
            books.add(doc)
        for doc in read_docs(corpus):
            forms.release(doc.stored)
        kept = _Kept(labels, most)
        for fold in range(folds or 1):
            docs: Iterator[CheckedDoc] = read_docs(corpus, fold, folds or 1)
            if folds:
                tell(f"Training pipeline {fold + 1} of {folds}, without a part of train")
                model = train_fold(config, corpus, pipelines, fold, folds, **options)
                docs = add_opinions(load_fold(model), docs, labels)
            for doc in docs:
                kept.add(doc, forms)
        findings = kept.best()
        if predictions:
            explain(findings, predictions)
        locate(findings, declared, normalize=manifest["settings"]["normalize"])
        groups = _group(findings)
        write_table(findings, folder / TABLE)
        write_tasks(findings, read_texts(corpus, {one.key for one in findings}), labels, folder / TASKS)
        near = corpus / "near_duplicates.jsonl"
        pairs = near.read_bytes().count(b"\n") if near.is_file() else 0
        summary = Summary(books.texts, kept.counts, groups, books.few(), books.only(), books.blank, pairs)
        content = msgspec.json.format(msgspec.json.encode(summary), indent=1)
        (folder / SUMMARY).write_bytes(content + b"\n")
    remove(pipelines)
    return summary


class _Books:
    """Counts spans by label and split, and those without letters and digits."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.texts = 0
        self.spans: dict[str, Counter[str]] = {label: Counter() for label in labels}
        self.blank: dict[str, int] = {}

    def add(self, doc: CheckedDoc) -> None:
        self.texts += 1
        text = doc.stored.text
        for start, end, label, _ in merged_data(doc.stored)["gold"]:
            self.spans[label][doc.split] += 1
            if not any(char.isalnum() for char in text[start:end]):
                self.blank[label] = self.blank.get(label, 0) + 1

    def few(self) -> dict[str, int]:
        return {label: counts["train"] for label, counts in self.spans.items() if counts["train"] < FEW}

    def only(self) -> dict[str, str]:
        return {label: split for label, counts in self.spans.items() if len(counts) == 1 for split in counts}


class _Kept:
    """Keeps the best findings of each label, and counts all.

    counts (dict): by label and kind.
    """

    def __init__(self, labels: Sequence[str], most: int) -> None:
        self.labels = list(labels)
        self.most = most
        self.counts: dict[str, dict[str, int]] = {}
        self._heaps: dict[str, list[tuple[float, int, Finding]]] = {}
        self._numbers = count()

    def add(self, doc: CheckedDoc, forms: Forms) -> None:
        """Find what seems wrong in a text."""
        merged = merged_data(doc.stored)
        unknown = {self.labels.index(label) for label in merged["uncovered"]}
        for candidate in find_candidates(doc.stored, forms, doc.opinion, unknown):
            about: Any = candidate.current or candidate.proposed
            label = self.labels[about[2]]
            kinds = self.counts.setdefault(label, {})
            kinds[candidate.kind] = kinds.get(candidate.kind, 0) + 1
            heap = self._heaps.setdefault(label, [])
            if len(heap) < self.most or candidate.score > heap[0][0]:
                item = (candidate.score, -next(self._numbers), self._finding(doc, candidate, label))
                (heapq.heappush if len(heap) < self.most else heapq.heapreplace)(heap, item)

    def best(self) -> list[Finding]:
        """List those kept, best first."""
        found = [item for heap in self._heaps.values() for item in heap]
        return [finding for _, _, finding in sorted(found, key=lambda item: (-item[0], -item[1]))]

    def _finding(self, doc: CheckedDoc, candidate: Candidate, label: str) -> Finding:
        text = doc.stored.text
        starts, ends = (array.tolist() for array in doc.stored.offsets())

        def in_characters(place: Place | None) -> tuple[int, int, str] | None:
            """Turn a place in tokens into one in characters."""
            return (starts[place[0]], ends[place[1] - 1], self.labels[place[2]]) if place else None

        current, proposed = in_characters(candidate.current), in_characters(candidate.proposed)
        start, end, _ = current or proposed or (0, 0, "")
        return Finding(
            score=round(candidate.score, 4),
            kind=candidate.kind,
            label=label,
            form=" ".join(text[start:end].split()),
            current=current,
            proposed=proposed,
            split=doc.split,
            doc=merged_data(doc.stored).get("doc", ""),
            key=text_key(text.encode("utf8")).hex(),
            context=" ".join(text[max(0, start - AROUND) : end + AROUND].split()),
        )


def _group(findings: Sequence[Finding]) -> list[Group]:
    """Put findings of a kind with the same form and labels together, and tell each how many they are."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for one in findings:
        proposed = one.proposed[2] if one.proposed else ""
        groups.setdefault((one.kind, one.label, one.form, proposed), []).append(one)
    for found in groups.values():
        for one in found:
            one.similar = len(found)
    rows = [
        Group(*name, findings=len(found), explains=found[0].explains, score=max(one.score for one in found))
        for name, found in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.explains, -row.findings, -row.score, row.label, row.form))
