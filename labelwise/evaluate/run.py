"""Evaluate a pipeline: predict a split, and score the predictions."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from labelwise import __version__
from labelwise.base.device import use_gpu
from labelwise.base.files import atomic, digest_listed, list_digests
from labelwise.base.parallel import Progress, check_workers, no_progress
from labelwise.corpus.manifest import read_manifest, read_split, unchanged
from labelwise.corpus.pipeline import check_tokens, untaught_labels
from labelwise.corpus.record import find_edited
from labelwise.corpus.seen_texts import read_seen
from labelwise.evaluate.predict import Done, hold_pipeline, predict_split
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import Tables, write_tables

REMEDY = "train it again; score a pipeline that isn't from this corpus with --other-tokens"


class Evaluation(NamedTuple):
    """The scores of an evaluation, and how they were made.

    seconds (float): how long predicting took, with reading and writing.
    edited (list[str]): the pipeline's files that were changed after the training.
    """

    metrics: Metrics
    words: int
    seconds: float
    edited: list[str]


def evaluate_pipeline(
    model: Path | str,
    split: Path | str,
    metrics: Path | str | None = None,
    *,
    tables: Path | str | None = None,
    predictions: Path | str | None = None,
    gpu_id: int = -1,
    workers: int = 1,
    other_tokens: bool = False,
    progress: Progress = no_progress,
) -> Evaluation:
    """Predict a split, and score the predictions; memory doesn't grow with the number of texts.

    metrics (Path | str | None): the JSON file to write the scores to, if any.
    tables (Path | str | None): the folder to write texts.parquet and pairs.parquet to, if any.
    predictions (Path | str | None): the JSONL file to write the predictions to, if any.
    workers (int): processes that predict.
    other_tokens (bool): accept a pipeline whose tokens aren't the corpus's; spans are compared in characters.
    RAISES (InputError): there is no model, no partition, or no such GPU; the pipeline makes other tokens; several
        workers on a GPU; a folder is where a file is to be written; the pipeline's digests can't be read.
    """
    model, split = Path(model), Path(split)
    with unchanged(split.resolve().parent), TemporaryDirectory() as folder:
        outputs = [Path(predictions) if predictions else None, *Tables.of(Path(tables or folder))]
        with atomic(Path(metrics or Path(folder) / "metrics.json"), *outputs) as (scores, wanted, *kept):
            file = wanted or scores.with_name(f"predictions-of-{scores.name}")  # on a disk that a cluster sees
            check_workers(workers, gpu_id)
            use_gpu(gpu_id)
            listed = read_split(split)
            seen = read_seen(model)
            digests = list_digests(model)
            digest = digest_listed(digests)
            partitions = predict_split(model, digest, split, file, workers=workers, gpu_id=gpu_id)
            nlp = hold_pipeline(model.absolute(), digest)
            if not other_tokens:
                check_tokens(nlp, split, REMEDY)
            start = time.perf_counter()
            words = sum(done.words for done in progress(partitions, "predict", listed.texts, Done.size))
            seconds = time.perf_counter() - start
            untaught, every = untaught_labels(nlp), read_manifest(split.resolve().parent).labels
            labels = [label for label in every if label not in untaught]
            written = Tables(*kept)
            write_tables(file, split, labels, written, seen, progress)
            found = measure(written, labels, seen_known=seen is not None)
            found.texts_digest, found.predictions_digest = listed.digest, written.digest()
            found.pipeline_digest, found.labelwise = digest, __version__
            weights = {name: one for name, one in digests.items() if Path(name).name == "model"}
            found.weights_digest = digest_listed(weights)
            found.untaught = [label for label in every if label in untaught]
            scores.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    return Evaluation(found, words, seconds, find_edited(model, digests))
