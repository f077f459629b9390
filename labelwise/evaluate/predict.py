"""Predict raw texts part by part, in bounded memory.

A part is some hundred texts; processes predict parts in parallel. The pipeline gets only the text, in batches of a few
thousand words, and only spans are kept: a transformer's results are freed with its batch. A batch ends with its part,
so results don't depend on the number of workers.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import get_current_ops

from labelwise.base.device import use_gpu
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_kind, digest_folder
from labelwise.base.jobs import map_apart
from labelwise.base.parallel import check_workers, open_workers
from labelwise.base.text import text_key
from labelwise.corpus.annotation import entities
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.sources.files import printable
from labelwise.sources.raw_texts import RawText, read_raw_texts
from spacy_per_label import PerLabelRecognizer

PART = 500  # raw texts
PART_FILE = "part.jsonl"
WORD = 5  # characters, on average


class Part(list[RawText]):
    """A part to predict, as a job."""

    def __str__(self) -> str:
        return f"{len(self)} texts from {self[0].name} on"


class Done(NamedTuple):
    """Counts of a part: predicted texts, their tokens, and unusable texts by reason."""

    texts: int
    words: int
    problems: Counter[str]

    def size(self) -> int:
        """Return the number of texts, usable or not."""
        return self.texts + self.problems.total()


@lru_cache(maxsize=1)
def _hold(model: Path, digest: str, device: tuple[str, int]) -> Language:
    return load_pipeline(model)


def hold_pipeline(model: Path, digest: str) -> Language:
    """Load and cache a pipeline for the current device, so forked workers share it.

    digest (str): of its files, because a worker may have loaded an earlier pipeline from the folder.
    """
    ops = get_current_ops()
    return _hold(model, digest, (ops.device_type, ops.device_id))


def predict_texts(
    model: Path, inputs: Sequence[Path], out: Path, *, workers: int = 1, gpu_id: int = -1
) -> Iterator[Done]:
    """Predict raw texts, in order; the output file is complete once the generator is exhausted.

    gpu_id (int): number of the GPU, not for a cluster's workers; -1 for the CPU.
    YIELDS (Done): counts of each part.
    RAISES (InputError): if the pipeline or the GPU is missing, several workers are to share a GPU, an input is missing,
        unreadable or without usable text, the output is in a folder of inputs, or a worker was killed.
    """
    check_kind(out, folder=False)
    check_outside(inputs, out)
    check_workers(workers, gpu_id)
    use_gpu(gpu_id)
    raws, texts = read_raw_texts(inputs), 0
    model, out, digest = model.absolute(), out.absolute(), digest_folder(model)
    hold_pipeline(model, digest)
    with (
        atomic(out) as [path],
        path.open("wb") as file,
        open_workers(workers, path.parent if gpu_id < 0 else None) as map_jobs,
    ):
        parts = iter(lambda: Part(islice(raws, PART)), [])
        part_file = path.with_name(f"parts-of-{path.name}") / PART_FILE
        for done in map_apart(map_jobs, partial(predict_part, model, digest), parts, part_file.parent):
            with part_file.open("rb") as lines:
                shutil.copyfileobj(lines, file)
            part_file.unlink()
            texts += done.texts
            yield done
        if not texts:
            names = ", ".join(map(printable, inputs))
            raise InputError(f"{names}: no .txt or .jsonl file with a text that can be used; put some there")


def check_outside(inputs: Sequence[Path], out: Path) -> None:
    """Refuse an output in a folder of inputs: the next run would predict it, too."""
    for path in inputs:
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise InputError(f"{printable(out)}: it is among the texts of {printable(path)}; write elsewhere")


def predict_part(model: Path, digest: str, part: Part, folder: Path) -> Done:
    """Predict a part's texts to a file, one per line."""
    return predict_raw(hold_pipeline(model, digest), part, folder / PART_FILE)


def predict_raw(nlp: Language, raws: Iterable[RawText], file: Path) -> Done:
    """Predict raw texts to a file, one per line."""
    problems: Counter[str] = Counter()
    docs = predict_docs(nlp, read_raws(raws, problems), entity_labels(nlp))
    return Done(*write_predictions(docs, file), problems)


def predict_docs(
    nlp: Language, docs: Iterator[PredictedDoc], unknown: set[str] | None = None
) -> Iterator[PredictedDoc]:
    """Yield docs with a pipeline's predictions.

    unknown (set[str] | None): labels of raw texts, which are unannotated.
    """
    for doc, predicted in predict_each(nlp, docs, lambda doc: len(doc.text) // WORD):
        doc.predicted, doc.found, doc.words = sorted(entities(predicted)), all_found(nlp, predicted), len(predicted)
        if unknown is not None:
            doc.uncovered = dict.fromkeys(sorted(unknown.union(label for *_, label in doc.predicted)), "none")
        yield doc


def read_raws(raws: Iterable[RawText], problems: Counter[str]) -> Iterator[PredictedDoc]:
    """Yield usable raw texts, without predictions; count the others in `problems`, by reason."""
    for raw in raws:
        if raw.text is None:
            problems[raw.problem.partition(":")[0]] += 1
        else:
            key = text_key(raw.text).hex()
            yield PredictedDoc(key, raw.text, [], [], doc=raw.name)


def all_found(nlp: Language, doc: Doc) -> list[tuple[int, int, str, float]]:
    """List the spans of per-label recognizers, which may overlap, with their probabilities."""
    groups = [doc.spans[pipe.spans_key] for _, pipe in nlp.pipeline if isinstance(pipe, PerLabelRecognizer)]
    return sorted(
        (span.start_char, span.end_char, span.label_, round(float(score), 4))
        for group in groups
        for span, score in zip(group, group.attrs["scores"], strict=True)
    )


def entity_labels(nlp: Language) -> set[str]:
    """List the entity labels that a pipeline's recognizers and rules declare; some declare none."""
    finders = [name for name in nlp.pipe_names if "doc.ents" in nlp.get_pipe_meta(name).assigns]
    return {label for name in finders for label in nlp.pipe_labels.get(name, ())}
