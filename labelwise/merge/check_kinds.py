"""The form of an import check: a query of a merge, a sentence, a remedy, and lines to paste.

The words are str.format templates over the query's values. `{where}` names the place that declares the dataset, and
`{add}` asks to add a line there. Besides Python's formats, there are:

- `{n:row was|rows were}` for a number with a noun ("1 row was", "2,000 rows were"), `{n:span}` for "1 span", "2 spans";
- `{n:~is|are}` for a word that depends on a number, or on the length of a list;
- `{labels:label|labels}` for a list with a noun ("label A", "labels A, B and 4 more"), `{labels!r}` for quoted names;
- `{offsets:?read as %s}` for words omitted if the value is empty;
- a dict for counts, in its order ("PER (60), LOC (3)"), and `{name!y}` for a value in YAML.
"""

import os
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.base.settings import encode_yaml
from labelwise.base.text import counted
from labelwise.corpus import queries
from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.tables import read_columns, read_groups
from labelwise.corpus.texts import find_doc, read_groups_with_docs
from labelwise.datasets.convert_brat import read_conversion
from labelwise.datasets.declarations import DataSet
from labelwise.merge.figures import ANSWERED, Figures
from labelwise.merge.parts import Parts
from labelwise.merge.readings import Trials
from labelwise.merge.rules.settings import Settings

MIN_SPANS = 10  # or rows; fewer may be chance
MAX_LISTED = 6  # names in a sentence
MAX_TEXTS, MAX_CHARS = 20_000, 2**21  # in the sample of texts
PUNCTUATION = frozenset(",.;:!?，。；：！？")
MAX_NAME_TOKENS = 6  # longer spans may be sentences, with their full stop
IF_CORRECT = "If the data is correct, {add}"
EXPECTED = "expect_losses: true"
CONTEXT_CHARS = 20  # on either side of a quoted span


class Evidence(NamedTuple):
    """Evidence of an import check, with examples: rows of the tables, or other quotes."""

    n: int = 0
    values: Mapping[str, Any] = {}
    rows: Sequence[Mapping[str, Any]] = ()
    quotes: Sequence[str] = ()
    dataset: DataSet | None = None


class SampledText(NamedTuple):
    """A text of the corpus: tokens, datasets, accepted spans and tokens in them by label.

    punctuated (Sequence[tuple[str, str]]): label and quote of short spans of words with a final punctuation mark.
    behind (Set[tuple[str, str]]): labels of spans, each with that of the span directly before it, or "".
    """

    text: str
    tokens: int
    datasets: Sequence[str]
    labels: Mapping[str, int] = {}
    spans: Mapping[str, int] = {}
    punctuated: Sequence[tuple[str, str]] = ()
    behind: Set[tuple[str, str]] = frozenset()


@dataclass
class Merged:
    """A merge, for queries; a stopping check found `misread` datasets."""

    corpus: Path
    datasets: Sequence[DataSet]
    settings: Settings
    ledger: Ledger
    figures: Mapping[str, Figures]
    trials: Trials
    parts: Parts = field(default_factory=dict)
    misread: set[str] = field(default_factory=set)

    @cached_property
    def sample(self) -> list[SampledText]:
        """Return the first texts by key: a random sample, because keys are digests."""
        texts: list[SampledText] = []
        chars = 0
        for group, docs in read_groups_with_docs(self.corpus, merged=False, only=("text", "split", "dataset")):
            datasets: dict[str, list[str]] = {}
            for key, name in read_columns(group.rows, "text", "dataset"):
                datasets.setdefault(key, []).append(name)
            for key, doc in docs:
                text, labels, spans = doc.text, Counter[str](), Counter[str]()
                starts, ends = doc.offsets()
                punctuated = []
                ending = {end: doc.strings[label_hash] for _, end, label_hash in doc.gold}
                behind = {(doc.strings[label_hash], ending.get(start, "")) for start, _, label_hash in doc.gold}
                for start, end, label_hash in doc.gold:
                    label = doc.strings[label_hash]
                    labels[label] += end - start
                    spans[label] += 1
                    if 1 < end - start <= MAX_NAME_TOKENS and doc.strings[doc.words[end - 1]] in PUNCTUATION:
                        punctuated.append((label, quote(text, starts[start], ends[end - 1])))
                names = [*dict.fromkeys(datasets[key])]
                texts.append(SampledText(text, len(doc), names, labels, spans, punctuated, behind))
                chars += len(text)
                if len(texts) >= MAX_TEXTS or chars >= MAX_CHARS:
                    return texts
        return texts

    @cached_property
    def lines(self) -> dict[tuple[str, str], np.ndarray]:
        """Return the sorted lines with spans of a label, by dataset and label, and all lines, by dataset and "".

        Of datasets in one file that `convert-brat` didn't write. Superseded and unusable spans count, too.
        """
        names = [
            dataset.name
            for dataset in self.datasets
            if len(dataset.files) == 1 and not read_conversion(Path(dataset.declared).parent)
        ]
        lines: defaultdict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
        columns = ("text", "row", "dataset", "kind", "line", "label", "reason")
        for group in read_groups(self.corpus, merged=False, columns=columns) if names else ():
            every = group.rows.append_column("label", pa.repeat("", len(group.rows)))
            spans = group.rows.take(queries.find_rows(group)).append_column("label", group.spans["label"])
            for table in (every, spans.filter(pc.not_equal(spans["label"], ""))):
                of_files = queries.where(queries.where(table, "dataset", names), "kind", ["complete"])
                answered = queries.where(of_files, "reason", ANSWERED)
                listed = answered.group_by(["dataset", "label"], use_threads=False).aggregate([("line", "list")])
                for name, label, of in zip(*(listed[key] for key in ("dataset", "label", "line_list")), strict=True):
                    lines[name.as_py(), label.as_py()].append(np.unique(of.values))
        return {key: np.unique(np.concatenate(parts)) for key, parts in lines.items()}


class Data(NamedTuple):
    """A dataset of a merge, for queries."""

    dataset: DataSet
    merged: Merged

    @property
    def figures(self) -> Figures:
        """Return the dataset's counts."""
        return self.merged.figures[self.dataset.name]

    @property
    def sample(self) -> list[SampledText]:
        """Return its texts in the sample."""
        return [text for text in self.merged.sample if self.dataset.name in text.datasets]

    @property
    def files(self) -> range:
        """Return its files' numbers among all datasets' files."""
        before = takewhile(lambda dataset: dataset.name != self.dataset.name, self.merged.datasets)
        first = sum(len(dataset.files) for dataset in before)
        return range(first, first + len(self.dataset.files))

    def label_texts(self, *reasons: str) -> Iterator[Mapping[str, set[str]]]:
        """Yield, per row group, the keys of texts with spans of these outcomes, by label."""
        for group in read_groups(self.merged.corpus, merged=False, columns=("text", "dataset", "label", "reason")):
            spans = queries.where(queries.where(group.spans, "dataset", [self.dataset.name]), "reason", reasons)
            keys: defaultdict[str, set[str]] = defaultdict(set)
            for text, label in queries.count(spans.filter(pc.is_valid(spans["text"])), "text", "label"):
                keys[label].add(text)
            yield keys


class Kind:
    """An import check; if it stops, later stages refuse the corpus, unless `expect_losses: true`.

    people (bool): whether its words name annotators.
    """

    def __init__(
        self,
        name: str,
        query: Callable[[Merged], Iterable[Evidence]],
        sentence: str,
        remedy: str = "",
        *lines: str,
        stops: bool = False,
        people: bool = False,
    ) -> None:
        self.name, self.query, self.stops, self.people = name, query, stops, people
        self.sentence, self.remedy, self.lines = sentence, remedy, lines

    def find(self, merged: Merged) -> Iterator[ImportCheck]:
        """Yield the query's findings, as data."""
        for n, values, rows, quotes, dataset in self.query(merged):
            if dataset and self.stops:
                merged.misread.add(dataset.name)
            yield ImportCheck(
                kind=self.name,
                dataset=dataset.name if dataset else "",
                n=n,
                values=dict(values),
                places=[f"{row['file']}:{row['line']}" for row in rows],
                stops=self.stops and not (dataset and dataset.expect_losses),
                sample=[*(_quote_row(row, merged.corpus) for row in rows), *quotes],
                where=_declaration(dataset) if dataset else "",
            )


def dataset_check(
    name: str, query: Callable[[Data], Iterable[Evidence]], sentence: str, *words: str, **options: Any
) -> Kind:
    """Make an import check of each dataset, whose name begins the sentence; see `Kind`."""

    def of_all(merged: Merged) -> Iterator[Evidence]:
        for dataset in merged.datasets:
            yield from (evidence._replace(dataset=dataset) for evidence in query(Data(dataset, merged)))

    return Kind(name, of_all, f"Dataset {{dataset!r}}: {sentence}", *words, **options)


def some(n: int, rows: Sequence[Mapping[str, Any]] = (), quotes: Sequence[str] = (), **values: Any) -> list[Evidence]:
    """Return evidence of a nonzero number; see `Evidence`."""
    return [Evidence(int(n), values, rows, quotes)] if n else []


def each_of(name: str, table: Mapping[str, Mapping[str, int]], template: str) -> list[Evidence]:
    """Return evidence of a table of counts as one value; the template gets both keys."""
    counts = {template.format(outer, inner): n for outer, of in table.items() for inner, n in of.items()}
    return [Evidence(sum(counts.values()), {name: largest_first(counts)})] if counts else []


def nothing(merged: Merged) -> Iterable[Evidence]:
    """Find nothing, for checks outside a merge."""
    return ()


class Words(NamedTuple):
    """The words of an import check."""

    sentence: str
    remedy: str
    lines: tuple[str, ...]


def write_words(kind: Kind, check: ImportCheck) -> Words:
    """Put a finding into words."""
    where = check.where or f"the entry {check.dataset!r} in datasets.yml"
    values = {"dataset": check.dataset, "n": check.n, "where": where, "add": f"add to {where}", **check.values}

    def fill(template: str) -> str:
        return _FORMATTER.vformat(template, (), values)

    remedy = fill(kind.remedy)
    return Words(fill(kind.sentence), remedy[:1].upper() + remedy[1:], tuple(filter(None, map(fill, kind.lines))))


def largest_first(counts: Mapping[Any, int]) -> dict[str, int]:
    """Sort counts, largest first, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def quote(text: str, start: int, end: int) -> str:
    """Quote a span in brackets, with the words around it."""
    before, after = text[max(0, start - CONTEXT_CHARS) : start], text[end : end + CONTEXT_CHARS]
    return " ".join(f"{before}[{text[start:end]}]{after}".split())


class _Formatter(string.Formatter):
    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion == "y":
            return encode_yaml([value]).strip()[1:-1]
        if conversion == "r" and isinstance(value, list):
            return [*map(repr, value)]
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.startswith("?"):
            return format_spec[1:].replace("%s", self.format_field(value, "")) if value else ""
        singular, _, plural = format_spec.removeprefix("~").partition("|")
        if isinstance(value, dict):
            return ", ".join(f"{name} ({n:,})" for name, n in [*value.items()][:MAX_LISTED])
        if format_spec.startswith("~"):
            return singular if (len(value) if isinstance(value, list) else value) == 1 else plural
        if isinstance(value, list):
            rest = f" and {len(value) - MAX_LISTED:,} more" if len(value) > MAX_LISTED else ""
            names = ", ".join(value[:MAX_LISTED]) or "none"
            return f"{singular if len(value) == 1 else plural} {names}{rest}".lstrip()
        return counted(value, singular, plural) if singular[:1].isalpha() else format(value, format_spec)


_FORMATTER = _Formatter()


def _declaration(dataset: DataSet) -> str:
    if read_conversion(Path(dataset.declared).parent):
        return "the section brat of project.yml"
    return f"the entry {dataset.name!r} in {os.path.relpath(dataset.declared)}"


def _quote_row(row: Mapping[str, Any], corpus: Path) -> str:
    place = f"{row['file']}:{row['line']}"
    quotable = row.get("start") is not None and row["split"]
    doc = find_doc(corpus, row["split"], row["text"]) if quotable else None
    if doc is None:
        return f"{place}  {queries.describe(row)}"
    return f"{place}  {row['label']}  {quote(doc.text, row['start'], row['end'])}"
