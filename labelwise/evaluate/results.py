"""Read and check the results of merge, training and evaluation for a pipeline."""

from csv import DictReader
from pathlib import Path
from typing import NamedTuple, TypeVar

from labelwise.base.conflicts import check_written
from labelwise.base.errors import InputError
from labelwise.base.files import digest_folder
from labelwise.base.text import decode_json
from labelwise.corpus.ledger import DIGEST, Ledger
from labelwise.corpus.manifest import digest_splits, read_manifest
from labelwise.evaluate.scores import Groups, Metrics
from labelwise.evaluate.tables import Tables

GROUPS_FILE = "groups.json"  # beside the tables
Read = TypeVar("Read")


class Curve(NamedTuple):
    """F1 on dev, or the config's score, at each evaluation of a training, with its step."""

    steps: list[int]
    f: list[float]


class Results(NamedTuple):
    """A pipeline's results.

    merge (Ledger): empty without metrics of the merge.
    corpus (str): digest of the corpus, if known.
    tables (Tables | None): None if DVC hasn't pulled them.
    groups (Groups): scores of groups of texts; empty if DVC hasn't pulled them.
    """

    metrics: Metrics
    merge: Ledger
    corpus: str
    tables: Tables | None
    curve: Curve | None
    groups: Groups


def load_results(root: Path, pipeline: str) -> Results:
    """Load the results of a pipeline, such as "cpu", from a project's folder.

    RAISES (InputError): if it wasn't evaluated, or a file has a git conflict or is malformed.
    """
    evaluate, file = f"evaluate {pipeline} again", root / "metrics" / f"{pipeline}.json"
    if (root / "corpus" / "labels").exists():
        read_manifest(root / "corpus")
    merged, plot = root / "metrics" / "merge.json", root / "plots" / f"{pipeline}.tsv"
    for path in filter(Path.is_file, (root / "dvc.lock", file, merged, plot)):
        check_written(path.read_bytes(), f"{path}", root)
    metrics = _read_json(file, Metrics, evaluate)
    if metrics is None:
        raise InputError(f"{file}: there is no such file; evaluate {pipeline}, or name the project with --root")
    if metrics.all_gold.labels and not metrics.mistakes:
        raise InputError(f"{file}: it has no `mistakes`, so an earlier version wrote it; {evaluate}")
    tables = Tables.of(root / "training" / pipeline)
    pulled = all(file.is_file() for file in tables.files)
    if pulled and metrics.predictions_digest != tables.digest():
        raise InputError(f"{tables.pairs}: not the pairs that the scores were computed from; {evaluate}")
    groups = _read_json(tables.texts.with_name(GROUPS_FILE), Groups, evaluate) if pulled else None
    merge = _read_json(merged, Ledger, "run merge again") or Ledger()
    file = merged.with_suffix(DIGEST)
    corpus = file.read_text(encoding="utf8").strip() if file.is_file() else ""
    curve = read_curve(plot, f"train {pipeline} again")
    return Results(metrics, merge, corpus, tables if pulled else None, curve, groups or {})


def check_evaluated(root: Path, pipeline: str, metrics: Metrics) -> None:
    """Check that a pipeline's scores belong to its files, and to the corpus's test split.

    RAISES (InputError): if another pipeline, or another test split, was evaluated.
    """
    if metrics.pipeline_digest != digest_folder(root / "training" / pipeline / "model-best"):
        raise InputError(f"{root / 'metrics'}: its scores are of another pipeline; evaluate {pipeline} again")
    if metrics.split_digest != digest_splits(root / "corpus", ["test"]):
        raise InputError(
            f"{root / 'corpus'}: test has changed since {pipeline} was evaluated; evaluate {pipeline} again"
        )


def _read_json(path: Path, kind: type[Read], remedy: str) -> Read | None:
    problem = f"{path}: not the counts or scores that it should hold"
    return decode_json(path.read_bytes(), kind, problem, remedy) if path.is_file() else None


def read_curve(path: Path, remedy: str) -> Curve | None:
    """Read the curve of a training; None if the file is missing.

    RAISES (InputError): if it is malformed; the message ends with the remedy.
    """
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf8") as file:
            rows = [*DictReader(file, delimiter="\t")]
        return Curve([int(row["step"]) for row in rows], [float(row.get("ents_f") or row["score"]) for row in rows])
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a training's table ({error!r}); {remedy}") from error
