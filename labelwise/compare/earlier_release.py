"""Read scores and pairs by 0.3.0, with its names of keys, columns and values."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import parquet

from labelwise.base.errors import InputError
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import PAIRS, Tables

EARLIER = re.compile(r"0\.[12]\b")  # releases whose results aren't read
# The names of 0.3.0, and today's: keys of metrics, columns of pairs, and values of their columns VALUES.
NAMES = {
    "untaught": "excluded_labels",
    "unjudged": "unscored",
    "form": "gold_text",
    "predicted_form": "predicted_text",
    "marked": "annotated",
    "free": "unannotated",
    "known": "seen",
    "sometimes": "inconsistent",
    "new": "unseen",
    "unmarked": "unannotated",
    "otherwise": "other_label",
    "tokens": "misaligned",
}
KEPT = {"otherwise"}  # columns with the name of a former value
VALUES = ("kind", "cause")


def decode_metrics(content: bytes, name: str, remedy: str) -> Metrics:
    """Decode the scores of a pipeline, also by 0.3.0.

    name, remedy (str): for the error: the file, and what to do.
    RAISES (InputError): if an earlier release wrote them.
    RAISES (msgspec.DecodeError): if they aren't scores.
    """
    metrics = msgspec.json.decode(content, type=dict[str, Any])
    version = metrics.get("labelwise")
    if version is None or EARLIER.match(str(version)):
        release = f"labelwise {version}" if version else "a release before 0.3.0"
        raise InputError(f"{name}: {release} wrote it, but comparisons read results of 0.3.0 and later; {remedy}")
    for split in filter(None, (metrics, metrics.get("dev"))):
        mistakes = msgspec.convert(split.get("mistakes", {}), dict[str, dict[str, Any]])
        for label, counts in mistakes.items():
            mistakes[label] = _rename(counts) | {"causes": _rename(counts.get("causes", {}))}
        split["mistakes"] = mistakes
    return msgspec.convert(_rename(metrics), Metrics)


def _rename(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {NAMES.get(key, key): value for key, value in keys.items()}


def rename_pairs(tables: Tables) -> None:
    """Rename the values of 0.3.0's pairs to today's, in place."""
    old = parquet.ParquetFile(tables.pairs)
    if "form" not in old.schema_arrow.names:
        return
    renamed = tables.pairs.with_suffix(".renamed")
    with parquet.ParquetWriter(renamed, PAIRS) as writer:
        for number in range(old.num_row_groups):
            rows = old.read_row_group(number)
            rows = rows.rename_columns([name if name in KEPT else NAMES.get(name, name) for name in rows.column_names])
            for name in VALUES:
                values = [NAMES.get(value, value) for value in rows[name].to_pylist()]
                place = rows.schema.get_field_index(name)
                rows = rows.set_column(place, name, pa.array(values, pa.string()).dictionary_encode())
            writer.write_table(rows.select(PAIRS.names).cast(PAIRS), row_group_size=max(1, len(rows)))
    renamed.replace(tables.pairs)
