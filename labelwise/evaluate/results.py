"""What a merge, a training and an evaluation have written about a pipeline, checked as it is read.

A file that isn't there is None: whoever shows results says which command makes it. A file that is there, but is
something else, is an error.
"""

import math
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.errors import InputError
from labelwise.corpus.manifest import check_merged
from labelwise.corpus.merge_counts import MergeCounts
from labelwise.evaluate.scores import Details, Metrics

Read = TypeVar("Read")
Table = dict[str, list[float]]  # the columns of a TSV file; a value can be NaN


class Results(NamedTuple):
    """All that is known about a pipeline; what isn't there is None.

    predictions (Path | None): the file, which is too large to be held; see predictions.read_predictions.
    """

    merge: MergeCounts | None
    metrics: Metrics | None
    details: Details | None
    predictions: Path | None
    curve: Table | None
    resources: Table | None


def load_results(root: Path, pipeline: str) -> Results:
    """Load what there is about a pipeline.

    root (Path): the folder of the project.
    pipeline (str): "cpu" or "gpu".
    RAISES (InputError): nothing is there, or a file isn't what it should be.
    """
    train, evaluate = f"run train-{pipeline} again", f"run evaluate-{pipeline} again"
    predictions = root / "training" / pipeline / "predictions.jsonl"
    if (root / "corpus" / "labels").exists():
        check_merged(root / "corpus")
    results = Results(
        read_merge_counts(root / "metrics" / "merge.json"),
        _read_json(root / "metrics" / f"{pipeline}.json", Metrics, evaluate),
        _read_json(root / "training" / pipeline / "details.json", Details, evaluate),
        predictions if predictions.is_file() else None,
        read_table(root / "plots" / f"{pipeline}.tsv", "step", train),
        read_table(root / "training" / pipeline / "resources.tsv", "seconds", train),
    )
    if all(result is None for result in results[1:]):
        raise InputError(
            f"{root}: there is nothing to report about pipeline {pipeline!r}; run evaluate-{pipeline}, or name the "
            "project's folder with --root"
        )
    if results.metrics is None:  # an evaluation deletes them first and writes them last
        results = results._replace(details=None, predictions=None)
    return results


def read_merge_counts(path: Path) -> MergeCounts | None:
    """Read the counts of a merge; None if there is no such file.

    RAISES (InputError): it isn't what a merge writes.
    """
    return _read_json(path, MergeCounts, "run merge again")


def _read_json(path: Path, kind: type[Read], remedy: str) -> Read | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not the counts or scores that it should hold ({error}); {remedy}") from error


def read_table(path: Path, first: str, remedy: str) -> Table | None:
    """Read a TSV file of numbers with a header.

    first (str): the name of the first column.
    RETURNS (Table | None): None if there is no such file.
    RAISES (InputError): it isn't one, or a line of it isn't.
    """
    if not path.is_file():
        return None
    try:
        lines = path.read_text(encoding="utf8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a table ({error}); {remedy}") from error
    names = lines[0].split("\t") if lines else []
    if names[:1] != [first] or len(set(names)) < len(names):
        raise InputError(f"{path}:1: not a header that begins with {first!r}; {remedy}")
    rows = [_read_row(f"{path}:{number}", line, len(names), remedy) for number, line in enumerate(lines[1:], 2)]
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def _read_row(place: str, line: str, width: int, remedy: str) -> list[float]:
    try:
        row = [float(value) for value in line.split("\t")]
    except ValueError as error:
        raise InputError(f"{place}: {error}; {remedy}") from error
    if len(row) != width or any(map(math.isinf, row)):
        raise InputError(f"{place}: not {width} finite numbers; {remedy}")
    return row
