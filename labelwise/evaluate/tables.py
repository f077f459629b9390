"""The two tables of an evaluation, from which every score, interval and example is a query.

`texts.parquet` has a row for each scored text, also where nothing was marked or found. `pairs.parquet` has one for each
pair of gold and predicted span, or for one of them alone; see `pairs`. Both are sorted by the key of the text, and
written text by text, in row groups of the same GROUP texts.

A predicted span that can't be judged, because nobody looked for its label in the text, is "unjudged". A per-label
recognizer also finds spans that overlap: those that are neither entities nor gold are "nested". Gold that tokens can't
represent is a row like any other, with its cause.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from labelwise.base.errors import InputError
from labelwise.base.parallel import Progress, no_progress
from labelwise.base.text import SpanKey, overlapping_groups, sentence_around
from labelwise.corpus.docbin_reader import StoredDoc, TokenSpan, read_stored_docs
from labelwise.corpus.manifest import find_partitions, partitions_of, read_split
from labelwise.corpus.seen_texts import has_seen
from labelwise.corpus.surface_forms import SurfaceForms
from labelwise.evaluate.pairs import SpanPair, pair_spans
from labelwise.evaluate.predictions import PredictedDoc, read_predictions

GROUP = 1024  # texts of a row group
PART = 32  # texts whose rows are dicts at a time: those of a whole group take ten times the memory of its table
ENOUGH = 5  # times that train must have a form without the label to contradict gold
HARDLY = 0.05  # the share of these at which it may still mark the form
# Why a span is missed: another prediction overlaps it; or by what train has of its form. Gold without token boundaries
# has the cause TOKENS in any case.
TOKENS = "tokens"
MISSED = ("overlapped", "known", "sometimes", "new", "unmarked", "otherwise", TOKENS)

NAME = pa.dictionary(pa.int32(), pa.string())
SPAN = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("label", pa.string())])
TEXTS = pa.schema(
    {
        "key": pa.string(),
        "doc": pa.string(),
        "split": NAME,
        "words": pa.int32(),
        "partial": pa.list_(pa.string()),  # labels of which single spans were judged
        "unknown": pa.list_(pa.string()),  # labels that nobody looked for; all others were judged
        "rejected": pa.list_(SPAN),
        "overlaps": pa.bool_(),  # some gold spans overlap
        "unit": pa.string(),  # digest of what it shares with other texts; the key of a text that shares nothing
        "groups": pa.list_(pa.struct([("by", pa.string()), ("value", pa.string())])),  # by which scores are divided
        "seen": pa.bool_(),  # in train or dev of the pipeline; null if it has no digests
    }
)
PAIRS = pa.schema(
    {
        "key": pa.string(),
        "doc": pa.string(),
        "split": NAME,
        "kind": NAME,  # one of pairs.Kind, "unjudged" or "nested"
        "cause": NAME,  # of gold: one of MISSED; or else the kind
        "gold_label": NAME,
        "gold_start": pa.int32(),
        "gold_end": pa.int32(),
        "predicted_label": NAME,
        "predicted_start": pa.int32(),
        "predicted_end": pa.int32(),
        "form": pa.string(),  # the words of gold, or else of the prediction
        "predicted_form": pa.string(),
        "probability": pa.float64(),  # of the predicted span
        "gold_probability": pa.float64(),  # of the gold span, if it was found, perhaps inside of another
        "marked": pa.int32(),  # times that train marks the form with the label
        "free": pa.int32(),  # times that train has it without the label, in texts that are complete for it
        "otherwise": pa.int32(),  # times that train marks the form with the other label that it has most often
        "other_label": NAME,
        "before": pa.string(),
        "after": pa.string(),
    }
)


class InTrain(NamedTuple):
    """How often train marks a form with a label, and leaves it without; and its most frequent other label."""

    marked: int = 0
    free: int = 0
    otherwise: int = 0
    other_label: str | None = None


class Tables(NamedTuple):
    """The files of the two tables."""

    texts: Path
    pairs: Path

    @classmethod
    def of(cls, folder: Path) -> "Tables":
        """Name them in a folder."""
        return cls(folder / "texts.parquet", folder / "pairs.parquet")

    def digest(self) -> str:
        """Digest both files, so that metrics can name the tables they were computed from."""
        digest = hashlib.blake2b(digest_size=8)
        for file in self:
            with file.open("rb") as opened:
                hashlib.file_digest(opened, lambda: digest)
        return digest.hexdigest()

    def groups(self, texts: Sequence[str], pairs: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield some columns of both tables, for GROUP texts at a time.

        RAISES (InputError): a file isn't what `write_tables` writes.
        """
        first, second = (_open(file) for file in self)
        for number in range(first.num_row_groups):
            yield first.read_row_group(number, [*texts]), second.read_row_group(number, [*pairs])

    def read_units(self) -> pa.Table:
        """Read the key and the unit of each text, in order; of an earlier version's tables, the key for both."""
        texts = _open(self.texts).read(["key", "unit"])
        return texts if "unit" in texts.column_names else texts.append_column("unit", texts["key"])

    def read_pairs(self, columns: Sequence[str], rows: Any = None) -> pa.Table:
        """Read some columns of the pairs; of the rows for which an expression of pyarrow is true, or of all."""
        _open(self.pairs)
        table = parquet.read_table(self.pairs, columns=[*columns], filters=rows)
        return table.unify_dictionaries()  # each row group has its own


def _open(file: Path) -> parquet.ParquetFile:
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; run the evaluation, or `dvc pull` what it wrote")
    try:
        return parquet.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a table of an evaluation ({error}); run the evaluation again") from error


def write_tables(
    predictions: Path,
    split: Path,
    labels: Sequence[str],
    tables: Tables,
    seen: np.ndarray | None = None,
    progress: Progress = no_progress,
) -> None:
    """Write both tables, in one pass over train and two over the split and its predictions.

    labels (Sequence[str]): those that are scored; predictions of others can't be judged.
    seen (np.ndarray | None): digests of the texts that the pipeline was trained on, if it has them.
    RAISES (InputError): a file isn't what it should be, or they aren't about the same texts.
    """
    forms = SurfaceForms(labels)
    texts = read_split(split).texts
    for stored, doc in progress(_read_both(split, predictions), "look up words", texts):
        forms.look_for(stored, [place for place in _places(forms, stored, doc).values() if place])
    for file in progress(partitions_of(split.resolve().parent, "train"), "count words"):
        for stored in read_stored_docs(file):
            forms.mark(stored)
            forms.release(stored)
    both = progress(_read_both(split, predictions), "write tables", texts)
    docs = ((doc, _in_train(forms, stored, doc)) for stored, doc in both)
    write_rows(docs, split.name, labels, tables, seen)


def write_rows(
    docs: Iterable[tuple[PredictedDoc, Mapping[SpanKey, InTrain | None]]],
    split: str,
    labels: Sequence[str],
    tables: Tables,
    seen: np.ndarray | None = None,
) -> None:
    """Write the rows of texts, sorted by key, each with what train has of its spans; None without token boundaries."""
    docs = iter(docs)
    with parquet.ParquetWriter(tables.texts, TEXTS) as texts, parquet.ParquetWriter(tables.pairs, PAIRS) as pairs:
        while _write_group((texts, pairs), _convert(islice(docs, GROUP), split, labels, seen)):
            pass


def _write_group(writers: Sequence[parquet.ParquetWriter], parts: Iterator[tuple[pa.Table, pa.Table]]) -> bool:
    """Write the parts of a row group to both tables; return whether there are any. Nothing of it stays in memory."""
    columns = [*zip(*parts, strict=True)]
    for writer, tables in zip(writers, columns, strict=False):
        group = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        writer.write_table(group, row_group_size=max(1, len(group)))
    return bool(columns)


def _convert(
    docs: Iterator[tuple[PredictedDoc, Mapping[SpanKey, InTrain | None]]],
    split: str,
    labels: Sequence[str],
    seen: np.ndarray | None,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows of both tables for PART texts at a time."""
    while part := list(islice(docs, PART)):
        text_rows, pair_rows = list[dict[str, Any]](), list[dict[str, Any]]()
        for doc, in_train in part:
            gold = sorted(span for span in doc.scored(doc.gold) if span[2] in labels)
            text_rows.append(_text_row(doc, gold, split, seen))
            pair_rows.extend(_pair_rows(doc, gold, split, labels, in_train))
        yield pa.Table.from_pylist(text_rows, TEXTS), pa.Table.from_pylist(pair_rows, PAIRS)


def _read_both(split: Path, predictions: Path) -> Iterator[tuple[StoredDoc, PredictedDoc]]:
    """Yield the texts of a split, each with its predictions; both are sorted by key.

    RAISES (InputError): they aren't the same texts.
    """
    stored = (doc for file in find_partitions(split) for doc in read_stored_docs(file))
    for one, doc in zip_longest(stored, read_predictions(predictions)):
        if one is None or doc is None or one.text != doc.text:
            raise InputError(f"{predictions}: not the predictions for the texts of {split}; run the evaluation again")
        yield one, doc


def _places(forms: SurfaceForms, stored: StoredDoc, doc: PredictedDoc) -> dict[SpanKey, TokenSpan | None]:
    """Map the spans of a text to tokens and the number of their label; to None without token boundaries."""
    number_of = {label: number for number, label in enumerate(forms.labels)}
    spans = sorted(span for span in {*doc.gold, *doc.predicted} if span[2] in number_of)
    found = zip(spans, stored.in_tokens(spans), strict=True)
    return {span: (*place, number_of[span[2]]) if place else None for span, place in found}


def _in_train(forms: SurfaceForms, stored: StoredDoc, doc: PredictedDoc) -> dict[SpanKey, InTrain | None]:
    """Look up what train has of the forms of a text's spans; None without token boundaries."""
    places = _places(forms, stored, doc)
    known = [place for place in places.values() if place]
    counts = forms.counts(stored, known)
    found: dict[TokenSpan | None, InTrain | None] = {None: None}
    for place, marked in zip(known, forms.marked_as(stored, known).tolist(), strict=True):
        marked[place[2]] = 0
        most = max(marked)
        found[place] = InTrain(*counts[place], most, forms.labels[marked.index(most)] if most else None)
    return {span: found[place] for span, place in places.items()}


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


def _pair_rows(
    doc: PredictedDoc,
    gold: Sequence[SpanKey],
    split: str,
    labels: Sequence[str],
    in_train: Mapping[SpanKey, InTrain | None],
) -> Iterator[dict[str, Any]]:
    """Yield the pairs of a text."""
    found = {(start, end, label): p for start, end, label, p in doc.found}
    predicted, nested = (
        {span for span in doc.scored(spans) if span[2] in labels}
        for spans in (doc.predicted, found.keys() - {*gold, *doc.predicted})
    )
    rows: list[tuple[str, SpanPair]] = [(pair.kind, pair) for pair in pair_spans(gold, predicted)]
    rows += [("unjudged", SpanPair(None, span)) for span in sorted({*doc.predicted} - predicted)]
    rows += [("nested", SpanPair(None, span)) for span in sorted(nested)]
    overlapped = {
        one
        for ones, others in overlapping_groups(gold, predicted)
        for one in ones
        if any(one[0] < end and start < one[1] for start, end, _ in others)
    }
    for kind, pair in rows:
        one, other, about = *pair, pair.about
        first, last = about[:2] if kind == "right" else sentence_around(doc.text, *about[:2])
        train = in_train.get(about, InTrain())
        yield {
            "key": doc.key,
            "doc": doc.doc,
            "split": split,
            "kind": kind,
            "cause": one and _cause(kind, train, one in overlapped),
            **_columns("gold", one),
            **_columns("predicted", other),
            "form": doc.form(about),
            "predicted_form": other and doc.form(other),
            "probability": found.get(other) if other else None,
            "gold_probability": found.get(one) if one else None,
            **(train or InTrain())._asdict(),
            "before": doc.text[first : about[0]],
            "after": doc.text[about[1] : last],
        }


def _columns(side: str, span: SpanKey | None) -> dict[str, Any]:
    start, end, label = span or (None, None, None)
    return {f"{side}_label": label, f"{side}_start": start, f"{side}_end": end}


def _cause(kind: str, train: InTrain | None, overlapped: bool) -> str:
    """Return the cause of a gold span: the kind of its pair, or, if it is missed, one of MISSED.

    overlapped (bool): a prediction overlaps it, which is in another pair if the span is missed.
    """
    if kind == "right":
        return "found"
    if train is None:
        return TOKENS
    if kind != "missed":
        return kind
    if overlapped:
        return "overlapped"
    if train.free >= ENOUGH and train.marked <= HARDLY * train.free:
        return "otherwise" if 2 * train.otherwise >= train.free else "unmarked"
    return "new" if not train.marked else "known" if train.marked >= train.free else "sometimes"
