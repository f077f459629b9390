"""The columns of the tables as they are before pyarrow reads them, which would take 40 MB in each process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

# The columns in which rows of a table differ most; each row numbers the tuple of its values in the others.
OWN = {
    "rows": ("text", "row", "line", "when"),
    "spans": ("text", "row", "span", "line", "start", "end", "words"),
}


class Columns(NamedTuple):
    """Some rows of a table.

    own (Sequence[Sequence]): the table's own columns, and the numbers of the rows' values in the others; none if there
        are no rows.
    shared (Sequence[Sequence]): these values, in the order of the schema.
    """

    own: Sequence[Sequence[Any]]
    shared: Sequence[Sequence[Any]]
