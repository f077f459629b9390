"""Find files with separate entries that may be one corpus, and files in which a label was introduced later."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path

import pyarrow.compute as pc

from labelwise.corpus import queries
from labelwise.corpus.tables import read_columns, read_groups
from labelwise.datasets.convert_brat import read_conversion
from labelwise.datasets.declarations import DataSet
from labelwise.datasets.entries import write_entries
from labelwise.merge.check_kinds import MIN_SPANS, Evidence, Kind, Merged, some
from labelwise.merge.figures import USED

MIN_FILES = 5
MIN_SHARED = 0.5  # average share of all labels in a file: lower if each file is for other labels
MIN_FIRST_ROWS = 0.1  # share of a file's rows that lack a label which others have
MAX_LATE_CHANCE = 1e-6  # that all rows with a label are behind them; topics that follow each other aren't chance
NUMBER = re.compile(r"[0-9]+")


def _files_of_one_corpus(merged: Merged) -> Iterator[Evidence]:
    """Find similar files of a folder whose entries differ only in labels."""
    alike: defaultdict[tuple[Path, str, str, str], list[DataSet]] = defaultdict(list)
    for dataset in merged.datasets:
        used = {label for label, _ in merged.figures[dataset.name].spans}
        if [dataset.path] == [file.name for file in dataset.files] and used == {*dataset.labels}:
            path, others = Path(dataset.paths[0]), repr(dataset.to_entry(name="", path="", labels=()))
            any_name = str(path.with_name("*" + path.suffix))
            alike[Path(dataset.declared).parent, any_name, others, NUMBER.sub("*", str(path))].append(dataset)
    for folder, any_name, others, numbered in [key for key, group in alike.items() if len(group) < MIN_FILES]:
        alike[folder, any_name, others, ""] += alike.pop((folder, any_name, others, numbered))
    for (folder, any_name, _, numbered), group in alike.items():
        if _may_be_one(merged, group) and not read_conversion(folder):
            documents, texts = _count(merged, group)
            datasets = [dataset for dataset in group if numbered or documents[dataset.name] == 1]
            if _may_be_one(merged, datasets):
                yield from _describe(merged, datasets, folder, numbered or any_name, texts)


def _describe(
    merged: Merged, datasets: Sequence[DataSet], folder: Path, pattern: str, texts: Counter[str]
) -> list[Evidence]:
    names, paths = [dataset.name for dataset in datasets], [dataset.paths[0] for dataset in datasets]
    labels = tuple(sorted({label for dataset in datasets for label in dataset.labels}))
    name = Path(pattern).stem.replace("*", "").strip("-_. ") or "all"
    name += "-all" * any(dataset.name == name for dataset in merged.datasets if dataset not in datasets)
    name += "" if datasets[0].split in ("auto", name) else f"-{datasets[0].split}"
    path = pattern if {*glob(pattern, root_dir=folder)} == {*paths} else paths
    entry = write_entries([datasets[0].to_entry(name=name, path=path, labels=labels)])
    n = sum(texts[dataset.name] for dataset in datasets if len(dataset.labels) < len(labels))
    return some(n, names=names, files=len(names), all=sum(texts[name] for name in names), entry=entry)


def _may_be_one(merged: Merged, datasets: Sequence[DataSet]) -> bool:
    """Return whether many datasets share most labels, but no text."""
    names, labels = {dataset.name for dataset in datasets}, {label for dataset in datasets for label in dataset.labels}
    possible, declared = len(names) * len(labels), sum(len(dataset.labels) for dataset in datasets)
    shared = any(merged.figures[name].shared.keys() & names for name in names)
    return len(names) >= MIN_FILES and MIN_SHARED * possible < declared < possible and not shared


def _count(merged: Merged, datasets: Sequence[DataSet]) -> tuple[Counter[str], Counter[str]]:
    documents, texts = set[tuple[str, str]](), set[tuple[str, str]]()
    for group in read_groups(merged.corpus, merged=False, columns=("text", "dataset", "kind", "doc")):
        rows = queries.where(group.rows, "dataset", [dataset.name for dataset in datasets])
        docs = pc.coalesce(group.texts["doc"], group.texts["text"])
        rows = rows.append_column("doc", pc.take(docs, queries.texts_of(group, rows)))
        documents.update(queries.count(rows, "dataset", "doc"))
        texts.update(queries.count(queries.where(rows, "kind", ["complete"]), "dataset", "text"))
    return Counter(name for name, _ in documents), Counter(name for name, _ in texts)


def _late_labels(merged: Merged) -> Iterator[Evidence]:
    """Find labels without a span in a JSONL file's first rows, which have spans of its other labels."""
    files = {
        dataset.name: dataset
        for dataset in merged.datasets
        if len(dataset.labels) > 1 and len(dataset.files) == 1 and dataset.files[0].name.endswith(".jsonl")
    }
    all_lines: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
    lines: defaultdict[tuple[str, str], array[int]] = defaultdict(lambda: array("I"))
    columns = ("text", "row", "dataset", "kind", "line", "label", "reason")
    for group in read_groups(merged.corpus, merged=False, columns=columns) if files else ():
        rows = queries.where(queries.where(group.rows, "dataset", [*files]), "kind", ["complete"])
        columns_of_rows = read_columns(rows, "text", "row", "dataset", "line")
        places = {(text, row): (name, line) for text, row, name, line in columns_of_rows}
        for name, line in places.values():
            all_lines[name].append(line)
        for text, row, label in {*read_columns(queries.where(group.spans, "reason", USED), "text", "row", "label")}:
            if place := places.get((text, row)):
                lines[place[0], label].append(place[1])
    for (name, label), marked in sorted(lines.items()):
        first, rows = min(marked), len(all_lines[name])
        before = sum(line < first for line in all_lines[name])
        others = sum(line < first for (of, other), of_other in lines.items() if of == name for line in of_other)
        rare = (1 - before / rows) ** len(marked) > MAX_LATE_CHANCE
        if not rare and before >= MIN_FIRST_ROWS * rows and others >= MIN_SPANS:
            yield from _cut(files[name], label, first, before, len(marked))


def _cut(dataset: DataSet, label: str, line: int, before: int, behind: int) -> list[Evidence]:
    path, rest = Path(dataset.paths[0]), tuple(other for other in dataset.labels if other != label)
    parts = [(f"{dataset.name}-{n}", str(path.with_stem(f"{path.stem}-{n}"))) for n in (1, 2)]
    entries = write_entries(
        [
            dataset.to_entry(name=name, path=part, labels=labels)
            for (name, part), labels in zip(parts, (rest, dataset.labels), strict=True)
        ]
    )
    (_, one), (_, two) = parts
    cut = f"head -n {line - 1} {path} > {one}; tail -n +{line} {path} > {two}"
    return [Evidence(before, {"label": label, "behind": behind, "cut": cut, "entries": entries}, dataset=dataset)]


FILE_CHECKS = (
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
        "files of one corpus",
        _files_of_one_corpus,
        "{files:file} of one format declare different labels: {names:dataset|datasets}. Are they one corpus?",
        "If all of them were annotated for all of these labels, write this in place of their {files:entry|entries}; "
        "{n:,} of {all:text} would then be complete for more labels",
        "{entry}",
    ),
)
