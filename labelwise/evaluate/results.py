"""What a merge, a training and an evaluation have written about a pipeline, checked as it is read.

A file that isn't there is None: whoever shows results says which command makes it. A file that is there, but is
something else, is an error.
"""

import math
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from labelwise.common.decoding import DECODE_ERRORS, decode_counter
from labelwise.common.errors import InputError
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import check_merged
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables

Read = TypeVar("Read")
Table = dict[str, list[float]]  # the columns of a TSV file; a value can be NaN


class Results(NamedTuple):
    """All that is known about a pipeline; what isn't there is None.

    tables (Tables | None): the files, which are too large to be held.
    """

    merge: Ledger | None
    metrics: Metrics | None
    tables: Tables | None
    curve: Table | None


def load_results(root: Path, pipeline: str) -> Results:
    """Load what there is about a pipeline.

    root (Path): the folder of the project.
    pipeline (str): "cpu" or "gpu".
    RAISES (InputError): nothing is there, or a file isn't what it should be.
    """
    train, evaluate = f"run train-{pipeline} again", f"run evaluate-{pipeline} again"
    if (root / "corpus" / "labels").exists():
        check_merged(root / "corpus")
    merge = read_merge_counts(root / "metrics" / "merge.json")
    metrics = _read_json(root / "metrics" / f"{pipeline}.json", Metrics, evaluate)
    curve = read_table(root / "plots" / f"{pipeline}.tsv", "step", train)
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
