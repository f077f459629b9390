"""Let a pipeline predict files of raw texts, a file of predictions for each, so that it can be stopped and begun again.

    texts/a.jsonl.gz     ->  out/a.jsonl.gz.jsonl, and out/a.jsonl.gz.jsonl.done, which says what it was made of
    texts/news/1.txt     ->  out/news/1.txt.jsonl, with some hundred of the .txt files that follow in the folder
    texts/news/2.txt
                             out/predicted.json names the pipeline

A file whose mark says that its inputs are as they were is skipped. Workers read the texts themselves.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise import __version__
from labelwise.base.errors import InputError
from labelwise.base.files import beside, caseless, check_kind, check_replaceable, digest_folder, locked, remove
from labelwise.base.jobs import map_apart
from labelwise.base.parallel import open_workers
from labelwise.evaluate.predict import PART, Done, hold_pipeline, predict_raw
from labelwise.evaluate.predictions import FOLDER_MARK
from labelwise.sources.files import printable
from labelwise.sources.raw_texts import TEXTS, RawFile, find_raw_files, read_raw_file


class Mark(msgspec.Struct):
    """What a file of predictions was made of, and what it has.

    inputs (list): name, size and time of modification of each.
    """

    inputs: list[tuple[str, int, int]]
    texts: int = 0
    words: int = 0
    problems: dict[str, int] = {}


class FileJob(NamedTuple):
    """Files to predict, the name of the file of predictions, the pipeline's folder and its digest."""

    model: Path
    digest: str
    files: list[RawFile]
    name: str

    def __str__(self) -> str:
        """Name the first file."""
        return printable(self.files[0].path)

    def mark(self) -> Mark:
        """Describe the files as they are now."""
        stats = ((file.name, file.path.stat()) for file in self.files)
        return Mark([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])


def predict_files(
    model: Path, inputs: Sequence[Path], out: Path, *, workers: int = 1, gpu_id: int = -1
) -> Iterator[Done]:
    """Write the predictions of a pipeline for files of raw texts to a folder, but for those that it has.

    inputs (Sequence[Path]): files and folders; see `raw_texts`.
    workers, gpu_id (int): see `predict.predict_split`.
    YIELDS (Done): what was done for each file of predictions; at first, for all that were skipped.
    RAISES (InputError): `out` is something else, or of another pipeline; another process writes there; two inputs have
        one name; what `predict.predict_texts` raises.
    """
    check_kind(out, folder=True)
    check_replaceable(out, (FOLDER_MARK,), "folder of predictions")
    model, out, digest = model.absolute(), out.absolute(), digest_folder(model)
    jobs = plan_jobs(model, digest, inputs)
    hold_pipeline(model, digest)
    made = {"pipeline": digest, "labelwise": __version__}
    parts = beside(out, "parts")
    with locked(out):
        out.mkdir(exist_ok=True)
        if not (out / FOLDER_MARK).exists():
            (out / FOLDER_MARK).write_bytes(msgspec.json.encode(made) + b"\n")
        elif msgspec.json.decode((out / FOLDER_MARK).read_bytes()) != made:
            raise InputError(
                f"{out}: its predictions are of another pipeline, or version; write elsewhere, or delete it"
            )
        remove(parts)
        left, skipped = [], Done(0, 0, Counter())
        for job in jobs:
            mark = read_mark(out, job.name)
            if mark and mark.inputs == job.mark().inputs:
                skipped.problems.update(mark.problems)
                skipped = Done(skipped.texts + mark.texts, skipped.words + mark.words, skipped.problems)
            else:
                left.append(job)
        yield skipped
        with open_workers(max(1, workers), out if gpu_id < 0 else None) as map_jobs:
            yield from map_apart(map_jobs, predict_file, left, out, parts)
        remove(parts)


def plan_jobs(model: Path, digest: str, inputs: Sequence[Path]) -> list[FileJob]:
    """Plan the jobs: a file of many texts is one, and some hundred .txt files that follow each other in a folder.

    RAISES (InputError): an input isn't there, two have one name, or there is none.
    """
    jobs: dict[str, FileJob] = {}
    last = FileJob(model, digest, [], "")
    for file in find_raw_files(inputs):
        single = file.name.endswith(TEXTS)
        before = last.files[-1] if last.files else None
        if single and before and len(last.files) < PART and before.path.parent == file.path.parent:
            last.files.append(file)
            continue
        job = FileJob(model, digest, [file], f"{file.name}.jsonl")
        if other := jobs.get(caseless(job.name)):
            raise InputError(f"{file.path} and {other}: both would be predicted to {job.name}; rename one")
        jobs[caseless(job.name)] = job
        if single:
            last = job
    if not jobs:
        raise InputError(f"{', '.join(map(printable, inputs))}: no .txt or .jsonl file; put some there")
    return [*jobs.values()]


def read_mark(out: Path, name: str) -> Mark | None:
    """Read the mark of a file of predictions; None if it isn't finished."""
    mark = out / f"{name}.done"
    if not mark.is_file() or not (out / name).is_file():
        return None
    try:
        return msgspec.json.decode(mark.read_bytes(), type=Mark)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def predict_file(job: FileJob, folder: Path) -> Done:
    """Predict the texts of a job's files.

    folder (Path): for the file of predictions and its mark.
    RAISES (InputError): a file changed in the meantime, or can't be read.
    """
    nlp, file, before = hold_pipeline(job.model, job.digest), folder / job.name, job.mark()
    file.parent.mkdir(parents=True, exist_ok=True)
    done = predict_raw(nlp, chain.from_iterable(map(read_raw_file, job.files)), file)
    if job.mark() != before:
        raise InputError(f"{job}: the file changed while it was read; predict again")
    mark = Mark(before.inputs, done.texts, done.words, dict(done.problems))
    file.with_name(f"{file.name}.done").write_bytes(msgspec.json.encode(mark) + b"\n")
    return done
