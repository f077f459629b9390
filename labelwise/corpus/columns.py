"""Columns of the tables before pyarrow reads them, which would take 40 MB in each process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

# The columns with the most distinct values; each row numbers the tuple of its values in the others.
OWN = {
    "rows": ("text", "row", "line", "when"),
    "spans": ("text", "row", "span", "line", "start", "end", "words"),
}


class Columns(NamedTuple):
    """Rows of a table: its own columns with indices into `shared`, rows of values of the other columns."""

    own: Sequence[Sequence[Any]]
    shared: Sequence[Sequence[Any]]
