"""The end of a merge: the ledger is checked, and all other files are written beside the partitions."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.base.text import counted
from labelwise.corpus.ledger import PROBLEM_ROWS, PROBLEM_SPANS, Ledger, outcome_of, pairwise_f
from labelwise.corpus.manifest import MANIFEST, SPLITS, Manifest, SplitCounts, is_corpus, write_manifest
from labelwise.corpus.tokenizer import write_tokenizer
from labelwise.datasets.declarations import DataSet
from labelwise.merge.cache import CACHE, MARK
from labelwise.merge.near_duplicates import NEAR_DUPLICATES
from labelwise.merge.partition import LINES, PROBLEMS
from labelwise.merge.rules.settings import Settings
from labelwise.merge.runs import Source

ANNOTATORS = "annotators.json"
# All that a merge writes to the folder for the corpus, and so replaces there.
OUTPUTS = (*SPLITS, "labels", "tokenizer.json", *LINES, NEAR_DUPLICATES, ANNOTATORS, MANIFEST)


class AnnotatorPair(msgspec.Struct):
    """How far two annotators agree on a label.

    one, other (str): their names; of a data set that names none, the data set's.
    texts (int): those that both annotated.
    spans (int): those of the one plus those of the other.
    f (float | None): F1 of one against the other; None if neither marked anything.
    """

    label: str
    one: str
    other: str
    texts: int
    spans: int
    f: float | None = None


def check_out(out: Path, sources: Sequence[Source]) -> None:
    """Check that the files to be replaced come from a merge, and aren't read by this one.

    RAISES (InputError): some don't, or are.
    """
    folder = out.resolve()
    for source in sources:
        path = source.path.resolve()
        replaced = any(path.is_relative_to(folder / name) for name in (*OUTPUTS, CACHE))
        if replaced or folder.is_relative_to(path):
            raise InputError(
                f"data set {source.dataset.name!r}: {path} is an input, so {out} can't be written there; write "
                "elsewhere, or declare a path or a pattern that leaves it out"
            )
    for name, ours in [*((split, "part-*.spacy") for split in SPLITS), ("labels", "*.json")]:
        other = [file for file in (out / name).glob("*") if not file.match(ours)]
        if other:
            raise InputError(f"{out}: it has {other[0].relative_to(out)}, which no merge made; choose another folder")
    found = [name for name in OUTPUTS if os.path.lexists(out / name)]
    if found and not ((out / CACHE / MARK).is_file() or is_corpus(out)):
        raise InputError(f"{out}: it has {found[0]}, which no merge made; choose another folder")


def check_ledger(ledger: Ledger, folder: Path, *, strict: bool, may_be_empty: bool) -> None:
    """Check that everything read has one outcome, and that it is one that the caller allows.

    RAISES (InputError): there is no text, or, with `strict`, a problem.
    RAISES (RuntimeError): the ledger doesn't balance, which is a bug in this program.
    """
    if not may_be_empty and not any(ledger.texts[split] for split in SPLITS):
        rows = ", ".join(f"{n:,} {reason}" for reason, n in sorted(ledger.rows.items())) or "none"
        first = f"; the first that can't be used: {first_problem(folder / PROBLEMS)}" if ledger.problems else ""
        raise InputError(f"the corpus would have no text; outcomes of the rows: {rows}{first}")
    ledger.check()
    if strict and (predictions := ledger.rows["prediction"]):
        raise InputError(
            f"{counted(predictions, 'prediction')} that nobody has saved; annotate or remove them, or "
            "leave out --strict"
        )
    if strict and ledger.problems:
        raise InputError(
            f"{counted(ledger.problems, 'row or span', 'rows or spans')} can't be used, the first in "
            f"{first_problem(folder / PROBLEMS)}; fix them, or leave out --strict"
        )


def first_problem(path: Path) -> str:
    """Say which row or span is the first that can't be used, and why; there is one."""
    with path.open(encoding="utf8") as lines:
        problems = map(json.loads, lines)
        first = next(found for found in problems if outcome_of(found["reason"]) in (*PROBLEM_ROWS, *PROBLEM_SPANS))
    return f"data set {first['dataset']!r}, {first['file']}, line {first['line']}: {first['reason']}"


def write_rest(
    folder: Path,
    datasets: Sequence[DataSet],
    nlp: Language,
    settings: Settings,
    ledger: Ledger,
    keys: dict[str, str],
    partitions: dict[str, str],
) -> None:
    """Write all other files.

    keys (dict[str, str]): a digest of the keys of each split.
    partitions (dict[str, str]): a digest of each `.spacy` file.
    """
    labels = list(ledger.labels)
    write_tokenizer(folder / "tokenizer.json", nlp, settings.tokenizer)
    _write_labels(nlp, labels, folder / "labels")
    _write_annotators(ledger, folder / ANNOTATORS)
    splits = {split: SplitCounts(ledger.texts[split], ledger.words[split], keys[split]) for split in SPLITS}
    manifest = Manifest(
        settings=msgspec.to_builtins(settings),
        labels=labels,
        datasets=dict(sorted(ledger.datasets.items())),
        declared={dataset.name: tuple(dataset.labels) for dataset in datasets},
        splits=splits,
        partitions=dict(sorted(partitions.items())),
    )
    write_manifest(folder, manifest)


def _write_labels(nlp: Language, labels: Sequence[str], folder: Path) -> None:
    """Write the files for `spacy.read_labels.v1`: for spaCy's ner counts by action of the parser, else a list."""
    folder.mkdir()
    ner: Any = nlp.create_pipe("ner")
    actions = ner.moves.get_actions(entity_types=sorted(labels))
    for name, content in (("ner", actions), ("per_label", sorted(labels))):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="utf8")


def _write_annotators(ledger: Ledger, path: Path) -> None:
    """Write how far each two annotators agree; it has their names, so it isn't among the metrics, which git tracks."""
    rows = [
        AnnotatorPair(
            *names,
            texts=n["texts"],
            spans=n["spans"],
            f=pairwise_f(n["both"], n["spans"]),
        )
        for names, n in sorted(ledger.pairs.items())
    ]
    path.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")


def write_metrics(ledger: Ledger, path: Path, partitions: dict[str, str]) -> None:
    """Write the metrics, and a digest of the corpus: of the digests of its partitions."""
    ledger.digest = hashlib.sha256(msgspec.json.encode(sorted(partitions.items()))).hexdigest()
    path.write_text(json.dumps(ledger.metrics(), indent=2, ensure_ascii=False) + "\n", encoding="utf8")
