"""Evaluate a pipeline: predict a split, and dev, and score the predictions."""

import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from labelwise import __version__
from labelwise.annotations import DOCUMENT
from labelwise.base.device import use_gpu
from labelwise.base.files import atomic, digest_listed, list_digests
from labelwise.base.jobs import map_apart
from labelwise.base.parallel import Progress, check_workers, no_progress, open_workers
from labelwise.base.text import encode_json
from labelwise.corpus.annotation import DATASET
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import (
    digest_splits,
    find_partitions,
    partitions_of,
    read_manifest,
    read_split,
    unchanged,
)
from labelwise.corpus.pipeline import Points, check_tokens, excluded_labels_of, points_of
from labelwise.corpus.record import find_edited
from labelwise.corpus.seen_texts import find_seen
from labelwise.corpus.surface_forms import SurfaceForms
from labelwise.evaluate.predict import PART_FILE, Done, hold_pipeline
from labelwise.evaluate.results import GROUPS_FILE
from labelwise.evaluate.rows import EvaluateJob, evaluate_part
from labelwise.evaluate.scores import Groups, Metrics, SplitMetrics
from labelwise.evaluate.scoring import measure, score_goals, score_groups
from labelwise.evaluate.tables import FORM, Rows, Tables, find_forms, write_tables

REMEDY = "train it again; score a pipeline that isn't from this corpus with --other-tokens"


class Evaluation(NamedTuple):
    """The scores of an evaluation, and how they were made.

    seconds (float): time of predicting, reading and writing.
    edited (list[str]): pipeline files changed after training.
    """

    metrics: Metrics
    words: int
    seconds: float
    edited: list[str]
    groups: Groups


def evaluate_pipeline(
    model: Path | str,
    split: Path | str,
    metrics: Path | str | None = None,
    *,
    dev: Path | str | None = None,
    tables: Path | str | None = None,
    predictions: Path | str | None = None,
    gpu_id: int = -1,
    workers: int = 1,
    other_tokens: bool = False,
    progress: Progress = no_progress,
) -> Evaluation:
    """Predict and score a split; memory grows by a few bytes per span.

    dev (Path | str | None): dev of the same corpus, scored too, if it has texts.
    metrics (Path | str | None): JSON file for the scores.
    tables (Path | str | None): folder for texts.parquet, pairs.parquet and groups.json.
    predictions (Path | str | None): JSONL file for the split's predictions.
    workers (int): processes for prediction.
    other_tokens (bool): accept other tokens than the corpus's; spans are compared in characters.
    RAISES (InputError): if the model, a partition or the GPU is missing, tokens differ, several workers are to share a
        GPU, an output is a folder, or the pipeline's digests can't be read.
    """
    model, split = Path(model).absolute(), Path(split)
    with unchanged(split.resolve().parent), TemporaryDirectory() as folder:
        first, tables_folder = Path(metrics or Path(folder, "metrics.json")), Path(tables or folder)
        outputs = [Path(predictions) if predictions else None, tables_folder / GROUPS_FILE]
        outputs += Tables.of(tables_folder).files
        with atomic(first, *outputs) as [scores, predicted_file, groups, *files]:
            check_workers(workers, gpu_id)
            use_gpu(gpu_id)
            splits = [*([Path(dev)] if dev and read_split(Path(dev)).texts else []), split]
            texts = sum(read_split(one).texts for one in splits)
            digests = list_digests(model)
            seen, digest = find_seen(model, digests), digest_listed(digests)
            nlp = hold_pipeline(model, digest)
            if not other_tokens:
                check_tokens(nlp, split, REMEDY)
            excluded_labels, manifest = excluded_labels_of(nlp), read_manifest(split.resolve().parent)
            points = {label: one for label, one in points_of(nlp).items() if label in manifest.labels}
            labels, written = [label for label in manifest.labels if label not in excluded_labels], Tables(*files)
            split_by = manifest.settings.get("split_by") or DOCUMENT
            unit = "document" if split_by == DOCUMENT else split_by
            parts = scores.with_name("parts")  # on a disk that a cluster sees
            told = dict.fromkeys(splits, (None, False)) | {split: (seen, bool(predicted_file))}
            jobs = [
                [EvaluateJob(model, digest, file, labels, *told[one]) for file in find_partitions(one.absolute())]
                for one in splits
            ]
            start = time.perf_counter()
            with open_workers(workers, parts.parent if gpu_id < 0 else None) as map_jobs:
                done = map_apart(map_jobs, evaluate_part, chain.from_iterable(jobs), parts)
                words = sum(one.words for one in progress(done, "predict", texts, Done.size))
            seconds = time.perf_counter() - start
            places = [[job.place(parts) for job in jobs_of_split] for jobs_of_split in jobs]
            collect(places, split.resolve().parent, labels, written, predicted_file, progress)
            *on_dev, on_split = (
                measure_split(written, one, labels, unit, points, seen_known=seen is not None and one is split)
                for one in splits
            )
            fields = SplitMetrics.__struct_fields__
            on_split.dev = SplitMetrics(*(getattr(on_dev[0], name) for name in fields)) if on_dev else None
            on_split.predictions_digest = written.digest()
            on_split.pipeline_digest, on_split.labelwise = digest, __version__
            on_split.excluded_labels = [label for label in manifest.labels if label in excluded_labels]
            divided = score_groups(written._replace(split=split.name), labels)
            on_split.groups = {by: scores for by, scores in divided.items() if by == DATASET}
            groups.write_bytes(encode_json(divided))
            weights = {name: one for name, one in digests.items() if Path(name).name == "model"}
            on_split.weights_digest = digest_listed(weights)
            scores.write_bytes(encode_json(on_split))
    return Evaluation(on_split, words, seconds, find_edited(model, digests), divided)


def measure_split(
    tables: Tables, split: Path, labels: Sequence[str], unit: str, points: Points, *, seen_known: bool
) -> Metrics:
    """Compute the metrics of a split, with digests of its texts and gold; see `measure`."""
    tables = tables._replace(split=split.name)
    metrics = measure(tables, labels, seen_known=seen_known, unit=unit)
    metrics.aimed = score_goals(tables, points) if points else msgspec.UNSET
    metrics.texts_digest = read_split(split).digest
    metrics.split_digest = digest_splits(split.resolve().parent, [split.resolve().name])
    return metrics


def collect(
    parts: Sequence[Sequence[Path]],
    corpus: Path,
    labels: Sequence[str],
    tables: Tables,
    predictions: Path | None,
    progress: Progress,
) -> None:
    """Write both tables from the files of parts, and the last split's predictions, if asked."""
    forms = SurfaceForms(labels)
    for part in chain.from_iterable(parts):
        forms.want(*find_forms(forms, Rows.read(part, FORM).pairs)[1:])
    for file in progress(partitions_of(corpus, "train"), "count words"):
        for stored in read_stored_docs(file):
            forms.mark(stored)
            forms.release(stored)
    write_tables((map(Rows.read, progress(some, "write tables", len(some))) for some in parts), tables, forms)
    if predictions:
        with predictions.open("wb") as file:
            for part in parts[-1]:
                file.write((part / PART_FILE).read_bytes())
