"""Tasks that `convert-brat` or an export has written, so that another tool can be given them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from labelwise.corpus.tasks import PREDICTED, UNCOVERED
from labelwise.errors import InputError
from labelwise.export.docs import ExportDoc
from labelwise.sources.declarations import DataSet
from labelwise.text import DECODE_ERRORS, text_key


class _Span(msgspec.Struct):
    start: int
    end: int
    label: str
    score: float | None = None


class _Task(msgspec.Struct):
    """A task as `convert-brat` and `export` write it."""

    text: str
    spans: list[_Span]
    meta: dict[str, Any] = {}
    answer: Literal["accept"] = "accept"
    uncovered: dict[str, str] = msgspec.field(default_factory=dict, name=UNCOVERED)


_decode = msgspec.json.Decoder(_Task).decode


def is_tasks(path: Path) -> bool:
    """Tell whether a file has tasks rather than predictions, by its first line."""
    with path.open("rb") as lines:
        try:
            first = msgspec.json.decode(next(lines, b""))
        except DECODE_ERRORS:
            return False
    return isinstance(first, dict) and "spans" in first


def read_declared(datasets: Sequence[DataSet], labels: Sequence[str]) -> Iterator[ExportDoc]:
    """Yield the tasks of data sets, as `convert-brat` writes them, with the split and the labels that they declare.

    labels (Sequence[str]): those of all data sets.
    RAISES (InputError): a line isn't such a task.
    """
    for dataset in datasets:
        unknown = {label: "none" for label in labels if label not in dataset.labels}
        split = "" if dataset.split == "auto" else dataset.split
        for file in dataset.files:
            yield from (doc._replace(unknown={**unknown, **doc.unknown}, split=split) for doc in read_tasks(file))


def read_tasks(path: Path) -> Iterator[ExportDoc]:
    """Yield the tasks of a file.

    RAISES (InputError): a line isn't such a task.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                task = _decode(line)
            except DECODE_ERRORS as error:
                raise InputError(
                    f"{path}:{number}: not a task of convert-brat or an export ({error}); merge other tasks, and "
                    "export the corpus"
                ) from error
            scores = {(one.start, one.end, one.label): one.score for one in task.spans if one.score is not None}
            yield ExportDoc(
                task.text,
                str(task.meta.get("doc", "")),
                text_key(task.text.encode("utf8")).hex(),
                sorted((one.start, one.end, one.label) for one in task.spans),
                scores,
                task.uncovered,
                predicted=PREDICTED in task.meta,
                shown=[label for label in str(task.meta.get("labels", "")).split(",") if label],
            )
