"""Let a pipeline predict any number of raw texts, part by part, in a fixed amount of memory.

A part that was predicted by the same pipeline is taken from an earlier run that was killed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from labelwise.common.code import digest_folder
from labelwise.common.collector import rare_collections
from labelwise.common.errors import InputError
from labelwise.common.keys import text_key
from labelwise.common.outputs import check_kind, own_folder, own_name, remove, staged
from labelwise.common.workers import Engine, open_executor, run_in_order
from labelwise.corpus.annotation import entities
from labelwise.corpus.streaming import forgetting, take_batch
from labelwise.evaluate.predict import Done, all_found, load_pipeline
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.raw_texts import RawText, read_texts
from labelwise.sources.files import printable

PART = 500  # texts


class RawJob(NamedTuple):
    """A part to predict: the pipeline's folder and its digest, the texts, and the file for the predictions."""

    model: Path
    digest: str
    texts: list[RawText]
    out: Path


def predict_texts(
    model: Path,
    inputs: Sequence[Path],
    out: Path,
    *,
    workers: int = 1,
    engine: Engine = "processes",
    address: str = "",
    problems: Counter[str],
) -> Iterator[Done]:
    """Write predictions for raw texts, in their order; see `evaluate.predictions`. No label is known of any of them.

    out (Path): the JSONL file; beside it, while this runs, a folder of parts.
    workers, engine, address: see `workers.open_executor`.
    problems (Counter[str]): the texts that can't be used are counted there, by reason.
    YIELDS (Done): what was done for each part; the file is there at the end.
    RAISES (InputError): there is no pipeline, an input can't be read, or a worker was killed.
    """
    check_kind(out, folder=False)
    load_pipeline.cache_clear()
    pipeline = digest_folder(model)
    load_pipeline(model.resolve(), pipeline)
    parts = own_name(out, "parts")
    own_folder(parts)

    def jobs() -> Iterator[RawJob]:
        """Put texts together."""
        texts = _usable(read_texts(inputs), problems)
        for number in range(10**9):
            part = list(islice(texts, PART))
            if not part:
                return
            content = hashlib.sha256(repr((pipeline, part)).encode("utf8", "surrogatepass")).hexdigest()[:16]
            yield RawJob(model.resolve(), pipeline, part, (parts / f"part-{number:06d}-{content}.jsonl").resolve())

    with (
        staged(out) as whole,
        whole.open("wb") as written,
        rare_collections(),
        open_executor(engine, workers, address) as executor,
    ):
        any_text = False
        for job, done in run_in_order(executor, predict_part, jobs(), ahead=2 * max(workers, 1)):
            written.write(job.out.read_bytes())
            any_text = True
            yield done
        if not any_text:
            raise InputError(
                f"{', '.join(map(printable, inputs))}: no .txt or .jsonl file with a text that can be used"
            )
    remove(parts)


def predict_part(job: RawJob) -> Done:
    """Write the predictions for a part, unless they are there."""
    words = sum(len((raw.text or "").split()) for raw in job.texts)
    if job.out.is_file():
        return Done(len(job.texts), words)
    nlp = load_pipeline(job.model, job.digest)
    unknown = dict.fromkeys(sorted(nlp.pipe_labels.get("ner", ())), "none")
    texts = iter(job.texts)
    with staged(job.out) as path, path.open("wb") as file:
        while True:
            with forgetting(nlp):
                batch = take_batch(texts, nlp.batch_size, lambda raw: len(raw.text or "") // 5)
                if not batch:
                    break
                for raw, doc in zip(batch, nlp.pipe(raw.text or "" for raw in batch), strict=True):
                    key = text_key(doc.text.encode("utf8", "surrogatepass")).hex()
                    found = PredictedDoc(key, doc.text, sorted(entities(doc)), [], [], uncovered=unknown, doc=raw.name)
                    found.found = all_found(doc)
                    write_predictions([found], file)
    return Done(len(job.texts), words)


def _usable(texts: Iterable[RawText], problems: Counter[str]) -> Iterator[RawText]:
    """Yield the texts that can be used, and count the others."""
    for raw in texts:
        if raw.text is None:
            problems[raw.problem.partition(":")[0]] += 1
        else:
            yield raw
