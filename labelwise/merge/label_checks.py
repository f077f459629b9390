"""Find labels that would teach wrongly that a text has none: their datasets' annotators may not have been asked."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import numpy as np

from labelwise.corpus import queries
from labelwise.corpus.tables import read_groups
from labelwise.datasets.declarations import DataSet
from labelwise.datasets.entries import write_entries
from labelwise.merge.check_kinds import EXPECTED, IF_CORRECT, MIN_SPANS, Evidence, Kind, Merged, largest_first
from labelwise.merge.figures import ANSWERED, SUPERSEDED, USED

MIN_PRESENT = 0.02  # share of a dataset's texts that have spans of a label in other datasets
MIN_FIRST_ROWS = 0.1  # share of a file's rows that lack a label which others have
MAX_LATE_CHANCE = 1e-6  # that all rows with a label are behind them
MIN_RUNS = 5  # rows without a span in the longest run, for each in the second one
MAX_SHIFT = 4  # standard deviations of another label's rows among them; more where topics follow each other


def _unmarked_labels(merged: Merged) -> Iterator[Evidence]:
    """Find labels that a dataset lists and has no span of, though its texts have spans of them in other datasets."""
    unmarked = {
        data.name: {*data.labels, *data.absent} - {label for label, _ in merged.figures[data.name].spans}
        for data in merged.datasets
    }
    texts, present = Counter[str](), Counter[tuple[str, str]]()
    columns = ("text", "dataset", "kind", "label", "reason")
    for group in read_groups(merged.corpus, merged=False, columns=columns) if any(unmarked.values()) else ():
        rows = queries.where(queries.where(group.rows, "kind", ["complete"]), "reason", ANSWERED)
        texts += Counter(name for name, _ in queries.count(rows, "dataset", "text"))
        present += queries.count_labels(rows, queries.where(group.spans, "reason", (*USED, *SUPERSEDED)))
    for dataset in merged.datasets:
        all_texts = texts[dataset.name]
        least = max(MIN_SPANS, MIN_PRESENT * all_texts)
        labels = {label: n for label in unmarked[dataset.name] if (n := present[dataset.name, label]) >= least}
        if labels:
            yield Evidence(max(labels.values()), {"all": all_texts, "labels": largest_first(labels)}, dataset=dataset)


def _late_labels(merged: Merged) -> Iterator[Evidence]:
    """Find labels without a span in a JSONL file's first rows, where its other labels are as frequent as later."""
    lines = merged.lines
    files = {
        dataset.name: dataset
        for dataset in merged.datasets
        if len(dataset.labels) > 1 and all(file.name.endswith(".jsonl") for file in dataset.files)
    }
    for name, label in sorted((name, label) for name, label in lines if name in files and label in files[name].labels):
        marked, rows = lines[name, label], lines[name, ""]
        first, behind = int(marked.min()), len(marked)
        before = int((rows < first).sum())
        share = before / len(rows)
        rare = (1 - share) ** behind > MAX_LATE_CHANCE
        if rare or share < MIN_FIRST_ROWS:
            continue
        others = [
            ((of < first).sum(), len(of)) for key, of in lines.items() if key[0] == name and key[1] not in ("", label)
        ]
        shifts = [abs(n - share * every) / (share * (1 - share) * every) ** 0.5 for n, every in others]
        if sum(n for n, _ in others) >= MIN_SPANS and max(shifts) < MAX_SHIFT:
            yield from _cut(files[name], label, first, before, behind)


def _empty_runs(merged: Merged) -> Iterator[Evidence]:
    """Find one run of rows without spans, much longer than a file's others: they may not be annotated yet."""
    for dataset in merged.datasets:
        marked = [of for (name, label), of in merged.lines.items() if name == dataset.name and label]
        if marked:
            rows = merged.lines[dataset.name, ""]
            ends = [-1, *np.searchsorted(rows, np.unique(np.concatenate(marked))), len(rows)]
            runs = np.diff(ends) - 1
            *_, second, n = np.sort(runs).tolist()
            if n >= max(MIN_SPANS, MIN_FIRST_ROWS * len(rows), MIN_RUNS * second):
                start = ends[runs.argmax()] + 1
                first, last = rows[start : start + n][[0, -1]].tolist()
                yield Evidence(n, {"all": len(rows), "first": first, "last": last}, dataset=dataset)


def _cut(dataset: DataSet, label: str, line: int, before: int, behind: int) -> list[Evidence]:
    path, rest = Path(dataset.files[0].name), tuple(other for other in dataset.labels if other != label)
    parts = [(f"{dataset.name}-{n}", str(path.with_stem(f"{path.stem}-{n}"))) for n in (1, 2)]
    entries = write_entries(
        [
            dataset.to_entry(name=name, path=part, labels=labels)
            for (name, part), labels in zip(parts, (rest, dataset.labels), strict=True)
        ]
    )
    file, one, two = map(quote, (str(path), *(part for _, part in parts)))
    cut = f"head -n {line - 1} {file} > {one}; tail -n +{line} {file} > {two}"
    return [Evidence(before, {"label": label, "behind": behind, "cut": cut, "entries": entries}, dataset=dataset)]


LABEL_CHECKS = (
    Kind(
        "unmarked labels",
        _unmarked_labels,
        "Dataset {dataset!r}: its entry lists labels that it never marks, and that others mark in its {all:text}: "
        "{labels}.",
        "Delete those that its annotators weren't shown from `labels` and `absent`, or brat's annotation.conf: its "
        f"other texts would teach that they have none. {IF_CORRECT}",
        EXPECTED,
        stops=True,
    ),
    Kind(
        "late label",
        _late_labels,
        "Dataset {dataset!r}: its first {n:row has|rows have} no span of {label!r}, the others {behind:,}. Was the "
        "label introduced later?",
        "If so, these rows teach that they have none. Cut the file (`{cut}`), take it out of the folder, and replace "
        "{where} by these",
        "{entries}",
    ),
    Kind(
        "empty run",
        _empty_runs,
        "Dataset {dataset!r}: {n:,} of its {all:row}, from line {first} to {last}, have no spans. Are they annotated?",
        "If not, they teach that they have none: delete them.",
    ),
)
