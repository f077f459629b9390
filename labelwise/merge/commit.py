"""Finish a merge: check the tables, and write all files besides the partitions."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from spacy.language import Language

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS
from labelwise.base.errors import InputError
from labelwise.base.text import counted, place
from labelwise.corpus import queries
from labelwise.corpus.import_checks import write_checks
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import SPLITS, Manifest, Split, SplitCounts, digest_partitions, write_manifest
from labelwise.corpus.tables import read_columns, read_groups, write_tables
from labelwise.corpus.tokenizer import write_tokenizer
from labelwise.datasets.declarations import DataSet, all_labels
from labelwise.merge.account import read_batches
from labelwise.merge.balance import SourceCounts
from labelwise.merge.figures import Figures, add_figures
from labelwise.merge.near_duplicates import NearPair
from labelwise.merge.outputs import NEAR_DUPLICATES
from labelwise.merge.read import Source
from labelwise.merge.rules.settings import Settings
from labelwise.merge.table_counts import add_group, finish_ledger, new_ledger


class Account(NamedTuple):
    """Counts of the tables; `keys` digests each split's keys, `figures` are counts by dataset."""

    ledger: Ledger
    keys: dict[Split, str]
    sources: SourceCounts
    figures: Mapping[str, Figures]


def write_account(parts: Iterable[Path], folder: Path, datasets: Sequence[DataSet]) -> Account:
    """Write the tables from their parts in order, and count them."""
    renames = {dataset.name: dataset.rename for dataset in datasets}
    ledger = new_ledger(all_labels(datasets), [dataset.name for dataset in datasets], renames)
    sources = SourceCounts(Counter(), Counter())
    figures: defaultdict[str, Figures] = defaultdict(Figures)
    keys = {split: hashlib.sha256() for split in SPLITS}
    for group in write_tables(chain.from_iterable(map(read_batches, parts)), folder):
        add_group(ledger, group)
        sources.add(group)
        add_figures(figures, group)
        for text, split in read_columns(group.texts, "text", "split"):
            if split:
                keys[split].update(bytes.fromhex(text))
    finish_ledger(ledger)
    return Account(ledger, {split: digest.hexdigest() for split, digest in keys.items()}, sources, figures)


def write_pairs(pairs: Sequence[NearPair], folder: Path, sources: Sequence[Source]) -> dict[str, Counter[str]]:
    """Write near-duplicates in two splits, most similar first; count them by splits."""
    keys = {text.key.hex() for pair in pairs for text in (pair.one, pair.other)}
    locations: dict[str, dict[str, str]] = {}  # the split of a text, and the document that it is, by its key
    for group in read_groups(folder, merged=False) if pairs else ():
        for key, split, doc in read_columns(group.texts, "text", "split", "doc"):
            if key in keys:
                locations[key] = {"split": split or ""} | ({"doc": doc} if split and doc else {})
    counts: dict[str, Counter[str]] = {}
    with (folder / NEAR_DUPLICATES).open("wb") as lines:
        for pair in pairs:
            texts = []
            for text in (pair.one, pair.other):
                source = sources[text.source]
                place = {"dataset": source.dataset.name, "file": source.file.name, "line": text.line}
                texts.append({**locations[text.key.hex()], **place})
            names = [split for split in SPLITS if split in {text["split"] for text in texts}]
            if len(names) > 1:
                counts.setdefault(names[0], Counter())[names[1]] += 1
                lines.write(msgspec.json.encode({"similarity": pair.similarity, "texts": texts}) + b"\n")
    return counts


def check_account(ledger: Ledger, corpus: Path, *, strict: bool, may_be_empty: bool) -> None:
    """Refuse tables without texts, unless allowed; with `strict`, also tables with problems."""
    if not may_be_empty and not any(ledger.texts[split] for split in SPLITS):
        rows = ", ".join(f"{n:,} {reason}" for reason, n in sorted(ledger.rows.items())) or "none"
        first = f"; the first that can't be used: {first_problem(corpus)}" if ledger.problems else ""
        raise InputError(f"nothing to merge: no row has a usable text; outcomes of the rows: {rows}{first}")
    if strict and (predictions := ledger.rows["prediction"]):
        raise InputError(
            f"{counted(predictions, 'unsaved prediction')}; save or remove them in the tool, or leave out --strict"
        )
    if strict and ledger.problems:
        raise InputError(
            f"{counted(ledger.problems, 'row or span', 'rows or spans')} can't be used, the first in "
            f"{first_problem(corpus)}; fix them, or leave out --strict"
        )


def first_problem(corpus: Path) -> str:
    """Return dataset, file, line and reason of the first unusable row, or else span."""
    for kind, reasons in (("rows", ROW_PROBLEMS), ("spans", SPAN_PROBLEMS)):
        places = (
            (row["dataset"], row["file"], row["line"], queries.describe(row))
            for group in read_groups(corpus, merged=False)
            for row in queries.where(getattr(group, kind), "reason", reasons).to_pylist()
        )
        if first := min(places, default=None):
            dataset, file, line, why = first
            return f"dataset {dataset!r}, {place(file, line)}: {why}"
    return ""


def write_rest(
    folder: Path,
    datasets: Sequence[DataSet],
    nlp: Language,
    settings: Settings,
    ledger: Ledger,
    keys: Mapping[Split, str],
    partitions: Mapping[str, str],
) -> None:
    """Write a corpus's other files; `keys` and `partitions` are digests by split, and by file."""
    labels = list(ledger.labels)
    write_checks(folder, ledger.checks)
    write_tokenizer(folder / "tokenizer.json", nlp, settings.tokenizer)
    _write_labels(nlp, labels, folder / "labels")
    splits = {split: SplitCounts(ledger.texts[split], ledger.words[split], keys[split]) for split in SPLITS}
    manifest = Manifest(
        settings=msgspec.to_builtins(settings),
        labels=labels,
        datasets={name: counts["rows"] for name, counts in sorted(ledger.datasets.items())},
        declared={dataset.name: tuple(dataset.labels) for dataset in datasets},
        splits=splits,
        partitions=dict(sorted(partitions.items())),
        stops=[f"{check.kind} ({check.dataset})" for check in ledger.checks if check.stops],
    )
    write_manifest(folder, manifest)


def write_metrics(metrics: Path, digest: Path, ledger: Ledger, partitions: Mapping[str, str]) -> None:
    """Write the counts as JSON, and the digest of the corpus beside it."""
    metrics.write_text(json.dumps(ledger.metrics(), indent=2, ensure_ascii=False) + "\n", encoding="utf8")
    digest.write_text(f"{digest_partitions(partitions)}\n", encoding="utf8")


def _write_labels(nlp: Language, labels: Sequence[str], folder: Path) -> None:
    """Write the files for `spacy.read_labels.v1`: counts by parser action for spaCy's ner, and a list."""
    folder.mkdir()
    ner: Any = nlp.create_pipe("ner")
    actions = ner.moves.get_actions(entity_types=sorted(labels))
    for name, content in (("ner", actions), ("per_label", sorted(labels))):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="utf8")
