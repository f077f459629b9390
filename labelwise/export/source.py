"""What is exported: a merged corpus, predictions, or tasks. It is read once, into one form."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

import msgspec
import numpy as np

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import SPLITS, is_corpus, partitions_of, read_manifest
from labelwise.corpus.tasks import DATASETS, PREDICTED, UNCOVERED
from labelwise.errors import InputError
from labelwise.evaluate.predictions import read_predictions
from labelwise.sources.declarations import DataSet, all_labels, load_datasets
from labelwise.text import DECODE_ERRORS, SpanKey, text_key


class ExportDoc(msgspec.Struct):
    """A text with spans.

    name (str): of the document that it is; empty if it has none.
    spans (list[SpanKey]): sorted.
    scores (list[float]): the probability of each span; empty if there are none.
    unknown (dict[str, str]): the labels that the text isn't complete for.
    predicted (bool): a pipeline found the spans, and nobody has looked at them.
    shown (list[str]): labels that annotators should be shown, used or not.
    split (str): the one that a declaration gives the text; empty if none does.
    """

    text: str
    name: str
    spans: list[SpanKey]
    scores: list[float] = []
    unknown: dict[str, str] = {}
    predicted: bool = False
    shown: list[str] = []
    split: str = ""

    @property
    def key(self) -> str:
        """The digest of the text, in hexadecimal."""
        return text_key(self.text.encode("utf8")).hex()

    def uncertainty(self, label: str | None = None) -> float:
        """Return how uncertain a prediction is, of a label or of all; 0 for what isn't one.

        It is from 0 to 1 where spans have probabilities, by the least certain one; else the number of spans.
        """
        chosen = [number for number, (*_, name) in enumerate(self.spans) if label in (None, name)]
        if not self.scores or not self.predicted:
            return float(len(chosen)) * self.predicted
        return max((1 - abs(2 * self.scores[number] - 1) for number in chosen), default=0.0)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ExportDoc).decode


class Source:
    """The texts that are exported, in a temporary file.

    labels (list[str]): sorted; those of a folder of tasks as its `datasets.yml` has them, before any others.
    version (str): names what predictions are from, and changes with it.
    texts, spans (int): how many there are.
    splits (list[str]): those that declarations give the texts; "" where one has none.
    predicted (bool): a pipeline found the spans.
    certain (bool): they have probabilities.
    """

    def __init__(self, labels: Sequence[str], version: str) -> None:
        """Start empty."""
        self.labels = list(labels)
        self.version = version
        self.spans = 0
        self.splits: list[str] = []
        self.predicted = self.certain = False
        self._file = TemporaryFile()  # noqa: SIM115  it lives as long as this
        self._ends = array("q", [0])

    @property
    def texts(self) -> int:
        """The number of texts."""
        return len(self._ends) - 1

    def add(self, doc: ExportDoc) -> None:
        """Add a text."""
        self._ends.append(self._ends[-1] + self._file.write(_encode(doc)))
        self.spans += len(doc.spans)
        self.splits += [doc.split] if doc.split not in self.splits else []
        self.predicted |= doc.predicted
        self.certain |= bool(doc.scores)

    def read(self, label: str | None = None) -> Iterator[ExportDoc]:
        """Yield the texts: predictions, of a label or of all, with the least certain first; else in their order."""
        order: Any = range(self.texts)
        if self.predicted:
            order = np.argsort([-self._get(number).uncertainty(label) for number in order], kind="stable").tolist()
        return map(self._get, order)

    def _get(self, number: int) -> ExportDoc:
        self._file.seek(self._ends[number])
        return _decode(self._file.read(self._ends[number + 1] - self._ends[number]))


def open_source(path: Path, splits: Sequence[str] = SPLITS, annotated: Path | None = None) -> Source:
    """Find out what there is to export, and read it.

    path (Path): the folder of a merged corpus, one of tasks, as `convert-brat` writes it, a file of predictions, or one
        of tasks.
    splits, annotated: see `run.export`.
    RAISES (InputError): it is none of these; `annotated` is no corpus.
    """
    labels: list[str] = []
    if is_corpus(path):
        labels, docs = read_manifest(path).labels, read_corpus(path, splits)
    elif (path / DATASETS).is_file():
        datasets = load_datasets([path / DATASETS])
        labels = all_labels(datasets)
        docs = _read_declared(datasets, labels)
    elif path.is_file():
        docs = _read_tasks(path) if _is_tasks(path) else _read_predicted(path)
    else:
        raise InputError(f"{path}: neither a merged corpus nor a file of predictions or tasks, nor a folder of tasks")
    source = Source(labels, "" if path.is_dir() else _version(path))
    complete = _read_complete(annotated) if annotated else {}
    used: set[str] = set()
    for doc in docs:
        known = complete.get(doc.key, ()) if annotated else ()
        doc.unknown = {label: state for label, state in doc.unknown.items() if label not in known}
        used |= {*doc.shown, *(label for *_, label in doc.spans)}
        source.add(doc)
    source.labels += sorted(used.difference(labels))
    return source


def read_corpus(corpus: Path, splits: Sequence[str] = SPLITS) -> Iterator[ExportDoc]:
    """Yield the texts of a merged corpus with all accepted spans.

    RAISES (InputError): it isn't a merged corpus.
    """
    for split in splits:
        for partition in partitions_of(corpus, split):
            for stored in read_stored_docs(partition):
                merged = stored.annotation
                yield ExportDoc(stored.text, merged.doc, sorted(merged.accepted), unknown={**merged.uncovered})


def _read_complete(corpus: Path) -> dict[str, frozenset[str]]:
    """Read which labels each text of a merged corpus is complete for, by key; about 200 bytes are held for a text."""
    labels = read_manifest(corpus).labels
    shared: dict[frozenset[str], frozenset[str]] = {}
    found = {}
    for doc in read_corpus(corpus):
        complete = frozenset(labels).difference(doc.unknown)
        found[doc.key] = shared.setdefault(complete, complete)
    return found


def _read_predicted(path: Path) -> Iterator[ExportDoc]:
    """Yield what was predicted: with heads for labels all spans that were found, which may overlap.

    RAISES (InputError): a line isn't a prediction.
    """
    for doc in read_predictions(path):
        found = {(start, end, label): score for start, end, label, score in doc.found}
        spans = sorted(found or doc.predicted)
        scores = [found[span] for span in spans] if found else []
        yield ExportDoc(doc.text, doc.doc, spans, scores, doc.uncovered, predicted=True, shown=[*doc.uncovered])


class _Span(msgspec.Struct):
    start: int
    end: int
    label: str
    score: float | None = None


class _Task(msgspec.Struct):
    """A task as `convert-brat` and `export` write it."""

    text: str
    spans: list[_Span]
    meta: dict[str, Any] = {}
    answer: Literal["accept"] = "accept"
    uncovered: dict[str, str] = msgspec.field(default_factory=dict, name=UNCOVERED)


_decode_task = msgspec.json.Decoder(_Task).decode


def _is_tasks(path: Path) -> bool:
    """Tell whether a file has tasks rather than predictions, by its first line."""
    with path.open("rb") as lines:
        try:
            first = msgspec.json.decode(next(lines, b""))
        except DECODE_ERRORS:
            return False
    return isinstance(first, dict) and "spans" in first


def _read_declared(datasets: Sequence[DataSet], labels: Sequence[str]) -> Iterator[ExportDoc]:
    """Yield the tasks of data sets with the split and the labels that they declare.

    labels (Sequence[str]): those of all data sets.
    """
    for dataset in datasets:
        unknown = {label: "none" for label in labels if label not in dataset.labels}
        for file in dataset.files:
            for doc in _read_tasks(file):
                doc.unknown = unknown | doc.unknown
                doc.split = "" if dataset.split == "auto" else dataset.split
                yield doc


def _read_tasks(path: Path) -> Iterator[ExportDoc]:
    """Yield the tasks of a file.

    RAISES (InputError): a line isn't such a task.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                task = _decode_task(line)
            except DECODE_ERRORS as error:
                raise InputError(
                    f"{path}:{number}: not a task of convert-brat or an export ({error}); merge other tasks, and "
                    "export the corpus"
                ) from error
            found = {(one.start, one.end, one.label): one.score for one in task.spans}
            spans = sorted((one.start, one.end, one.label) for one in task.spans)
            scores = [score for span in spans if (score := found[span]) is not None]
            yield ExportDoc(
                task.text,
                str(task.meta.get("doc", "")),
                spans,
                scores if len(scores) == len(spans) else [],
                task.uncovered,
                predicted=PREDICTED in task.meta,
                shown=[label for label in str(task.meta.get("labels", "")).split(",") if label],
            )


def _version(path: Path) -> str:
    """Name a file's content: its name, and a digest."""
    with path.open("rb") as file:
        return f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"
