"""Read an experiment's results at git revisions: metrics from git, tables of pairs from DVC's cache, or its remote."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from pygit2 import GitError
from scmrepo.exceptions import SCMError

from labelwise.base.conflicts import check_written, git
from labelwise.base.errors import InputError
from labelwise.base.settings import decode_yaml
from labelwise.base.text import DECODE_ERRORS
from labelwise.evaluate.results import Curve, read_curve
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables

MERGE = ("metrics/merge.json", "metrics/merge.sha256")
WORKSPACE = "workspace"  # in place of a revision: the files as they are now


class Revision(NamedTuple):
    """What an evaluation found at a git revision, or in the WORKSPACE.

    tables (Tables): what the scores were computed from.
    curve (Curve | None): of the training, if there is one.
    settings (Any): what project.yml has, if there is one, and the pipeline's config, by its name.
    corpus (str): the digest of the corpus; empty if it isn't known.
    """

    name: str
    metrics: Metrics
    tables: Tables
    curve: Curve | None = None
    settings: Any = None
    corpus: str = ""

    def differs_by_seed_alone(self, other: "Revision") -> bool:
        """Return whether two trainings on one corpus have the same settings, except for the seed."""
        if not self.settings or not other.settings or not self.corpus or self.corpus != other.corpus:
            return False
        one, two = ({**made.settings, "vars": dict(made.settings.get("vars") or {})} for made in (self, other))
        seeds = [made["vars"].pop("seed", None) for made in (one, two)]
        return one == two and seeds[0] != seeds[1]


def find_earlier(pipeline: str, root: Path = Path()) -> str:
    """Find the last commit with other scores of a pipeline than the workspace; empty if there is none.

    Whether the scores in the workspace are committed, and what else was, makes no difference.
    """
    scores = root / "metrics" / f"{pipeline}.json"
    if not scores.is_file():
        return ""

    now, name = scores.read_bytes(), scores.relative_to(root).as_posix()
    commits = git(root, "log", "--format=%H", "--diff-filter=AM", "--", name).decode().split()
    return next((commit for commit in commits if git(root, "show", f"{commit}:./{name}") != now), "")


def read_before(name: str, pipeline: str, decisions: str, root: Path = Path()) -> tuple[Metrics, bytes]:
    """Read the scores of a pipeline, such as "cpu", at a git revision, and the decisions that there were.

    decisions (str): the folder of their files.
    RETURNS (tuple): the scores, and the rows of all files.
    RAISES (InputError): there is no such repository, revision, or evaluation, or the repository is another user's.
    """
    metrics, files, folder = _read_metrics(name, pipeline, root)
    try:
        found = sorted(files.glob(f"{folder}{decisions}/*.jsonl"))
        return metrics, b"\n".join(map(files.read_bytes, found))
    except (OSError, DvcException):
        return metrics, b""


def _read_metrics(name: str, pipeline: str, root: Path) -> tuple[Metrics, DVCFileSystem, str]:
    if not name.strip():
        raise InputError("a revision is empty, perhaps because a shell variable isn't set; name it, such as main")
    metrics, remedy = f"metrics/{pipeline}.json", _remedy(name, pipeline)
    try:
        files, folder = open_files(name, root)
        for file in ("dvc.lock", metrics, *MERGE, f"plots/{pipeline}.tsv"):
            check_written(_read(files, folder + file), f"{name}: {file}", root if name == WORKSPACE else None)
        return msgspec.json.decode(files.read_bytes(folder + metrics), type=Metrics), files, folder
    except FileNotFoundError as error:
        raise InputError(f"{name}: no {metrics}; {remedy}") from error
    except DECODE_ERRORS as error:
        raise InputError(f"{name}: {metrics} isn't what an evaluation writes now ({error}); {remedy}") from error
    except (DvcException, GitError, SCMError) as error:  # such as a repository of another user, or without commits
        raise InputError(f"{name}: {error}; give committed revisions of this git repository, such as main") from error


def _read(files: DVCFileSystem, path: str) -> bytes:
    """Read a file; empty if there is none."""
    try:
        return files.read_bytes(path)
    except (OSError, DvcException):
        return b""


def _remedy(name: str, pipeline: str) -> str:
    listed = "" if pipeline == "cpu" else f" (with {pipeline} in `pipelines` of the section `dvc` of project.yml)"
    return f"run `dvc repro evaluate@{pipeline}`{listed}" + ("" if name == WORKSPACE else " there, and commit it")


def read_revision(name: str, pipeline: str, into: Path, root: Path = Path()) -> Revision:
    """Read the results of a pipeline at a git revision, or in the WORKSPACE.

    into (Path): a folder for the tables that the scores are computed from.
    RAISES (InputError): there is no such repository, revision, or evaluation, the repository is another user's, or the
        tables aren't there, or aren't those of the scores.
    """
    content, files, folder = _read_metrics(name, pipeline, root)
    tables, copied = Tables.of(Path("training") / pipeline), Tables.of(into)
    into.mkdir(parents=True, exist_ok=True)
    try:
        for file, copy in zip(tables, copied, strict=True):
            copy.write_bytes(files.read_bytes(folder + file.as_posix()))
    except (OSError, DvcException) as error:
        raise InputError(
            f"{name}: {tables.pairs} isn't in DVC's cache ({error}); if a remote has it, run `dvc fetch -a`; scores "
            f"alone are compared by `dvc metrics diff {name}`"
        ) from error
    if copied.digest() != content.predictions_digest:
        raise InputError(
            f"{name}: {tables.pairs} isn't what metrics/{pipeline}.json was computed from; `dvc checkout` it, or "
            f"{_remedy(name, pipeline)}"
        )

    found = Revision(name, content, copied)
    if scores := _read(files, f"{folder}plots/{pipeline}.tsv"):
        curve = into / "curve.tsv"
        curve.write_bytes(scores)
        found = found._replace(curve=read_curve(curve, f"train {pipeline} again"))
    if project := _read(files, folder + "project.yml"):
        settings, config = decode_yaml(project, dict, f"{name}: project.yml", "correct it"), f"configs/{pipeline}.cfg"
        found = found._replace(settings={**settings, config: _read(files, folder + config)})
    merge, digest = (_read(files, folder + file) for file in MERGE)
    if merge and not digest:  # of 0.3.0
        digest = msgspec.json.decode(merge).get("digest", "").encode()
    return found._replace(corpus=digest.decode().strip())


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
