"""Let a pipeline predict any number of raw texts, part by part, in a fixed amount of memory.

A part that was predicted by the same pipeline is taken from an earlier run that was killed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from spacy.language import Language

from labelwise.common.code import digest_folder
from labelwise.common.decoding import decode_counter
from labelwise.common.errors import InputError
from labelwise.common.files import beside, check_kind, remove, staged
from labelwise.common.keys import text_key
from labelwise.common.parallel import open_workers
from labelwise.corpus.annotation import entities
from labelwise.evaluate.predict import all_found, hold_pipeline, predict_each
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.sources.files import printable
from labelwise.sources.raw_texts import Piece, RawText, find_pieces, read_piece

PART = 500  # lines, at least, and less than twice as many


class RawJob(NamedTuple):
    """A part to predict: the pipeline's folder and its digest, where the texts are, and the file for predictions."""

    model: Path
    digest: str
    pieces: list[Piece]
    out: Path

    def __str__(self) -> str:
        """Name the first text."""
        return f"{self.pieces[0].file}, from line {self.pieces[0].before + 1} on"


class PartDone(NamedTuple):
    """What a part has: texts, words, and texts that can't be used, by reason."""

    texts: int
    words: int
    problems: Counter[str]


_decode = msgspec.json.Decoder(PartDone, dec_hook=decode_counter).decode


def predict_texts(
    model: Path,
    inputs: Sequence[Path],
    out: Path,
    *,
    workers: int = 1,
    address: str = "",
) -> Iterator[PartDone]:
    """Write predictions for raw texts, in their order; see `evaluate.predictions`. No label is known of any of them.

    inputs (Sequence[Path]): files and folders; see `raw_texts`.
    out (Path): the JSONL file; beside it, while this runs, a folder of parts.
    workers, address: see `parallel.open_workers`.
    YIELDS (PartDone): what was done for each part; the file is there at the end.
    RAISES (InputError): there is no pipeline, an input isn't there, can't be read, or has no text that can be used, or
        a worker was killed.
    """
    check_kind(out, folder=False)
    model, out = model.absolute(), out.absolute()  # a cluster's workers are elsewhere
    hold_pipeline.cache_clear()
    pipeline = digest_folder(model)
    hold_pipeline(model, pipeline)
    parts = beside(out, "parts")
    parts.mkdir(parents=True, exist_ok=True)
    jobs = [
        RawJob(model, pipeline, pieces, parts / f"part-{number:06d}-{_digest(pipeline, pieces)}.jsonl")
        for number, pieces in enumerate(_put_together(find_pieces(inputs, PART)))
    ]
    with (
        staged(out) as whole,
        open_workers(workers, address, out) as map_jobs,
    ):
        texts = 0
        for job, done in zip(jobs, map_jobs(predict_part, jobs), strict=True):
            with whole.open("ab") as written:
                written.write(job.out.read_bytes())
            texts += done.texts
            yield done
        if not texts:
            names = ", ".join(map(printable, inputs))
            raise InputError(f"{names}: no .txt or .jsonl file with a text that can be used; put some there")
    remove(parts)


def _digest(pipeline: str, pieces: list[Piece]) -> str:
    return hashlib.sha256(repr((pipeline, pieces)).encode("utf8", "surrogatepass")).hexdigest()[:16]


def _put_together(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Put pieces together to parts."""
    part: list[Piece] = []
    for piece in pieces:
        part.append(piece)
        if sum(one.lines for one in part) >= PART:
            yield part
            part = []
    if part:
        yield part


def predict_part(job: RawJob) -> PartDone:
    """Write the predictions for a part, and then what it has, unless they are there."""
    file = job.out.with_suffix(".done")
    if file.is_file() and job.out.is_file():
        return _decode(file.read_bytes())
    nlp = hold_pipeline(job.model, job.digest)
    labels = entity_labels(nlp)
    problems: Counter[str] = Counter()
    texts = words = 0
    raws = usable((raw for piece in job.pieces for raw in read_piece(piece)), problems)
    predicted = predict_each(nlp, raws, lambda raw: raw[0], lambda raw: len(raw[0]) // 5)
    with staged(job.out) as path, path.open("wb") as written:
        for (text, name), doc in predicted:
            key = text_key(text.encode("utf8", "surrogatepass")).hex()
            spans = sorted(entities(doc))
            unknown = dict.fromkeys(sorted(labels.union(label for *_, label in spans)), "none")
            found = PredictedDoc(key, text, spans, [], [], uncovered=unknown, doc=name)
            found.found = all_found(doc)
            write_predictions([found], written)
            texts, words = texts + 1, words + len(text.split())
    done = PartDone(texts, words, problems)
    with staged(file) as path:
        path.write_bytes(msgspec.json.encode(done))
    return done


def usable(raws: Iterable[RawText], problems: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts that can be used, each with its name; count the others in `problems`, by reason."""
    for raw in raws:
        if raw.text is None:
            problems[raw.problem.partition(":")[0]] += 1
        else:
            yield raw.text, raw.name


def entity_labels(nlp: Language) -> set[str]:
    """List the labels that a pipeline's components give entities: a recognizer, or rules; some don't say theirs."""
    finders = [name for name in nlp.pipe_names if "doc.ents" in nlp.get_pipe_meta(name).assigns]
    return {label for name in finders for label in nlp.pipe_labels.get(name, ())}
