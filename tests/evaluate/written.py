"""Write the tables of an evaluation from predictions made by hand."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from labelwise.base.text import SpanKey
from labelwise.corpus.surface_forms import SurfaceForms
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.rows import make_rows
from labelwise.evaluate.tables import Tables, write_tables


class InTrain(NamedTuple):
    """How often train marks a form with a label, and leaves it without; and its most frequent other label."""

    marked: int = 0
    free: int = 0
    otherwise: int = 0
    other_label: str | None = None


def write_rows(
    docs: Iterable[tuple[PredictedDoc, Mapping[SpanKey, InTrain | None]]],
    split: str,
    labels: Sequence[str],
    tables: Tables,
    seen: np.ndarray | None = None,
) -> None:
    """Write the rows of texts, each with what train has of its spans; None without token boundaries."""
    forms, numbers, given = SurfaceForms(labels), count(1), []
    for doc, in_train in docs:
        own = {}
        for span in sorted({*doc.gold, *doc.predicted}):
            train = in_train.get(span, InTrain())
            if train is None or span[2] not in labels:
                continue
            own[span] = next(numbers)
            label, other = (forms.labels.index(name) for name in (span[2], train.other_label or span[2]))
            key, other_key = forms.keys(np.array([own[span]] * 2, np.uint64), np.array([label, other])).tolist()
            forms.marked.add(np.array([key] * train.marked + [other_key] * train.otherwise, np.uint64))
            forms.free.add(np.array([key] * train.free, np.uint64))
        given.append((doc, own))
    write_tables([make_rows(given, split, labels, seen)], tables, forms)
