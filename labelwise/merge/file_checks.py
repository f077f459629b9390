"""Find files with separate entries that may be one corpus."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path

import pyarrow.compute as pc

from labelwise.corpus import queries
from labelwise.corpus.tables import read_groups
from labelwise.datasets.convert_brat import read_conversion
from labelwise.datasets.declarations import DataSet
from labelwise.datasets.entries import write_entries
from labelwise.merge.check_kinds import Evidence, Kind, Merged, some

MIN_FILES = 5
MIN_SHARED = 0.5  # average share of all labels in a file: lower if each file is for other labels
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


FILE_CHECKS = (
    Kind(
        "files of one corpus",
        _files_of_one_corpus,
        "{files:file} of one format declare different labels: {names:dataset|datasets}. Are they one corpus?",
        "If all of them were annotated for all of these labels, write this in place of their {files:entry|entries}; "
        "{n:,} of {all:text} would then be complete for more labels",
        "{entry}",
    ),
)
