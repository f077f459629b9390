"""Let a pipeline predict any number of raw texts, part by part, in a fixed amount of memory.

A part that was predicted by the same pipeline is taken from an earlier run that was killed.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language

from labelwise.common.code import digest_folder
from labelwise.common.collector import rare_collections
from labelwise.common.engines import EngineName, open_engine
from labelwise.common.keys import text_key
from labelwise.common.outputs import check_kind, staged
from labelwise.common.own_files import own_folder, own_name, remove
from labelwise.corpus.annotation import entities
from labelwise.evaluate.predict import Done, all_found, hold_pipeline, predict_each
from labelwise.evaluate.predictions import PredictedDoc, write_predictions

PART = 500  # texts

NamedText = tuple[str, str]


class RawJob(NamedTuple):
    """A part to predict: the pipeline's folder and its digest, the texts, and the file for the predictions."""

    model: Path
    digest: str
    texts: list[NamedText]
    out: Path

    def __str__(self) -> str:
        """Name the first text."""
        return f"{self.texts[0][1]} and {len(self.texts) - 1} texts after it"


def predict_texts(
    model: Path,
    texts: Iterable[NamedText],
    out: Path,
    *,
    workers: int = 1,
    engine: EngineName = "processes",
    address: str = "",
) -> Iterator[Done]:
    """Write predictions for raw texts, in their order; see `evaluate.predictions`. No label is known of any of them.

    out (Path): the JSONL file; beside it, while this runs, a folder of parts.
    workers, engine, address: see `engines.open_engine`.
    YIELDS (Done): what was done for each part; the file is there at the end.
    RAISES (InputError): there is no pipeline, or a worker was killed.
    """
    check_kind(out, folder=False)
    model, out = model.absolute(), out.absolute()  # a cluster's workers are elsewhere
    hold_pipeline.cache_clear()
    pipeline = digest_folder(model)
    hold_pipeline(model, pipeline)
    parts = own_name(out, "parts")
    own_folder(parts)

    def jobs() -> Iterator[RawJob]:
        """Put texts together."""
        waiting = iter(texts)
        for number in count():
            part = list(islice(waiting, PART))
            if not part:
                return
            content = hashlib.sha256(repr((pipeline, part)).encode("utf8", "surrogatepass")).hexdigest()[:16]
            yield RawJob(model, pipeline, part, parts / f"part-{number:06d}-{content}.jsonl")

    with (
        staged(out) as whole,
        whole.open("wb") as written,
        rare_collections(),
        open_engine(engine, workers, address, out) as opened,
    ):
        for job, done in opened.map(predict_part, jobs()):
            written.write(job.out.read_bytes())
            yield done
    remove(parts)


def predict_part(job: RawJob) -> Done:
    """Write the predictions for a part, unless they are there."""
    done = Done(len(job.texts), sum(len(text.split()) for text, _ in job.texts))
    if job.out.is_file():
        return done
    nlp = hold_pipeline(job.model, job.digest)
    labels = entity_labels(nlp)
    predicted = predict_each(nlp, iter(job.texts), lambda raw: raw[0], lambda raw: len(raw[0]) // 5)
    with staged(job.out) as path, path.open("wb") as file:
        for (text, name), doc in predicted:
            key = text_key(text.encode("utf8", "surrogatepass")).hex()
            spans = sorted(entities(doc))
            unknown = dict.fromkeys(sorted(labels.union(label for *_, label in spans)), "none")
            found = PredictedDoc(key, text, spans, [], [], uncovered=unknown, doc=name)
            found.found = all_found(doc)
            write_predictions([found], file)
    return done


def entity_labels(nlp: Language) -> set[str]:
    """List the labels that a pipeline's components give entities: a recognizer, or rules; some don't say theirs."""
    finders = [name for name in nlp.pipe_names if "doc.ents" in nlp.get_pipe_meta(name).assigns]
    return {label for name in finders for label in nlp.pipe_labels.get(name, ())}
