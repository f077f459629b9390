"""What a merge, a training and an evaluation have written about a pipeline, checked as it is read.

A file that isn't there is None: whoever shows results says which command makes it. A file that is there, but is
something else, is an error.
"""

from csv import DictReader
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, decode_counter
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import read_manifest
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables

Read = TypeVar("Read")


class Curve(NamedTuple):
    """F1 on dev at each evaluation of a training, or its score, if that isn't made of F1; and after how many steps."""

    steps: list[int]
    f: list[float]


class Results(NamedTuple):
    """All that is known about a pipeline; what isn't there is None.

    tables (Tables | None): the files, which are too large to be held.
    """

    merge: Ledger | None
    metrics: Metrics | None
    tables: Tables | None
    curve: Curve | None


def load_results(root: Path, pipeline: str) -> Results:
    """Load what there is about a pipeline.

    root (Path): the folder of the project.
    pipeline (str): "cpu", "small" or "gpu".
    RAISES (InputError): nothing is there, or a file isn't what it should be.
    """
    evaluate = f"run evaluate-{pipeline} again"
    if (root / "corpus" / "labels").exists():
        read_manifest(root / "corpus")
    merge = read_merge_counts(root / "metrics" / "merge.json")
    metrics = _read_json(root / "metrics" / f"{pipeline}.json", Metrics, evaluate)
    curve = read_curve(root / "plots" / f"{pipeline}.tsv", f"run train-{pipeline} again")
    if metrics and metrics.all_gold.labels and not metrics.mistakes:
        raise InputError(
            f"{root / 'metrics' / pipeline}.json: it has no `mistakes`, so an earlier version wrote it; {evaluate}"
        )
    tables = Tables.of(root / "training" / pipeline)
    if metrics is None and curve is None and not tables.pairs.is_file():
        raise InputError(
            f"{root}: there is nothing to report about pipeline {pipeline!r}; run evaluate-{pipeline}, or name the "
            "project's folder with --root"
        )
    if metrics is None or not all(file.is_file() for file in tables):  # an evaluation writes the metrics last
        return Results(merge, metrics, None, curve)
    if metrics.predictions_digest != tables.digest():
        raise InputError(f"{tables.pairs}: not the pairs that the scores were computed from; {evaluate}")
    return Results(merge, metrics, tables, curve)


def read_merge_counts(path: Path) -> Ledger | None:
    """Read the counts of a merge; None if there is no such file.

    RAISES (InputError): it isn't what a merge writes.
    """
    return _read_json(path, Ledger, "run merge again")


def _read_json(path: Path, kind: type[Read], remedy: str) -> Read | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind, dec_hook=decode_counter)
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not the counts or scores that it should hold ({error}); {remedy}") from error


def read_curve(path: Path, remedy: str) -> Curve | None:
    """Read the curve of a training; None if there is no such file.

    RAISES (InputError): it isn't what a training writes; it says the remedy.
    """
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf8") as file:
            rows = [
                (int(row["step"]), float(row.get("ents_f") or row["score"])) for row in DictReader(file, delimiter="\t")
            ]
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a training's table ({error!r}); {remedy}") from error
    return Curve([step for step, _ in rows], [f for _, f in rows])
