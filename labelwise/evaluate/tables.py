"""The two tables of an evaluation; scores, intervals and examples are queries of them.

`texts.parquet` has a row for each scored text. `pairs.parquet` has a row for each pair of gold and predicted span, or
an unpaired span; see `pairs`. Both are sorted by key, in row groups of the same GROUP texts. dev comes before test, and
no row group has texts of both.

A prediction in a text that isn't annotated for its label is "unscored". A per-label recognizer also predicts
overlapping spans: unless they are entities or gold, they are "nested", and so is predicted gold that overlaps other
gold. Misaligned gold is a row like any other, with its cause.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from labelwise.base.errors import InputError
from labelwise.corpus.surface_forms import SurfaceForms
from labelwise.evaluate.predictions import PredictedDoc

GROUP = 1024  # texts of a row group
MIN_UNANNOTATED = 5  # unannotated occurrences in train that contradict gold
MAX_ANNOTATED_SHARE = 0.05  # and the share of annotated ones that doesn't matter
# Why a span is missed: another prediction overlaps it; or by what train has of its form. Gold without token boundaries
# has the cause MISALIGNED in any case.
MISALIGNED = "misaligned"
MISSED = ("overlapped", "seen", "inconsistent", "unseen", "unannotated", "other_label", MISALIGNED)

NAME = pa.dictionary(pa.int32(), pa.string())
SPAN = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("label", pa.string())])
TEXTS = pa.schema(
    {
        "key": pa.string(),
        "doc": pa.string(),
        "split": NAME,
        "words": pa.int32(),
        "partial": pa.list_(pa.string()),  # labels with accepted or rejected spans only
        "unknown": pa.list_(pa.string()),  # unannotated labels; all others are complete or partial
        "rejected": pa.list_(SPAN),
        "overlaps": pa.bool_(),  # some gold spans overlap
        "unit": pa.string(),  # digest of the group of dependent texts, or the text's key
        "groups": pa.list_(pa.struct([("by", pa.string()), ("value", pa.string())])),  # for scores of groups
        "seen": pa.bool_(),  # in train or dev of the pipeline; null if it has no digests
    }
)
PAIRS = pa.schema(
    {
        "key": pa.string(),
        "doc": pa.string(),
        "split": NAME,
        "kind": NAME,  # one of pairs.Kind, "unscored" or "nested"
        "cause": NAME,  # of gold: one of MISSED; or else the kind
        "gold_label": NAME,
        "gold_start": pa.int32(),
        "gold_end": pa.int32(),
        "predicted_label": NAME,
        "predicted_start": pa.int32(),
        "predicted_end": pa.int32(),
        "gold_text": pa.string(),  # its words, with each run of white space made one space
        "predicted_text": pa.string(),
        "probability": pa.float64(),  # of the predicted span
        "gold_probability": pa.float64(),  # of the gold span, if it was predicted, also inside another span
        # How often train annotates the words of gold, or else of the prediction, with the label; how often it has them
        # without it, in texts that are complete for it; and with the other label that they have most often.
        "annotated": pa.int32(),
        "unannotated": pa.int32(),
        "otherwise": pa.int32(),
        "other_label": NAME,
        "before": pa.string(),
        "after": pa.string(),
    }
)


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.string()) if field.type == NAME else field for field in schema])


# The rows of a part: the number of a text's pairs, and the digest of a form, without which train isn't looked up.
TEXT_ROWS = _plain(TEXTS).append(pa.field("pairs", pa.int32()))
PAIR_ROWS = _plain(PAIRS).append(pa.field("form_digest", pa.uint64()))
FORM = ("form_digest", "gold_label", "predicted_label")


class Rows(NamedTuple):
    """Rows of some texts and their pairs, before train is counted."""

    texts: pa.Table
    pairs: pa.Table

    @classmethod
    def read(cls, folder: Path, columns: Sequence[str] | None = None) -> "Rows":
        """Read the rows from a folder; of pairs, some columns or all."""
        texts, pairs = (parquet.ParquetFile(file) for file in Tables.of(folder).files)
        return cls(texts.read(), pairs.read(columns and [*columns]))

    def write(self, folder: Path) -> None:
        """Write the rows to a folder."""
        for rows, file in zip(self, Tables.of(folder).files, strict=True):
            parquet.write_table(rows, file)


class Tables(NamedTuple):
    """The files of the two tables, and the split to read; "" for the only one."""

    texts: Path
    pairs: Path
    split: str = ""

    @classmethod
    def of(cls, folder: Path) -> "Tables":
        """Return the tables in a folder."""
        return cls(folder / "texts.parquet", folder / "pairs.parquet")

    @property
    def files(self) -> tuple[Path, Path]:
        """Return both files."""
        return self.texts, self.pairs

    def digest(self) -> str:
        """Digest both files, to name the tables in metrics."""
        digest = hashlib.blake2b(digest_size=8)
        for file in self.files:
            with file.open("rb") as opened:
                hashlib.file_digest(opened, lambda: digest)
        return digest.hexdigest()

    def groups(self, texts: Sequence[str], pairs: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield columns of both tables, for GROUP texts of the split at once.

        RAISES (InputError): if a file is malformed.
        """
        first, second = map(_open, self.files)
        for number in range(first.num_row_groups):
            if self.split in ("", first.read_row_group(number, ["split"])["split"][0].as_py()):
                yield first.read_row_group(number, [*texts]), second.read_row_group(number, [*pairs])

    def docs(self, *, overlapping: bool = False) -> Iterator[list[PredictedDoc]]:
        """Yield the spans of the split's texts, without the text, in lists of GROUP texts; see `groups`.

        overlapping (bool): predicted are all spans of a per-label recognizer, which may overlap, instead of entities.
        """
        columns = ["key", "kind", "gold_probability"]
        columns += [f"{side}_{name}" for side in ("gold", "predicted") for name in ("start", "end", "label")]
        for texts, pairs in self.groups(("key", "partial", "unknown", "rejected"), columns):
            docs: dict[str, PredictedDoc] = {}
            for row in texts.to_pylist():
                uncovered = dict.fromkeys(row["partial"], "partial") | dict.fromkeys(row["unknown"], "none")
                rejected = [(span["start"], span["end"], span["label"]) for span in row["rejected"]]
                docs[row["key"]] = PredictedDoc(row["key"], "", [], [], rejected, uncovered)
            for key, kind, found, *spans in zip(*(pairs[name].to_pylist() for name in columns), strict=True):
                gold, predicted = (spans[0], spans[1], spans[2]), (spans[3], spans[4], spans[5])
                if gold[2]:
                    docs[key].gold.append(gold)
                if predicted[2] and (overlapping or kind != "nested"):
                    docs[key].predicted.append(predicted)
                if overlapping and gold[2] and found is not None:  # gold that may be no entity
                    docs[key].predicted.append(gold)
            yield [*docs.values()]

    def read_units(self) -> pa.Table:
        """Read key and unit of the split's texts; of an earlier version's tables, the key for both."""
        texts = _open(self.texts).read(["key", "unit", "split"])
        texts = texts.filter(pc.equal(texts["split"].cast(pa.string()), self.split)) if self.split else texts
        return texts if "unit" in texts.column_names else texts.append_column("unit", texts["key"])

    def read_pairs(self, columns: Sequence[str], rows: Any = None) -> pa.Table:
        """Read columns of the split's pairs, filtered by a pyarrow expression if given."""
        _open(self.pairs)
        if self.split:
            rows = (pc.field("split") == self.split) & (pc.scalar(True) if rows is None else rows)
        table = parquet.read_table(self.pairs, columns=[*columns], filters=rows)
        return table.unify_dictionaries()  # each row group has its own


def _open(file: Path) -> parquet.ParquetFile:
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; run the evaluation, or `dvc pull` what it wrote")
    try:
        return parquet.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a table of an evaluation ({error}); run the evaluation again") from error


def write_tables(splits: Iterable[Iterable[Rows]], tables: Tables, forms: SurfaceForms) -> None:
    """Write the rows of each split's parts to both tables, in order, with train's counts of surface forms."""
    with parquet.ParquetWriter(tables.texts, TEXTS) as texts, parquet.ParquetWriter(tables.pairs, PAIRS) as pairs:
        for group in chain.from_iterable(map(_regroup, splits)):
            for writer, rows, more in (
                (texts, group.texts, {}),
                (pairs, group.pairs, count_in_train(group.pairs, forms)),
            ):
                columns = [_encode(more.get(one.name, rows[one.name]), one.type) for one in writer.schema]
                table = pa.Table.from_arrays(columns, schema=writer.schema)
                writer.write_table(table, row_group_size=max(1, len(rows)))


def _regroup(parts: Iterable[Rows]) -> Iterator[Rows]:
    texts, pairs = TEXT_ROWS.empty_table(), PAIR_ROWS.empty_table()
    for part in parts:
        texts, pairs = pa.concat_tables([texts, part.texts]), pa.concat_tables([pairs, part.pairs])
        while len(texts) >= GROUP:
            n = pc.sum(texts["pairs"][:GROUP]).as_py()
            yield Rows(texts[:GROUP], pairs[:n])
            texts, pairs = texts[GROUP:], pairs[n:]
    if len(texts):
        yield Rows(texts, pairs)


def _encode(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return array.dictionary_encode() if kind == NAME else array.cast(kind)


def find_forms(forms: SurfaceForms, pairs: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the pairs whose surface form is known; return their indices, and digests and label numbers of the forms."""
    known = np.flatnonzero(pairs["form_digest"].is_valid())
    label = pc.coalesce(pairs["gold_label"], pairs["predicted_label"])
    number = pc.index_in(label, pa.array(forms.labels, pa.string())).fill_null(0)
    return known, pairs["form_digest"].fill_null(0).to_numpy()[known], number.to_numpy()[known]


def count_in_train(pairs: pa.Table, forms: SurfaceForms) -> dict[str, pa.ChunkedArray]:
    """Return the columns about train: counts of each pair's surface form, and causes of missed spans."""
    known, digests, labels = find_forms(forms, pairs)
    keys, first, back = np.unique(forms.keys(digests, labels), return_index=True, return_inverse=True)
    others = np.zeros((len(keys), 1 + len(forms.labels)), int)  # (forms, none and each label)
    others[:, 1:] = forms.marked.of(forms.keys(digests[first, None], np.arange(len(forms.labels))))
    others[np.arange(len(keys)), 1 + labels[first]] = 0
    of_forms = np.stack([forms.marked.of(keys), forms.free.of(keys), others.max(1), others.argmax(1)])
    annotated, unannotated, otherwise, other = columns = np.zeros((4, len(pairs)), int)
    columns[:, known] = of_forms[:, back]
    hardly = (unannotated >= MIN_UNANNOTATED) & (annotated <= MAX_ANNOTATED_SHARE * unannotated)
    kinds = [hardly & (2 * otherwise >= unannotated), hardly, annotated == 0, annotated >= unannotated]
    causes = pa.array(np.select(kinds, ["other_label", "unannotated", "unseen", "seen"], "inconsistent"))
    other_label = pa.array([None, *forms.labels], pa.string()).take(pa.array(other))
    arrays = {"annotated": annotated, "unannotated": unannotated, "otherwise": otherwise, "other_label": other_label}
    cause = pc.if_else(pc.equal(pairs["cause"], "missed"), causes, pairs["cause"])
    return {"cause": cause} | {name: pa.chunked_array([array]) for name, array in arrays.items()}
