"""Find files with separate entries that may be one corpus, and files in which a label was introduced later."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from shlex import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.corpus import queries
from labelwise.corpus.tables import read_groups
from labelwise.datasets.convert_brat import read_conversion
from labelwise.datasets.declarations import DataSet
from labelwise.datasets.entries import write_entries
from labelwise.merge.check_kinds import MIN_SPANS, Evidence, Kind, Merged, some
from labelwise.merge.figures import ANSWERED, USED

MIN_FILES = 5
MIN_SHARED = 0.5  # average share of all labels in a file: lower if each file is for other labels
MIN_FIRST_ROWS = 0.1  # share of a file's rows that lack a label which others have
MAX_LATE_CHANCE = 1e-6  # that all rows with a label are behind them
MAX_SHIFT = 4  # standard deviations of another label's rows among them; more where topics follow each other
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
    """Find labels without a span in a JSONL file's first rows, where its other labels are as frequent as later."""
    files = {
        dataset.name: dataset
        for dataset in merged.datasets
        if len(dataset.labels) > 1 and len(dataset.files) == 1 and dataset.files[0].name.endswith(".jsonl")
        if not read_conversion(Path(dataset.declared).parent)
    }
    lines = _lines_of(merged, files) if files else {}
    for (name, label), marked in sorted(lines.items()):
        first, rows, behind = int(marked.min()), lines[name, ""], len(marked)
        before, share = int((rows < first).sum()), (rows < first).mean()
        rare = (1 - share) ** behind > MAX_LATE_CHANCE
        if not label or rare or share < MIN_FIRST_ROWS:
            continue
        others = [
            ((of < first).sum(), len(of)) for key, of in lines.items() if key[0] == name and key[1] not in ("", label)
        ]
        shifts = [abs(n - share * every) / (share * (1 - share) * every) ** 0.5 for n, every in others]
        if sum(n for n, _ in others) >= MIN_SPANS and max(shifts) < MAX_SHIFT:
            yield from _cut(files[name], label, first, before, behind)


def _lines_of(merged: Merged, names: Iterable[str]) -> dict[tuple[str, str], np.ndarray]:
    """Return the lines of rows that have spans of a label, by dataset and label; all rows' by dataset and ""."""
    lines: defaultdict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    columns = ("text", "row", "dataset", "kind", "line", "label", "reason")
    for group in read_groups(merged.corpus, merged=False, columns=columns):
        rows = queries.where(queries.where(group.rows, "dataset", [*names]), "kind", ["complete"])
        rows = queries.where(rows, "reason", ANSWERED)
        places = rows.select(["text", "row", "dataset", "line"])
        spans = queries.where(group.spans, "reason", USED).group_by(["text", "row", "label"]).aggregate([])
        every = places.append_column("label", pa.repeat("", len(places)))
        for table in (every, places.join(spans, ["text", "row"], join_type="inner", use_threads=False)):
            listed = table.group_by(["dataset", "label"], use_threads=False).aggregate([("line", "list")])
            for name, label, of in zip(*(listed[key] for key in ("dataset", "label", "line_list")), strict=True):
                lines[name.as_py(), label.as_py()].append(of.values.to_numpy())
    return {key: np.concatenate(parts) for key, parts in lines.items()}


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
