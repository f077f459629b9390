"""Read an experiment's results at git revisions: metrics from git, predictions from DVC's cache, or its remote."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException

from labelwise.errors import InputError
from labelwise.predictions import PredictedDoc, new_digest, parse_predictions

WORKSPACE = "workspace"  # in the place of a revision: the files as they are now


class Results(NamedTuple):
    """What an evaluation found at a revision.

    metrics (dict): the scores.
    predictions (Callable): reads the predicted docs; None if they aren't to be had.
    """

    revision: str
    metrics: dict[str, Any]
    predictions: Callable[[], Iterator[PredictedDoc]] | None


def read_results(revision: str, pipeline: str, root: Path = Path()) -> Results:
    """Read the results of a pipeline, such as "cpu", at a git revision, or in the WORKSPACE.

    RAISES (InputError): there is no such repository, revision, or evaluation.
    """
    metrics, predictions = f"metrics/{pipeline}.json", f"training/{pipeline}/predictions.jsonl"
    remedy = f"run `dvc repro evaluate-{pipeline}` there, and commit it"
    try:
        files = DVCFileSystem(str(root), rev=None if revision == WORKSPACE else revision)
        content = msgspec.json.decode(files.read_bytes(metrics))
    except FileNotFoundError as error:
        raise InputError(f"{revision}: no {metrics}; {remedy}") from error
    except (DvcException, msgspec.DecodeError) as error:
        raise InputError(f"{revision}: {error}; give revisions of this git repository, such as main") from error
    if "predictions_digest" not in content:
        raise InputError(f"{revision}: {metrics} is of an earlier version; {remedy}")

    def read() -> Iterator[PredictedDoc]:
        with files.open(predictions, "rb") as file:
            yield from parse_predictions(file, f"{revision}: {predictions}", digest := new_digest())
        if digest.hexdigest() != content["predictions_digest"]:
            raise InputError(f"{revision}: {predictions} isn't what {metrics} was computed from; {remedy}")

    return Results(revision, content, read if _can_be_had(files, predictions) else None)


def _can_be_had(files: DVCFileSystem, path: str) -> bool:
    """Tell whether a file is in the workspace, in the cache, or in a remote that can be reached."""
    try:
        with files.open(path, "rb"):
            return True
    except (OSError, DvcException):
        return False
