"""Scores of trainings that differ by their seed alone: span counts by text, and F1."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.base.text import DECODE_ERRORS
from labelwise.evaluate.resampling import f_scores
from labelwise.evaluate.scores import Score

NAME = pa.dictionary(pa.int32(), pa.string())
COUNTS = ("right", "predicted", "gold")
SCHEMA = pa.schema({"split": NAME, "key": NAME, "label": NAME, "seed": pa.int64(), **dict.fromkeys(COUNTS, pa.int32())})


class Seeds(msgspec.Struct):
    """The file metrics/NAME_seeds.json.

    inputs (dict): see `digest_inputs`.
    micro, macro (dict): F1 by split, then by seed and "mean".
    """

    inputs: dict[str, str]
    counts: str
    micro: dict[str, dict[str, Score]]
    macro: dict[str, dict[str, Score]]
    labels: dict[str, dict[str, dict[str, Score]]]


def digest_inputs(config: bytes, corpus: str, pipeline: str) -> dict[str, str]:
    """Return the inputs of the trainings: config, and digests of the corpus and the first pipeline."""
    return {"config": hashlib.sha256(config).hexdigest(), "corpus": corpus, "pipeline": pipeline}


def make_table(split: str, seed: int, labels: Sequence[str], texts: Iterable[tuple[str, Any]]) -> pa.Table:
    """Make the rows of a training, one for each text and label with spans.

    texts (Iterable): key, and right, predicted and gold spans by label, shape (labels, 3).
    """
    rows = [
        {"split": split, "key": key, "label": label, "seed": seed, **dict(zip(COUNTS, row, strict=True))}
        for key, counts in texts
        for label, row in zip(labels, np.asarray(counts).tolist(), strict=True)
        if any(row)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def read_counts(table: pa.Table, column: str, values: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """Sum the counts of rows by values of a column, shape (values, trainings, labels, 3)."""
    value, label = (
        pc.index_in(table[name].cast(pa.string()), pa.array(wanted, pa.string())).fill_null(-1).to_numpy()
        for name, wanted in ((column, values), ("label", labels))
    )
    seeds, training = np.unique(table["seed"], return_inverse=True)
    known = (value >= 0) & (label >= 0)
    counts = np.zeros((len(values), len(seeds), len(labels), len(COUNTS)), int)
    np.add.at(counts, (value[known], training[known], label[known]), np.stack([table[n] for n in COUNTS], -1)[known])
    return counts


def score_seeds(table: pa.Table, labels: Sequence[str]) -> dict[str, Any]:
    """Compute F1 of each training on each split, as fields of `Seeds`."""
    splits, seeds = table["split"].cast(pa.string()).unique().to_pylist(), np.unique(table["seed"]).tolist()
    f = f_scores(read_counts(table, "split", splits, labels))  # (splits, trainings, labels + 2)
    f = np.concatenate([f, f.mean(1, keepdims=True)], 1)
    *rows, micro, macro = (
        {
            split: {str(name): None if np.isnan(f) else f for name, f in zip((*seeds, "mean"), values, strict=True)}
            for split, values in zip(splits, column.tolist(), strict=True)
        }
        for column in np.moveaxis(f, -1, 0)
    )
    return {"micro": micro, "macro": macro, "labels": dict(zip(labels, rows, strict=True))}


def check_seeds(content: bytes, inputs: Mapping[str, str], table: bytes) -> str:
    """Explain why a file of scores doesn't belong to a pipeline; empty if it does.

    inputs (Mapping): digests of the pipeline; empty if unknown.
    table (bytes): counts; empty if missing.
    """
    try:
        seeds = msgspec.json.decode(content, type=Seeds)
    except DECODE_ERRORS as error:
        return f"isn't what `seeds` writes ({error})"
    if others := [what for what, digest in inputs.items() if digest and seeds.inputs.get(what) != digest]:
        return f"is of another {' and another '.join(others)}"
    if hashlib.sha256(table).hexdigest() != seeds.counts:
        return "was computed from another seeds.parquet than DVC has"
    return ""
