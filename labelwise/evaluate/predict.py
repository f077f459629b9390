"""Let a pipeline predict a split, partition by partition, in a fixed amount of memory, in one process or more.

A pipeline gets nothing but the text, in batches of a few thousand words, and nothing of a Doc is kept but its spans:
what a transformer computed is freed with its batch. Batches end with their partition, so that results don't depend on
the number of workers.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from spacy.language import Language
from spacy.tokens import Doc

from labelwise.common.code import digest_folder
from labelwise.common.files import staged, workspace
from labelwise.common.keys import text_key
from labelwise.common.parallel import open_workers
from labelwise.corpus.annotation import entities
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Partition, find_partitions
from labelwise.corpus.pipeline import forgetting, load_pipeline, take_batch
from labelwise.corpus.tokenizer import tokenize
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from spacy_per_label.component import SPANS_KEY

Item = TypeVar("Item")


class PredictJob(NamedTuple):
    """A partition to predict.

    model, digest (Path, str): the pipeline's folder, and its digest.
    partition (Partition): the `.spacy` file, with its digest.
    out (Path): the file for predictions.
    """

    model: Path
    digest: str
    partition: Partition
    out: Path

    def __str__(self) -> str:
        """Name the partition."""
        return str(self.partition.file)


class Done(NamedTuple):
    """What a job did."""

    texts: int
    words: int


@lru_cache(maxsize=1)
def hold_pipeline(model: Path, digest: str) -> Language:
    """Load a pipeline once; workers that are forked afterwards share it.

    digest (str): of its files: a worker may have loaded an earlier one from the same folder.
    RAISES (InputError): there is none.
    """
    return load_pipeline(model)


def predict_each(
    nlp: Language, items: Iterator[Item], text: Callable[[Item], str], words: Callable[[Item], int]
) -> Iterator[tuple[Item, Doc]]:
    """Yield what has a text with the predicted Doc, which can't be used any more once the next one is asked for.

    text, words (Callable): give the text of an item, and roughly how many words it has.
    """
    most = nlp.batch_size
    while True:
        with forgetting(nlp):
            batch = take_batch(items, most, words)
            if not batch:
                return
            docs = [tokenize(nlp, text(item)) for item in batch]
            yield from zip(batch, nlp.pipe(docs, batch_size=most), strict=True)


def predict_split(model: Path, split: Path, out: Path, *, workers: int = 1, address: str = "") -> Iterator[Done]:
    """Load a pipeline, and write its predictions for a split of a merged corpus.

    workers, address: see `parallel.open_workers`.
    RETURNS (Iterator[Done]): does the work, and yields what was done for each partition; the file is there at the end.
    RAISES (InputError): there is no pipeline, or no partition, or a worker was killed.
    """
    model, split, out = model.absolute(), split.absolute(), out.absolute()  # a cluster's workers are elsewhere
    hold_pipeline.cache_clear()
    digest = digest_folder(model)
    hold_pipeline(model, digest)
    files = find_partitions(split)

    def predict() -> Iterator[Done]:
        """Predict all partitions, and put their lines together, in order."""
        with (
            staged(out) as whole,
            workspace(out) as folder,
            whole.open("wb") as written,
            open_workers(min(workers, len(files)), address, out) as map_jobs,
        ):
            jobs = [PredictJob(model, digest, one, folder / f"{one.file.stem}.jsonl") for one in files]
            for job, done in zip(jobs, map_jobs(predict_partition, jobs), strict=True):
                written.write(job.out.read_bytes())
                job.out.unlink()
                yield done

    return predict()


def predict_partition(job: PredictJob) -> Done:
    """Write the predictions for a partition."""
    golds = read_stored_docs(job.partition)
    texts = words = 0
    with job.out.open("wb") as file:
        for gold, doc in predict_each(hold_pipeline(job.model, job.digest), golds, lambda gold: gold.text, len):
            texts += 1
            words += len(doc)
            write_predictions([join(gold, doc)], file)
    return Done(texts, words)


def join(stored: StoredDoc, predicted: Doc) -> PredictedDoc:
    """Put together what a corpus has about a text and what a pipeline found in it."""
    merged = stored.annotation
    return PredictedDoc(
        key=text_key(predicted.text.encode()).hex(),
        text=predicted.text,
        predicted=sorted(entities(predicted)),
        gold=sorted(merged.accepted),
        entities=sorted(stored.entities()),
        rejected=sorted(merged.rejected),
        uncovered=dict(merged.uncovered),
        datasets=merged.datasets,
        doc=merged.doc,
        found=all_found(predicted),
    )


def all_found(doc: Doc) -> list[tuple[int, int, str, float]]:
    """List all spans that a per-label recognizer found, which may overlap, each with its probability."""
    group = doc.spans.get(SPANS_KEY, ())
    scores = getattr(group, "attrs", {}).get("scores", ())
    return sorted(
        (span.start_char, span.end_char, span.label_, round(float(score), 4))
        for span, score in zip(group, scores, strict=True)
    )
