"""The source of an export: a merged corpus, predictions, or tasks of `convert-brat`; streamed per file.

Predictions come with the most expected errors per word first, by seeking their lines.
"""

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow.compute as pc
from spacy.tokens import Doc

from labelwise.annotations import Problem
from labelwise.base.errors import InputError
from labelwise.base.settings import DATASETS
from labelwise.base.text import SpanKey, text_key
from labelwise.corpus.manifest import SPLITS, Split, is_corpus, read_manifest
from labelwise.corpus.tables import Group, read_columns
from labelwise.corpus.texts import read_groups_with_docs
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.datasets.convert_brat import read_conversion
from labelwise.datasets.declarations import all_labels, load_datasets
from labelwise.evaluate.predictions import PredictedDoc, decode_prediction, list_predictions, read_predictions
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.sources.brat import SUFFIXES
from labelwise.sources.formats import read_items

Place = tuple[str, int]  # file and line
PLACED = ("file", "line", "start", "end", "label", "renamed", "reason")  # columns of the table of spans


class PlacedSpan(NamedTuple):
    """A span read from a line (None if unusable), and whether its row counts."""

    key: SpanKey | None
    counts: bool


class ExportDoc(msgspec.Struct):
    """A text with spans.

    scores (Mapping[SpanKey, float]): probabilities of the spans, if known.
    answered (Sequence[SpanKey]): predicted spans that annotators accepted or rejected.
    places (dict[Place, PlacedSpan]): spans read from brat, also dropped ones, by line.
    """

    text: str
    name: str
    spans: list[SpanKey]
    scores: Mapping[SpanKey, float] = {}
    unknown: Mapping[str, str] = {}
    rejected: list[SpanKey] = []
    answered: Sequence[SpanKey] = ()
    predicted: bool = False
    split: Literal["", "train", "dev", "test"] = ""
    places: dict[Place, PlacedSpan] = {}

    @property
    def key(self) -> str:
        """Return the digest of the text, in hexadecimal."""
        return text_key(self.text).hex()

    def mistakes_per_word(self, label: str | None = None) -> float:
        """Return the expected errors per word among predicted spans, of a label or of all.

        A span without a probability counts as one error.
        """
        mistakes = sum(1 - self.scores.get(span, 0.0) for span in self.spans if label in (None, span[2]))
        return mistakes / max(1, len(self.text.split()))


class Exported(NamedTuple):
    """Counts of an export, and what it changed or left out.

    rows (int): texts; or rows of all labels' files.
    verdicts, rejects (int): rows of accepted or rejected single spans; rejected ones.
    rename (Mapping[str, str]): `rename` of the section `brat` that restores the labels.
    ordered_by (str): order of predictions; "" for a corpus.
    """

    rows: int
    spans: int
    verdicts: int = 0
    rejects: int = 0
    warnings: Sequence[tuple[str, str]] = ()
    rename: Mapping[str, str] = {}
    ordered_by: str = ""


class ExportSource:
    """The texts to export.

    version (str): digest of the predictions; empty for annotations.
    incomplete (int): texts that aren't complete for all labels.
    splits (list[str]): declared splits of the texts; "" for none.
    """

    def __init__(
        self, path: Path, read: Callable[[], Iterator[ExportDoc]], settings: Settings, labels: Sequence[str] = ()
    ) -> None:
        self.labels, self.texts, self.spans, self.certain = [*labels], 0, 0, False
        self.rejected, self.incomplete = 0, 0
        self.splits: list[Literal["", "train", "dev", "test"]] = []
        self._files, self.read_stored, self._settings = list_predictions(path), read, settings
        used: set[str] = set()
        for doc in read():
            self.texts, self.spans = self.texts + 1, self.spans + len(doc.spans)
            self.rejected, self.incomplete = self.rejected + len(doc.rejected), self.incomplete + bool(doc.unknown)
            self.certain |= bool(doc.scores)
            self.splits += [doc.split] if doc.split not in self.splits else []
            used |= {*doc.unknown, *(label for *_, label in doc.spans)}
        self.labels += sorted(used.difference(labels))
        self.version = ""
        digest = hashlib.sha256()
        for predictions in self._files:
            with predictions.open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
            self.version = f"{path.name} {digest.hexdigest()[:16]}"

    @property
    def predicted(self) -> bool:
        """Return whether these are predictions."""
        return bool(self.version)

    def tokenize(self, text: str) -> Doc:
        """Tokenize a text as the merge does."""
        return load_tokenizer(self._settings)(text)

    def read(self, label: str | None = None) -> Iterator[ExportDoc]:
        """Yield the texts in their order; predictions with the most expected errors per word first."""
        if not self.predicted:
            yield from self.read_stored()
            return
        order = np.argsort([-doc.mistakes_per_word(label) for doc in self.read_stored()], kind="stable")
        yield from self.read_at(order)

    def read_at(self, numbers: np.ndarray) -> Iterator[ExportDoc]:
        """Yield predictions by their numbers in the files, from 0, which may repeat; shape (any,)."""
        owners, starts = array("q"), array("q")
        for number, path in enumerate(self._files):
            with path.open("rb") as file:
                starts.extend([*accumulate(map(len, file), initial=0)][:-1])
            owners.extend([number] * (len(starts) - len(owners)))
        with ExitStack() as stack:
            opened = [stack.enter_context(path.open("rb")) for path in self._files]
            for number in numbers.tolist():
                file = opened[owners[number]]
                file.seek(starts[number])
                yield from_prediction(decode_prediction(file.readline()))


def open_source(
    path: Path, splits: Sequence[str], settings: Settings | None = None, *, placed: bool = False
) -> ExportSource:
    """Open a source to export.

    path (Path): folder of a merged corpus, of tasks by `convert-brat`, or of `predict_files`; or a file of predictions.
    settings (Settings | None): of the tokenizer; None for the corpus's own, or the defaults.
    RAISES (InputError): if it is none of these.
    """
    if is_corpus(path):
        if settings is None:
            lang, rules = read_tokenizer(path / "tokenizer.json")
            settings = Settings(lang=lang, tokenizer=rules)
        read, labels = partial(read_corpus, path, splits, placed=placed), read_manifest(path).labels
    elif read_conversion(path):
        read, labels = partial(read_tasks, path), all_labels(load_datasets([path / DATASETS]))
    elif files := list_predictions(path):
        read, labels = partial(read_predicted, files), []
    else:
        raise InputError(f"{path}: neither a merged corpus nor predictions, nor a folder of tasks")
    return ExportSource(path, read, settings or Settings(), labels)


def read_corpus(corpus: Path, splits: Sequence[str] = SPLITS, *, placed: bool = False) -> Iterator[ExportDoc]:
    """Yield the texts of a merged corpus with all accepted and rejected spans.

    They are sorted by key, so the first ones are a random sample of all splits.
    """
    for group, docs in read_groups_with_docs(corpus, only=("text", "split", *(PLACED if placed else ()))):
        found = _find_places(group) if placed else {}
        split_of: dict[str, str | None] = dict(read_columns(group.texts, "text", "split"))
        for key, stored in docs:
            if split_of[key] in splits:
                merged = stored.annotation
                spans, rejected = sorted(merged.accepted), sorted(merged.rejected)
                unknown, places = merged.uncovered, found.get(key, {})
                yield ExportDoc(stored.text, merged.doc, spans, unknown=unknown, rejected=rejected, places=places)


def _find_places(group: Group) -> dict[str, dict[Place, PlacedSpan]]:
    spans = group.spans.filter(
        pc.match_substring_regex(group.spans["file"], f"({'|'.join(map(re.escape, SUFFIXES))})$")
    )
    places: dict[str, dict[Place, PlacedSpan]] = {}
    for text, file, line, start, end, label, renamed, reason in read_columns(spans, "text", *PLACED):
        key = None if start is None else (start, end, renamed or label)
        places.setdefault(text, {})[file, line] = PlacedSpan(key, not reason.startswith("in "))
    return places


def read_predicted(files: Iterable[Path]) -> Iterator[ExportDoc]:
    """Yield the texts of files of predictions."""
    return map(from_prediction, chain.from_iterable(map(read_predictions, files)))


def from_prediction(doc: PredictedDoc) -> ExportDoc:
    """Convert a prediction; a per-label recognizer's with all spans, which may overlap."""
    scores = {(start, end, label): score for start, end, label, score in doc.found}
    spans, answered = sorted(scores or doc.predicted), (*doc.gold, *doc.rejected)
    return ExportDoc(doc.text, doc.doc, spans, scores, doc.uncovered, answered=answered, predicted=True)


def read_tasks(folder: Path) -> Iterator[ExportDoc]:
    """Yield the tasks of a folder by `convert-brat`, with declared splits; refuse other lines."""
    for dataset in load_datasets([folder / DATASETS]):
        declared: Split | Literal[""] = next((split for split in SPLITS if split == dataset.split), "")
        for path, _ in dataset.files:
            for task in read_items(path):
                if isinstance(task, Problem):
                    if task.file:  # brat's, not converted
                        continue
                    raise InputError(f"{path}:{task.line}: not a task of convert-brat ({task}); run it again")
                if task.predicted:
                    continue
                spans = sorted({(span.start, span.end, span.label) for span in task.spans})
                places = {
                    (one.file, one.line): PlacedSpan((one.start, one.end, one.label), counts=True)
                    for one in task.spans
                    if one.file
                }
                yield ExportDoc(task.text, task.doc, spans, split=declared, places=places)
