"""List rows and spans that can't be used, or need a person's attention."""

from collections.abc import Iterator
from pathlib import Path

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS, Reason
from labelwise.corpus import queries
from labelwise.corpus.tables import read_groups

ROWS = (*ROW_PROBLEMS, Reason.NOT_ANNOTATED, Reason.POLICY_QUESTION, Reason.STALE_DECISION)
SPANS = (*SPAN_PROBLEMS, Reason.NOT_A_SPAN)


def find_problems(corpus: Path) -> Iterator[str]:
    """Yield a line for each: dataset, file, line, reason and details.

    RAISES (InputError): if a merge hasn't written the tables.
    """
    for group in read_groups(corpus, stopped=True):
        for table, reasons in ((group.rows, ROWS), (group.spans, SPANS)):
            for row in queries.where(table, "reason", reasons).to_pylist():
                name = f"{row['dataset']}\t" if row["dataset"] else ""
                yield f"{name}{row['file']}:{row['line']}\t{queries.describe(row)}"
