"""Mistakes on test, as queries of the table of pairs: which labels are confused, and examples in their texts."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labelwise.evaluate.tables import Tables

MOST = 8  # examples of a label
CONFUSED = 30  # pairs of labels
SHOWN = [
    "kind",
    "doc",
    "key",
    "form",
    "predicted_form",
    "gold_label",
    "predicted_label",
    "before",
    "after",
    "marked",
    "free",
]
WRONG = pc.field("kind").isin(["missed", "spurious", "boundaries", "label"])


def find_confused(tables: Tables) -> list[tuple[str, str, int]]:
    """List the pairs of a gold label and a predicted one that is another, with how often, the most frequent first."""
    rows = tables.read_pairs(["gold_label", "predicted_label"], pc.field("kind") == "label")
    counted = rows.group_by(["gold_label", "predicted_label"]).aggregate([([], "count_all")]).to_pylist()
    found = [(row["gold_label"], row["predicted_label"], row["count_all"]) for row in counted]
    return sorted(found, key=lambda row: (-row[2], row[:2]))[:CONFUSED]


def find_examples(tables: Tables) -> dict[str, list[dict[str, Any]]]:
    """Choose examples of each label's mistakes: those whose words are wrong most often first, each form once."""
    names = ["kind", "gold_label", "predicted_label", "form", "predicted_form"]
    rows = tables.read_pairs(SHOWN, WRONG)
    rows = rows.append_column("place", pa.array(range(len(rows))))
    groups = rows.group_by(names).aggregate([([], "count_all"), ("place", "min")])
    found: dict[str, list[dict[str, Any]]] = {}
    for group in groups.sort_by([("count_all", "descending"), ("place_min", "ascending")]).to_pylist():
        for label in {group["gold_label"], group["predicted_label"]} - {None}:
            if len(found.setdefault(label, [])) < MOST:
                found[label].append({"count": group["count_all"], "place": group["place_min"]})
    chosen = sorted({one["place"] for some in found.values() for one in some})
    taken = rows.take(pa.array(chosen, pa.int64())).to_pylist()
    shown: Mapping[int, dict[str, Any]] = {row["place"]: row for row in taken}
    return {label: [{**shown[one["place"]], **one} for one in some] for label, some in sorted(found.items())}
