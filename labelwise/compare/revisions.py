"""Read an experiment's results at git revisions: metrics from git, predictions from DVC's cache, or its remote."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from pygit2 import GitError

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc, new_digest, parse_predictions
from labelwise.evaluate.scores import Metrics

WORKSPACE = "workspace"  # in place of a revision: the files as they are now


class Revision(NamedTuple):
    """What an evaluation found at a git revision, or in the WORKSPACE.

    predictions (Callable | None): reads the predicted docs; None if they aren't available.
    missing (str): why not.
    behind (Sequence[str]): of the WORKSPACE: stages that DVC would have to run for the results to be its files'.
    """

    name: str
    metrics: Metrics
    predictions: Callable[[], Iterator[PredictedDoc]] | None
    missing: str = ""
    behind: Sequence[str] = ()


def read_revision(name: str, pipeline: str, root: Path = Path()) -> Revision:
    """Read the results of a pipeline, such as "cpu", at a git revision, or in the WORKSPACE.

    RAISES (InputError): there is no such repository, revision, or evaluation, or the repository is another user's.
    """
    metrics, predictions = f"metrics/{pipeline}.json", f"training/{pipeline}/predictions.jsonl"
    remedy = f"run `dvc repro evaluate-{pipeline}`" + ("" if name == WORKSPACE else " there, and commit it")
    try:
        files, folder = open_files(name, root)
        content = msgspec.json.decode(files.read_bytes(folder + metrics), type=Metrics)
    except FileNotFoundError as error:
        raise InputError(f"{name}: no {metrics}; {remedy}") from error
    except DECODE_ERRORS as error:
        raise InputError(f"{name}: {metrics} isn't what an evaluation writes now ({error}); {remedy}") from error
    except DvcException as error:
        raise InputError(f"{name}: {error}; give revisions of this git repository, such as main") from error
    except GitError as error:
        there = next((folder for folder in (root, *root.resolve().parents) if (folder / ".git").exists()), root)
        raise InputError(
            f"{name}: {error}; if it is another user's, and you trust it: git config --global --add safe.directory "
            f"'{there.resolve()}'"
        ) from error

    def read() -> Iterator[PredictedDoc]:
        """Read the predictions, and check in the end that they are those of the metrics."""
        with files.open(folder + predictions, "rb") as file:
            yield from parse_predictions(file, f"{name}: {predictions}", digest := new_digest())
        if digest.hexdigest() != content.predictions_digest:
            raise InputError(
                f"{name}: {predictions} isn't what {metrics} was computed from; `dvc checkout` it, or {remedy}"
            )

    behind = stages_behind(files, f"evaluate-{pipeline}") if name == WORKSPACE else []
    try:
        with files.open(folder + predictions, "rb"):
            return Revision(name, content, read, behind=behind)
    except (OSError, DvcException) as error:
        reason = f"{predictions} of {name} isn't in DVC's cache ({error}); if a remote has it, run `dvc fetch -a`"
        return Revision(name, content, None, reason, behind)


def stages_behind(files: DVCFileSystem, target: str) -> list[str]:
    """List the stages that would run if DVC made a target again; none if it never made any, or has no such target."""
    if not Path(files.repo.root_dir, "dvc.lock").is_file():
        return []
    try:
        return sorted(files.repo.status(targets=[target], with_deps=True))
    except DvcException:
        return []


def open_files(name: str, root: Path) -> tuple[DVCFileSystem, str]:
    """Open the files of a revision, those in git and those in DVC alike.

    RETURNS (tuple): the files, and the folder of the project in them: for a revision, their root is git's.
    RAISES (DvcException): there is no such repository, or revision.
    """
    files = DVCFileSystem(str(root))
    if name == WORKSPACE:
        return files, ""
    project, repository = Path(files.repo.root_dir).resolve(), Path(files.repo.scm.root_dir).resolve()
    folder = project.relative_to(repository).as_posix()
    return DVCFileSystem(str(root), rev=name, subrepos=True), "" if folder == "." else f"{folder}/"
