"""Find test texts that aren't complete for a label, and name those with unscored predictions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from labelwise.corpus.manifest import is_corpus
from labelwise.corpus.queries import count_labels
from labelwise.corpus.tables import read_groups
from labelwise.evaluate.tables import Tables

MAX_PLACES = 3  # texts that a message names
COLUMNS = ("text", "dataset", "file", "line", "answer", "label")


class Place(NamedTuple):
    """File, line and dataset of a row about a text.

    lacks (bool): the dataset's texts have no span of the label, by any dataset.
    """

    name: str
    dataset: str
    lacks: bool


class Unanswered(NamedTuple):
    """Test texts that aren't complete for some labels.

    texts (Counter): by label.
    unscored (Counter): by label, those with predictions of it that can't be scored.
    total (int): texts with unscored predictions of any label.
    places (Mapping): by label, the places of the first MAX_PLACES of `unscored`.
    """

    texts: Counter[str]
    unscored: Counter[str]
    total: int
    places: Mapping[str, list[Place]]


def find_unanswered(tables: Tables, corpus: Path) -> Unanswered:
    """Find unanswered texts in an evaluation's tables, row group by row group; the merge's tables have their places.

    corpus (Path): folder of the corpus; without one, texts are counted and not named.
    RAISES (InputError): if a table is malformed.
    """
    texts, unscored, total = Counter[str](), Counter[str](), 0
    first: dict[str, list[str]] = {}
    for group, pairs in tables.groups(("key", "partial", "unknown"), ("key", "kind", "predicted_label")):
        for name in ("partial", "unknown"):
            texts.update(pc.list_flatten(group[name]).to_pylist())
        rows = pairs.filter(pc.equal(pairs["kind"].cast(pa.string()), "unscored")).to_pylist()
        predictions = sorted({(row["key"], row["predicted_label"]) for row in rows})
        total += len({key for key, _ in predictions})
        unscored.update(label for _, label in predictions)
        for key, label in predictions:
            if len(keys := first.setdefault(label, [])) < MAX_PLACES:
                keys.append(key)
    return Unanswered(texts, unscored, total, _find_places(corpus, first) if first and is_corpus(corpus) else {})


def _find_places(corpus: Path, keys: Mapping[str, list[str]]) -> dict[str, list[Place]]:
    """Find a row of each text and label: if possible of a dataset with the label in its texts, then an ignored one."""
    texts = pa.array({key for texts_of in keys.values() for key in texts_of}, pa.string())
    rows: dict[str, list[dict[str, Any]]] = {}
    labels: set[tuple[str, str]] = set()  # dataset and label
    for group in read_groups(corpus, columns=COLUMNS):
        for row in group.rows.filter(pc.is_in(group.rows["text"], texts)).to_pylist():
            rows.setdefault(row["text"], []).append(row)
        labels.update(count_labels(group.rows, group.spans))
    return {
        label: [_choose(rows[key], label, labels) for key in texts_of if key in rows]
        for label, texts_of in keys.items()
    }


def _choose(rows: Iterable[Mapping[str, Any]], label: str, labels: set[tuple[str, str]]) -> Place:
    row = min(rows, key=lambda row: ((row["dataset"], label) not in labels, row["answer"] != "ignore"))
    name = f"{row['file']}:{row['line']}" if row["line"] else row["file"]
    return Place(name, row["dataset"], (row["dataset"], label) not in labels)
