"""Write an evaluation's tables from predictions made by hand."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from labelwise.base.text import SpanKey
from labelwise.corpus.surface_forms import SurfaceForms
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.rows import make_rows
from labelwise.evaluate.tables import Rows, Tables, write_tables


class InTrain(NamedTuple):
    """Counts of a form in train, with the label and without, and its most frequent other label."""

    marked: int = 0
    free: int = 0
    otherwise: int = 0
    other_label: str | None = None


Texts = Iterable[tuple[PredictedDoc, Mapping[SpanKey, InTrain | None]]]


def write_rows(
    docs: Texts, split: str, labels: Sequence[str], tables: Tables, seen: np.ndarray | None = None, dev: Texts = ()
) -> None:
    """Write the rows of texts, each with counts of its spans in train; None without token boundaries.

    dev (Texts): texts of dev beside the split.
    """
    forms, numbers = SurfaceForms(labels), count(1)

    def rows(texts: Texts, name: str) -> Rows:
        """Make a split's rows, and count its forms as if they were in train."""
        given = []
        for doc, in_train in texts:
            own = {}
            for span in sorted({*doc.gold, *doc.predicted}):
                train = in_train.get(span, InTrain())
                if train is None or span[2] not in labels:
                    continue
                own[span] = next(numbers)
                label, other = (forms.labels.index(one) for one in (span[2], train.other_label or span[2]))
                key, other_key = forms.keys(np.array([own[span]] * 2, np.uint64), np.array([label, other])).tolist()
                forms.marked.add(np.array([key] * train.marked + [other_key] * train.otherwise, np.uint64))
                forms.free.add(np.array([key] * train.free, np.uint64))
            given.append((doc, own))
        return make_rows(given, name, labels, seen if name == split else None)

    splits = [rows(dev, "dev"), rows(docs, split)]
    write_tables(([docs_of_split] for docs_of_split in splits), tables, forms)
