"""Let a pipeline predict the texts of a split, or raw ones, part by part, in a fixed amount of memory.

A part is a partition, or some hundred raw texts; several processes predict parts side by side. A pipeline gets nothing
but the text, in batches of a few thousand words, and nothing of a Doc is kept but its spans: what a transformer
computed is freed with its batch. Batches end with their part, so that results don't depend on the number of workers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_kind, digest_folder
from labelwise.base.parallel import open_workers
from labelwise.base.text import text_key
from labelwise.corpus.annotation import entities
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Partition, find_partitions
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.sources.files import printable
from labelwise.sources.raw_texts import RawText, read_raw_texts
from spacy_per_label import PerLabelRecognizer

PART = 500  # raw texts
WORD = 5  # characters


Part = Partition | list[RawText]


class PredictJob(NamedTuple):
    """A part to predict, and the pipeline's folder and its digest."""

    model: Path
    digest: str
    part: Part

    def __str__(self) -> str:
        """Name the partition, or the first text."""
        if isinstance(self.part, Partition):
            return str(self.part.file)
        return f"{len(self.part)} texts from {self.part[0].name} on"


class Done(NamedTuple):
    """What a part has: predictions, a line for each text, tokens, and texts that can't be used, by reason."""

    lines: bytes
    texts: int
    words: int
    problems: Counter[str]


@lru_cache(maxsize=1)
def hold_pipeline(model: Path, digest: str) -> Language:
    """Load a pipeline once; workers that are forked afterwards share it.

    digest (str): of its files: a worker may have loaded an earlier one from the same folder.
    RAISES (InputError): there is none.
    """
    return load_pipeline(model)


def predict_split(model: Path, digest: str, split: Path, out: Path, *, workers: int = 1) -> Iterator[Done]:
    """Write the predictions of a pipeline for a split of a merged corpus.

    digest (str): of the pipeline's files.
    workers (int): processes that predict.
    YIELDS (Done): what was done for each partition; the file is there at the end.
    RAISES (InputError): there is no pipeline, or no partition, or a worker was killed.
    """
    partitions = find_partitions(split.absolute())
    return _predict(model, digest, partitions, out, workers, [split])


def predict_texts(model: Path, inputs: Sequence[Path], out: Path, *, workers: int = 1) -> Iterator[Done]:
    """Write the predictions of a pipeline for raw texts, in their order. No label is known of any of them.

    inputs (Sequence[Path]): files and folders; see `raw_texts`.
    out (Path): the JSONL file.
    workers (int): processes that predict.
    YIELDS (Done): what was done for each part; the file is there at the end.
    RAISES (InputError): there is no pipeline, an input isn't there, can't be read, or has no text that can be used, or
        a worker was killed.
    """
    check_kind(out, folder=False)
    texts = read_raw_texts(inputs)
    parts = iter(lambda: list(islice(texts, PART)), [])
    return _predict(model, digest_folder(model), parts, out, workers, inputs)


def _predict(
    model: Path, digest: str, parts: Iterable[Part], out: Path, workers: int, inputs: Sequence[Path]
) -> Iterator[Done]:
    """Predict all parts, and put their lines together, in order."""
    model, out = model.absolute(), out.absolute()
    hold_pipeline(model, digest)
    texts = 0
    with (
        atomic(out) as path,
        path.open("wb") as file,
        open_workers(max(1, workers)) as map_jobs,
    ):
        for done in map_jobs(predict_part, (PredictJob(model, digest, part) for part in parts)):
            file.write(done.lines)
            texts += done.texts
            yield done
        if not texts:
            names = ", ".join(map(printable, inputs))
            raise InputError(f"{names}: no .txt or .jsonl file with a text that can be used; put some there")


def predict_part(job: PredictJob) -> Done:
    """Predict the texts of a part."""
    nlp = hold_pipeline(job.model, job.digest)
    labels = entity_labels(nlp)
    problems: Counter[str] = Counter()
    lines, texts, words = BytesIO(), 0, 0
    for doc, found in predict_each(nlp, read_part(job.part, problems), lambda doc: len(doc.text) // WORD):
        doc.predicted, doc.found = sorted(entities(found)), all_found(nlp, found)
        if not isinstance(job.part, Partition):
            doc.uncovered = dict.fromkeys(sorted(labels.union(label for *_, label in doc.predicted)), "none")
        write_predictions([doc], lines)
        texts, words = texts + 1, words + len(found)
    return Done(lines.getvalue(), texts, words, problems)


def read_part(part: Part, problems: Counter[str]) -> Iterator[PredictedDoc]:
    """Yield the texts of a part, without predictions; count those that can't be used in `problems`, by reason."""
    if isinstance(part, Partition):
        yield from map(gold_of, read_stored_docs(part))
        return
    for raw in part:
        if raw.text is None:
            problems[raw.problem.partition(":")[0]] += 1
        else:
            key = text_key(raw.text).hex()
            yield PredictedDoc(key, raw.text, [], [], doc=raw.name)


def gold_of(stored: StoredDoc) -> PredictedDoc:
    """Take what a corpus has about a text."""
    merged = stored.annotation
    return PredictedDoc(
        key=text_key(stored.text).hex(),
        text=stored.text,
        predicted=[],
        gold=sorted(merged.accepted),
        rejected=sorted(merged.rejected),
        uncovered=dict(merged.uncovered),
        doc=merged.doc,
    )


def all_found(nlp: Language, doc: Doc) -> list[tuple[int, int, str, float]]:
    """List all spans that per-label recognizers found, which may overlap, each with its probability."""
    groups = [doc.spans[pipe.spans_key] for _, pipe in nlp.pipeline if isinstance(pipe, PerLabelRecognizer)]
    return sorted(
        (span.start_char, span.end_char, span.label_, round(float(score), 4))
        for group in groups
        for span, score in zip(group, group.attrs["scores"], strict=True)
    )


def entity_labels(nlp: Language) -> set[str]:
    """List the labels that a pipeline's components give entities: a recognizer, or rules; some don't say theirs."""
    finders = [name for name in nlp.pipe_names if "doc.ents" in nlp.get_pipe_meta(name).assigns]
    return {label for name in finders for label in nlp.pipe_labels.get(name, ())}
