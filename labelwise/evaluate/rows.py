"""Predict partitions of a split, each in a job that writes rows of texts and pairs; see `tables`.

The rows have digests of surface forms, because train is counted once all parts' forms are known.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, tee
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.base.text import SpanKey, overlapping_groups, sentence_around
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Partition
from labelwise.corpus.seen_texts import has_seen
from labelwise.corpus.surface_forms import digest
from labelwise.evaluate.pairs import SpanPair, pair_spans
from labelwise.evaluate.predict import PART_FILE, Done, hold_pipeline, predict_docs
from labelwise.evaluate.predictions import PredictedDoc, encode_prediction
from labelwise.evaluate.tables import MISALIGNED, PAIR_ROWS, TEXT_ROWS, Rows

CHUNK = 32  # texts whose rows are dicts: a thousand texts' take ten times the memory of their table
Forms = Mapping[SpanKey, int]  # digests of the words of spans on token boundaries


class EvaluateJob(NamedTuple):
    """A partition to predict, with the pipeline's folder and digest.

    labels (Sequence[str]): labels to score; predictions of others are "unscored".
    seen (Path | None): file of the pipeline's training texts; None to skip it.
    """

    model: Path
    digest: str
    partition: Partition
    labels: Sequence[str]
    seen: Path | None
    predictions: bool

    def __str__(self) -> str:
        return str(self.partition.file)

    def place(self, folder: Path) -> Path:
        """Return the folder of the part's files."""
        return folder / self.partition.file.parent.name / self.partition.file.stem


def evaluate_part(job: EvaluateJob, folder: Path) -> Done:
    """Predict a partition, and write the rows of its texts and pairs."""
    nlp, place = hold_pipeline(job.model, job.digest), job.place(folder)
    seen = np.load(job.seen) if job.seen else None
    stored, read = tee(read_stored_docs(job.partition))
    place.mkdir(parents=True)

    def docs() -> Iterator[tuple[PredictedDoc, Forms]]:
        with (place / PART_FILE).open("wb") as file:
            for text, doc in zip(stored, predict_docs(nlp, map(gold_of, read)), strict=True):
                file.write(encode_prediction(doc) + b"\n" if job.predictions else b"")
                yield doc, digest_forms(text, doc, job.labels)

    rows = make_rows(docs(), job.partition.file.parent.name, job.labels, seen)
    rows.write(place)
    return Done(len(rows.texts), pc.sum(rows.texts["words"]).as_py() or 0, Counter())


def gold_of(stored: StoredDoc) -> PredictedDoc:
    """Return a corpus text with gold, without predictions."""
    merged = stored.annotation
    return PredictedDoc(
        key=stored.key,
        text=stored.text,
        predicted=[],
        gold=sorted(merged.accepted),
        rejected=sorted(merged.rejected),
        uncovered=dict(merged.uncovered),
        doc=merged.doc,
        unit=merged.unit,
        groups=merged.groups,
    )


def digest_forms(stored: StoredDoc, doc: PredictedDoc, labels: Sequence[str]) -> Forms:
    """Digest the words of a text's spans with some labels, as `SurfaceForms` does."""
    spans = sorted(span for span in {*doc.gold, *doc.predicted} if span[2] in labels)
    places = zip(spans, stored.in_tokens(spans), strict=True)
    return {span: int(digest(stored.words[slice(*place)])) for span, place in places if place}


def make_rows(
    docs: Iterable[tuple[PredictedDoc, Forms]], split: str, labels: Sequence[str], seen: np.ndarray | None = None
) -> Rows:
    """Make the rows of predicted texts.

    seen (np.ndarray | None): digests of the pipeline's training texts, if known.
    """
    docs = iter(docs)
    tables = [(TEXT_ROWS.empty_table(), PAIR_ROWS.empty_table())]
    while chunk := list(islice(docs, CHUNK)):
        rows, columns = list[dict[str, Any]](), {name: list[Any]() for name in PAIR_ROWS.names}
        for doc, forms in chunk:
            gold = sorted(span for span in doc.scored(doc.gold) if span[2] in labels)
            of_doc = _pair_columns(doc, gold, split, labels, forms)
            rows.append(_text_row(doc, gold, split, seen) | {"pairs": len(of_doc["key"])})
            for name in columns:
                columns[name] += of_doc.get(name, [None] * len(of_doc["key"]))  # train is counted later
        tables.append((pa.Table.from_pylist(rows, TEXT_ROWS), pa.table(columns, PAIR_ROWS)))
    return Rows(*map(pa.concat_tables, zip(*tables, strict=True)))


def _text_row(doc: PredictedDoc, gold: Sequence[SpanKey], split: str, seen: np.ndarray | None) -> dict[str, Any]:
    ends = accumulate((end for _, end, _ in gold), max)
    return {
        "key": doc.key,
        "doc": doc.doc,
        "split": split,
        "words": doc.words,
        "partial": [label for label, state in doc.uncovered.items() if state == "partial"],
        "unknown": [label for label, state in doc.uncovered.items() if state == "none"],
        "rejected": [dict(zip(("start", "end", "label"), span, strict=True)) for span in doc.rejected],
        "overlaps": any(start < end for end, (start, *_) in zip(ends, gold[1:], strict=False)),
        "unit": doc.unit or doc.key,
        "groups": [{"by": by, "value": value} for by, values in doc.groups.items() for value in values],
        "seen": None if seen is None else has_seen(seen, doc.key),
    }


def _pair_columns(
    doc: PredictedDoc, gold: Sequence[SpanKey], split: str, labels: Sequence[str], forms: Forms
) -> dict[str, list[Any]]:
    probability_of: dict[Any, float] = {(start, end, label): p for start, end, label, p in doc.found}
    predicted, nested = (
        {span for span in doc.scored(spans) if span[2] in labels}
        for spans in (doc.predicted, probability_of.keys() - {*gold, *doc.predicted})
    )
    pairs = [
        pair._replace(kind="nested")
        if pair.gold and pair.kind == "missed" and pair.gold in probability_of and _overlaps(pair.gold, gold)
        else pair
        for pair in pair_spans(gold, predicted)
    ]
    pairs += [SpanPair(None, span, "unscored") for span in sorted({*doc.predicted} - predicted)]
    pairs += [SpanPair(None, span, "nested") for span in sorted(nested)]
    groups = overlapping_groups(gold, predicted)
    overlapped = {one for ones, others in groups for one in ones if _overlaps(one, others)}
    abouts, same = [pair.about for pair in pairs], {"key": doc.key, "doc": doc.doc, "split": split}
    around = [
        about[:2] if pair.kind == "right" else sentence_around(doc.text, *about[:2])
        for pair, about in zip(pairs, abouts, strict=True)
    ]
    columns: dict[str, list[Any]] = {name: [value] * len(pairs) for name, value in same.items()} | {
        "kind": [pair.kind for pair in pairs],
        "cause": [pair.gold and _cause(pair, pair.gold in forms, pair.gold in overlapped) for pair in pairs],
        "gold_probability": [probability_of.get(pair.gold) for pair in pairs],
        "probability": [probability_of.get(pair.predicted) for pair in pairs],
        "form_digest": [forms.get(about) for about in abouts],
        "before": [doc.text[first : about[0]] for (first, _), about in zip(around, abouts, strict=True)],
        "after": [doc.text[about[1] : last] for (_, last), about in zip(around, abouts, strict=True)],
    }
    for side, spans in (("gold", [pair.gold for pair in pairs]), ("predicted", [pair.predicted for pair in pairs])):
        columns[f"{side}_text"] = [span and doc.words_of(span) for span in spans]
        for place, name in enumerate(("start", "end", "label")):
            columns[f"{side}_{name}"] = [span and span[place] for span in spans]
    return columns


def _overlaps(span: SpanKey, others: Iterable[SpanKey]) -> bool:
    return any(start < span[1] and span[0] < end for start, end, label in others if (start, end, label) != span)


def _cause(pair: SpanPair, on_tokens: bool, overlapped: bool) -> str:
    """Return the cause of a gold span: its pair's kind, or the reason why it is missed; "missed" if train decides.

    overlapped (bool): a prediction overlaps the span but is paired with another gold span.
    """
    if pair.kind in ("right", "nested"):
        return "found"
    if not on_tokens:
        return MISALIGNED
    return "overlapped" if pair.kind == "missed" and overlapped else pair.kind
