"""Check that the tables have all rows and spans of each source, each once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc

from labelwise.corpus import queries
from labelwise.corpus.tables import Group, read_groups
from labelwise.merge.buckets import Buckets
from labelwise.merge.read import ReadCounts, Source


class SourceCounts(NamedTuple):
    """Rows and spans with an outcome, by dataset and file; some problems have their own file."""

    rows: Counter[Any]
    spans: Counter[Any]

    def add(self, group: Group) -> None:
        """Add the counts of a row group."""
        self.rows.update(queries.count(queries.of_sources(group.rows), "dataset", "file"))
        self.spans.update(count_spans(group))


def check_balance(
    counted: SourceCounts, corpus: Path, sources: Sequence[Source], read: Sequence[ReadCounts], buckets: Buckets
) -> None:
    """Compare the readers' counts with the tables, by source; a difference is a bug."""
    rows, spans = counted
    expected: Counter[tuple[str, str, str]] = Counter()
    for source, counts in zip(sources, read, strict=True):
        name = (source.dataset.name, source.file.name)
        expected.update({(table, name[0], file): n for (table, file), n in counts.elsewhere.items()})
        if (counts.rows, counts.spans) != (rows[name], spans[name]):
            line = _first_missing(corpus, source, buckets)
            raise RuntimeError(
                f"{source.file.path}{line}: {counts.rows} rows and {counts.spans} spans were read, and {rows[name]} "
                f"and {spans[name]} have an outcome; please report this"
            )
    for (table, *place), n in expected.items():
        if n != (written := getattr(counted, table)[*place]):
            raise RuntimeError(f"{place[1]}: {n} {table} were read, and {written} have an outcome; please report this")


def count_spans(group: Group) -> Counter[Any]:
    """Count the spans of sources by dataset and file of their rows."""
    without_row = group.spans.filter(pc.is_null(group.spans["row"]))
    with_row = group.spans.filter(pc.is_valid(group.spans["row"]))
    places = pc.add(pc.index_in(with_row["text"], group.rows["text"]), with_row["row"])
    rows = queries.of_sources(group.rows.take(places))
    return queries.count(rows, "dataset", "file") + queries.count(without_row, "dataset", "file")


def _first_missing(corpus: Path, source: Source, buckets: Buckets) -> str:
    """Return the first line of a source without a row; "" if all have one."""
    name, file = source.dataset.name, source.file.name
    lines: set[int] = set()
    for group in read_groups(corpus, merged=False):
        own = pc.and_(pc.equal(group.rows["dataset"], name), pc.equal(group.rows["file"], file))
        lines.update(group.rows.filter(own)["line"].to_pylist())
    read = {
        task.line
        for number in range(1 << buckets.bits)
        for text in buckets.texts(number, buckets.bits, buckets.folder)
        for of, task in text.tasks()
        if of == source.number
    }
    return f":{min(read - lines)}" if read - lines else ""
