"""Predict files of raw texts, with a file of predictions for each; predicting can be resumed.

    texts/a.jsonl.gz     ->  out/a.jsonl.gz.jsonl, and out/a.jsonl.gz.jsonl.done, which says what it was made of
    texts/news/1.txt     ->  out/news/1.txt.jsonl, with some hundred of the .txt files that follow in the folder
    texts/news/2.txt
                             out/predicted.json names the pipeline

Files with unchanged inputs, according to their mark, are skipped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise import __version__
from labelwise.base.device import use_gpu
from labelwise.base.errors import InputError
from labelwise.base.files import caseless, check_kind, check_replaceable, digest_folder, locked, remove, sibling
from labelwise.base.jobs import map_apart
from labelwise.base.parallel import check_workers, open_workers
from labelwise.evaluate.predict import PART, Done, check_outside, hold_pipeline, predict_raw
from labelwise.evaluate.predictions import FOLDER_MARK
from labelwise.sources.files import SourceFile, printable
from labelwise.sources.raw_texts import TEXTS, find_raw_files, read_raw_file


class Mark(msgspec.Struct):
    """Inputs of a file of predictions, as name, size and modification time, and counts of their texts."""

    inputs: list[tuple[str, int, int]]
    texts: int = 0
    words: int = 0
    problems: dict[str, int] = {}


class FileJob(NamedTuple):
    """Files to predict, and the name of the file of predictions."""

    files: list[SourceFile]
    name: str

    def __str__(self) -> str:
        return printable(self.files[0].path)

    def mark(self) -> Mark:
        """Describe the files as they are now."""
        stats = ((file.name, file.path.stat()) for file in self.files)
        return Mark([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])

    def finished(self, out: Path) -> Mark | None:
        """Read the mark of its predictions in a folder; None if they are unfinished, or the files have changed."""
        mark = read_mark(out / f"{self.name}.done")
        return mark if mark and mark.inputs == self.mark().inputs and (out / self.name).is_file() else None


def read_mark(path: Path) -> Mark | None:
    """Read a mark; None if it is missing or unreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Mark)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def predict_files(
    model: Path, inputs: Sequence[Path], out: Path, *, workers: int = 1, gpu_id: int = -1
) -> Iterator[Done]:
    """Predict files of raw texts to a folder, skipping finished files.

    YIELDS (Done): totals of skipped files, then counts of each file of predictions.
    RAISES (InputError): if `out` has other content, another pipeline's predictions or another writer, two inputs have
        one name, or `predict.predict_texts` fails.
    """
    check_kind(out, folder=True)
    check_replaceable(out, (FOLDER_MARK,), "folder of predictions")
    check_outside(inputs, out)
    check_workers(workers, gpu_id)
    use_gpu(gpu_id)
    model, out, digest = model.absolute(), out.absolute(), digest_folder(model)
    jobs = plan_jobs(inputs)
    hold_pipeline(model, digest)
    mark_of_pipeline, parts = made_by(digest), sibling(out, "parts")
    with locked(out):
        out.mkdir(exist_ok=True)
        if not (out / FOLDER_MARK).exists():
            (out / FOLDER_MARK).write_bytes(msgspec.json.encode(mark_of_pipeline) + b"\n")
        elif msgspec.json.decode((out / FOLDER_MARK).read_bytes()) != mark_of_pipeline:
            raise InputError(
                f"{out}: its predictions are of another pipeline, or version; write elsewhere, or delete it"
            )
        remove(parts)
        remove_regrouped(out, jobs)
        finished = {job.name: mark for job in jobs if (mark := job.finished(out))}
        marks = finished.values()
        problems = sum((Counter(mark.problems) for mark in marks), Counter[str]())
        yield Done(sum(mark.texts for mark in marks), sum(mark.words for mark in marks), problems)
        unfinished = [job for job in jobs if job.name not in finished]
        with open_workers(workers, out if gpu_id < 0 else None) as map_jobs:
            yield from map_apart(map_jobs, partial(predict_file, model, digest), unfinished, out, parts)
        remove(parts)


def made_by(digest: str) -> dict[str, str]:
    """Return the mark of a folder of predictions."""
    return {"pipeline": digest, "labelwise": __version__}


def plan_jobs(inputs: Sequence[Path]) -> list[FileJob]:
    """Plan the jobs: one per file of many texts, and one per some hundred .txt files of a folder.

    RAISES (InputError): if an input is missing, two have the same name, or there is none.
    """
    jobs, by_name, last = list[FileJob](), dict[str, Path](), list[SourceFile]()  # files of the last job of .txt files
    for file in find_raw_files(inputs):
        if other := by_name.get(caseless(file.name)):
            raise InputError(f"{file.path} and {other}: both would have the name {file.name} in the output; rename one")
        by_name[caseless(file.name)] = file.path
        single = file.name.endswith(TEXTS)
        if single and last and len(last) < PART and last[-1].path.parent == file.path.parent:
            last.append(file)
            continue
        jobs.append(FileJob([file], f"{file.name}.jsonl"))
        last = jobs[-1].files if single else last
    if not jobs:
        raise InputError(f"{', '.join(map(printable, inputs))}: no .txt or .jsonl file; put some there")
    return jobs


def remove_regrouped(out: Path, jobs: Iterable[FileJob]) -> None:
    """Remove files of predictions with a text of another job, for example after new .txt files."""
    job_of = {file.name: job.name for job in jobs for file in job.files}
    for path in sorted(out.rglob("*.jsonl.done")):
        name, mark = path.relative_to(out).as_posix().removesuffix(".done"), read_mark(path)
        if mark and any(job_of.get(text, name) != name for text, *_ in mark.inputs):
            path.unlink()
            path.with_suffix("").unlink(missing_ok=True)


def predict_file(model: Path, digest: str, job: FileJob, folder: Path) -> Done:
    """Predict the texts of a job's files; write predictions and mark to a folder.

    RAISES (InputError): if a file changed meanwhile, or can't be read.
    """
    nlp, file, before = hold_pipeline(model, digest), folder / job.name, job.mark()
    file.parent.mkdir(parents=True, exist_ok=True)
    done = predict_raw(nlp, chain.from_iterable(map(read_raw_file, job.files)), file)
    if job.mark() != before:
        raise InputError(f"{job}: the file changed while it was read; predict again")
    mark = Mark(before.inputs, done.texts, done.words, dict(done.problems))
    file.with_name(f"{file.name}.done").write_bytes(msgspec.json.encode(mark) + b"\n")
    return done
