"""Read results at git revisions: metrics from git, tables of pairs from DVC's cache or remote."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from pyarrow import parquet
from pygit2 import GitError
from scmrepo.exceptions import SCMError

from labelwise.base.conflicts import check_written, git
from labelwise.base.errors import InputError
from labelwise.base.sections import is_student
from labelwise.base.text import DECODE_ERRORS
from labelwise.compare.earlier_release import decode_metrics, rename_pairs
from labelwise.compare.seeds import check_seeds, digest_inputs
from labelwise.evaluate.results import Curve, read_curve
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables

MERGE = ("metrics/merge.json", "metrics/merge.sha256")
WORKSPACE = "workspace"  # in place of a revision: the files as they are now


class Revision(NamedTuple):
    """Results of an evaluation at a git revision, or in the WORKSPACE.

    seeds (pa.Table | None): counts of trainings that differ by seed, if any; see `seeds.SCHEMA`.
    unused (str): why existing counts don't belong to the scores.
    remedy (str): command that makes counts.
    """

    name: str
    metrics: Metrics
    tables: Tables
    curve: Curve | None = None
    seeds: pa.Table | None = None
    unused: str = ""
    remedy: str = ""

    def has_weights_of(self, other: "Revision") -> bool:
        """Return whether both have the same weights, as if only gold was corrected."""
        return self.metrics.weights_digest == other.metrics.weights_digest != ""


def find_earlier(pipeline: str, root: Path = Path()) -> str:
    """Return the last commit whose scores differ from the workspace's; "" if none."""
    scores = root / "metrics" / f"{pipeline}.json"
    if not scores.is_file():
        return ""

    now, name = scores.read_bytes(), scores.relative_to(root).as_posix()
    commits = git(root, "log", "--format=%H", "--diff-filter=AM", "--", name).decode().split()
    return next((commit for commit in commits if git(root, "show", f"{commit}:./{name}") != now), "")


def read_before(name: str, pipeline: str, decisions: str, root: Path = Path()) -> tuple[Metrics, bytes]:
    """Load a pipeline's scores and the decisions at a git revision.

    RAISES (InputError): if the repository, revision or evaluation is missing, or the repository is another user's.
    """
    metrics, files, folder = _read_metrics(name, pipeline, root)
    try:
        paths = sorted(files.glob(f"{folder}{decisions}/*.jsonl"))
        return metrics, b"\n".join(map(files.read_bytes, paths))
    except (OSError, DvcException):
        return metrics, b""


def _read_metrics(name: str, pipeline: str, root: Path) -> tuple[Metrics, DVCFileSystem, str]:
    if not name.strip():
        raise InputError("empty revision name (an unset shell variable?); name a revision, such as main")
    metrics, remedy = f"metrics/{pipeline}.json", _remedy(name, pipeline)
    try:
        files, folder = open_files(name, root)
        for file in ("dvc.lock", metrics, f"metrics/{pipeline}_seeds.json", *MERGE, f"plots/{pipeline}.tsv"):
            check_written(_read(files, folder + file), f"{name}: {file}", root if name == WORKSPACE else None)
        return decode_metrics(files.read_bytes(folder + metrics), f"{name}: {metrics}", remedy), files, folder
    except FileNotFoundError as error:
        raise InputError(f"{name}: no {metrics}; {remedy}") from error
    except DECODE_ERRORS as error:
        raise InputError(f"{name}: {metrics} isn't what an evaluation writes now ({error}); {remedy}") from error
    except (DvcException, GitError, SCMError) as error:  # such as a repository of another user, or without commits
        raise InputError(f"{name}: {error}; give committed revisions of this git repository, such as main") from error


def _read(files: DVCFileSystem, path: str) -> bytes:
    try:
        return files.read_bytes(path)
    except (OSError, DvcException):
        return b""


def _remedy(name: str, pipeline: str, stage: str = "evaluate") -> str:
    if (name, stage) == (WORKSPACE, "seeds"):
        return f"run `python -m scripts.seeds {pipeline}`"
    student = is_student(pipeline) and stage != "seeds"
    key, default = ("seeds", "") if stage == "seeds" else ("students" if student else "pipelines", "cpu")
    listed = "" if pipeline == default else f" (with {pipeline} in `{key}` of the section `dvc` of project.yml)"
    where = "" if name == WORKSPACE else " there, and commit it"
    return f"run `dvc repro {stage}{'-student' * student}@{pipeline}`{listed}{where}"


def read_revision(name: str, pipeline: str, into: Path, root: Path = Path()) -> Revision:
    """Read the results of a pipeline at a git revision, or in the WORKSPACE.

    into (Path): folder for the tables.
    RAISES (InputError): if the revision, its evaluation or its tables can't be read.
    """
    content, files, folder = _read_metrics(name, pipeline, root)
    tables, copied = Tables.of(Path("training") / pipeline), Tables.of(into)
    into.mkdir(parents=True, exist_ok=True)
    try:
        for file, copy in zip(tables.files, copied.files, strict=True):
            copy.write_bytes(files.read_bytes(folder + file.as_posix()))
    except (OSError, DvcException) as error:
        raise InputError(
            f"{name}: {tables.pairs} is neither in DVC's cache nor in its default remote ({error}); run `dvc push` "
            f"where it was written; scores alone are compared by `dvc metrics diff {name}`"
        ) from error
    if copied.digest() != content.predictions_digest:
        raise InputError(
            f"{name}: {tables.pairs} isn't what metrics/{pipeline}.json was computed from; `dvc checkout` it, or "
            f"{_remedy(name, pipeline)}"
        )
    rename_pairs(copied)

    remedy = _remedy(name, pipeline, "seeds")
    revision = Revision(name, content, copied, remedy=remedy)
    if scores := _read(files, f"{folder}plots/{pipeline}.tsv"):
        curve = into / "curve.tsv"
        curve.write_bytes(scores)
        revision = revision._replace(curve=read_curve(curve, f"train {pipeline} again"))
    if seeds := _read(files, f"{folder}metrics/{pipeline}_seeds.json"):
        others = f"configs/{pipeline}.cfg", MERGE[1], f"training/{pipeline}/seeds.parquet"
        config, corpus, table = (_read(files, folder + file) for file in others)
        inputs = digest_inputs(config, corpus.decode().strip(), content.pipeline_digest)
        if why := check_seeds(seeds, inputs, table):
            revision = revision._replace(unused=f"metrics/{pipeline}_seeds.json {why}; {remedy}")
        else:
            revision = revision._replace(seeds=parquet.read_table(pa.BufferReader(table)))
    return revision


def open_files(name: str, root: Path) -> tuple[DVCFileSystem, str]:
    """Open the files of a revision, in git and in DVC.

    RETURNS (tuple): the files, and the project's folder in them: a revision's root is git's.
    RAISES (DvcException): if the repository or revision doesn't exist.
    """
    files = DVCFileSystem(str(root))
    if name == WORKSPACE:
        return files, ""
    project, repository = Path(files.repo.root_dir).resolve(), Path(files.repo.scm.root_dir).resolve()
    folder = project.relative_to(repository).as_posix()
    return DVCFileSystem(str(root), rev=name, subrepos=True), "" if folder == "." else f"{folder}/"
