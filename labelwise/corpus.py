"""Merge data sets into a corpus of partitioned `.spacy` files, in a fixed amount of memory.

1. Read: each data set is read once, in parts; what is needed of it goes to the cache, sorted by text (see `chunks`).
2. Plan: the range of keys is cut into a power of two of partitions of `docs_per_partition` texts or fewer. A text's
   partition follows from its key, so it depends neither on the number of workers nor on the order of files.
3. Merge: the partitions are worked on, one by one or side by side (see `partitions`).
4. Account: every row and span read is in one bucket, or the command fails.
5. Commit: what was put together in a folder beside the corpus is moved there, `manifest.json` last.

The cache, the folder `.cache` in the corpus, holds what 1 and 3 made. A later run takes from there what follows from
the same data, settings and code, so that it does only what is new, and one that was killed goes on where it was.
"""

import hashlib
import json
import platform
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import spacy
from spacy.language import Language

from labelwise.books import PROBLEM_ROWS, PROBLEM_SPANS, Books, Problem, bucket_of, problem_line
from labelwise.buckets import load_tokenizer
from labelwise.chunks import Extract, ReadJob, chunk_path, read_part
from labelwise.datasets import SPLITS, DataSet, all_labels
from labelwise.engines import run_in_order
from labelwise.errors import InputError
from labelwise.jobs import Job, Source
from labelwise.keys import split_keys
from labelwise.manifest import MANIFEST, write_manifest
from labelwise.near_duplicates import (
    Pair,
    find_pairs,
    group_texts,
    sign_partition,
    signature_file,
    write_near_duplicates,
)
from labelwise.output import full_disk_named, link, locked, move_into, remove, workspace
from labelwise.partitions import CONFLICTS, PROBLEMS, merge_partition
from labelwise.plan import Chunk, count_partitions, plan_merging, plan_reading
from labelwise.settings import Settings
from labelwise.tokenizer import write_tokenizer

AnyJob = TypeVar("AnyJob", ReadJob, Job)
Result = TypeVar("Result")
CACHE = ".cache"
NEAR_DUPLICATES = "near_duplicates.jsonl"
# Shows a phase's progress, given its name and the bytes to come: yields what takes the bytes and rows that are done.
Progress = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]


def no_progress(name: str, total: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show nothing."""
    return nullcontext(lambda done, rows: None)


def merge_datasets(
    datasets: Sequence[DataSet],
    out: Path,
    settings: Settings,
    *,
    executor: Executor | None = None,
    ahead: int = 4,
    progress: Progress = no_progress,
    strict: bool = False,
    may_be_empty: bool = True,
) -> Books:
    """Merge data sets: write `train`, `dev`, `test`, `labels`, four files of what else there is, and `manifest.json`.

    out (Path): the folder that gets them; nothing else in it is touched, but for the cache.
    executor (Executor | None): where sources are read and partitions merged; None is this process.
    ahead (int): the most jobs that the executor has at a time.
    strict (bool): rows and spans that can't be used are an error.
    may_be_empty (bool): it isn't an error if no text gets into the corpus.
    RAISES (InputError): an "error" policy met its case, a file changed meanwhile, another merge writes to the folder,
        the disk is full.
    RAISES (RuntimeError): the books don't balance, which is an error of this program.
    """
    labels = all_labels(datasets)
    # A bad language or pattern is found before anything is read, and forked workers share what is loaded here.
    nlp = load_tokenizer(settings).nlp
    sources = [Source(dataset, file) for dataset in datasets for file in dataset.files]
    books = Books(labels={label: Counter() for label in labels})
    books.datasets.update(dict.fromkeys((dataset.name for dataset in datasets), 0))
    run = Runner(executor, ahead, progress)
    with full_disk_named(out), locked(out / CACHE / "lock"), workspace(out / "merge") as folder:
        _check_out(out, sources)
        cache = _open_cache(out / CACHE)
        for split in SPLITS:
            (folder / split).mkdir(parents=True)
        (folder / PROBLEMS).touch()
        chunks = _read(run, sources, settings, cache, books, folder)
        total = sum(chunk.size for chunk in chunks)
        count = count_partitions(chunks, settings)
        plan = partial(plan_merging, chunks, count, sources, labels, settings, cache)
        pairs = [] if settings.near_duplicates == "off" else _compare(run, plan(), total, settings)
        groups = group_texts(pairs) if settings.near_duplicates == "group" else {}
        splits = {place.key: "" for pair in pairs for place in (pair.one, pair.other)}
        made = _merge(run, plan(groups), total, splits, books, folder)
        for name in ("parts", "signatures"):
            _forget(cache / name, {f"{number:05d}" for number in range(count)})
        if not may_be_empty and not any(books.texts[split] for split in SPLITS):
            rows = ", ".join(f"{n:,} {reason}" for reason, n in books.sorted().rows.items()) or "none"
            raise InputError(f"no text would be in the corpus; what became of the rows: {rows}")
        write_near_duplicates(pairs, splits, sources, books, folder / NEAR_DUPLICATES)
        books.check()
        if strict and books.problems():
            raise _first_problem(folder / PROBLEMS, books.problems())
        write_tokenizer(folder / "tokenizer.json", settings.lang, settings.tokenizer)
        _write_labels(nlp, labels, folder / "labels" / "ner.json")
        write_manifest(
            folder,
            settings=msgspec.to_builtins(settings),
            labels=labels,
            datasets=books.datasets,
            splits={
                split: {"texts": books.texts[split], "words": books.words[split], "digest": made.keys[split]}
                for split in SPLITS
            },
            partitions=made.partitions,
        )
        move_into(folder, out, last=MANIFEST)
    return books


class Runner(NamedTuple):
    """Runs the jobs of a phase, and shows how far it is."""

    executor: Executor | None
    ahead: int
    progress: Progress

    def run(
        self, phase: str, function: Callable[[AnyJob], Result], jobs: Iterable[AnyJob], total: int
    ) -> Iterator[tuple[AnyJob, Result]]:
        """Yield each job with its result, in order; `total` is the sum of the jobs' `size`, in bytes."""
        with self.progress(phase, total) as advance:
            for job, result in run_in_order(self.executor, function, jobs, ahead=self.ahead):
                yield job, result
                advance(job.size, job.tasks if isinstance(job, Job) else getattr(result, "tasks", 0))


class Made(NamedTuple):
    """What partitions gave: a digest of all keys of each split, and one of each `.spacy` file."""

    keys: dict[str, str]
    partitions: dict[str, str]


def _read(
    run: Runner, sources: Sequence[Source], settings: Settings, cache: Path, books: Books, folder: Path
) -> list[Chunk]:
    """Read all sources to chunks, and note what can't be used."""
    jobs = plan_reading(sources, cache, settings)
    chunks: list[Chunk] = []
    base = 0
    with (folder / PROBLEMS).open("ab") as problems:
        for job, extract in run.run("read", read_part, jobs, sum(job.size for job in jobs)):
            base = base if job.start else 0
            chunks += [
                Chunk(chunk_path(job.out, number), job.number, base, tasks, size)
                for number, (tasks, size) in enumerate(extract.chunks)
            ]
            _note_extract(extract, job, sources[job.number], base, books, problems)
            base += extract.lines
    _forget(cache / "chunks", {job.out.name for job in jobs})
    return chunks


def _compare(run: Runner, jobs: Iterable[Job], total: int, settings: Settings) -> list[Pair]:
    """Find the pairs of texts that are nearly equal."""
    files = [signature_file(job) for job, _ in run.run("compare", sign_partition, jobs, total)]
    return find_pairs(files, settings.near_similarity)


def _merge(run: Runner, jobs: Iterable[Job], total: int, splits: dict[bytes, str], books: Books, folder: Path) -> Made:
    """Make the partitions and put them together.

    splits (dict[bytes, str]): gets the split of each text whose key it has.
    """
    digests = {split: hashlib.sha256() for split in SPLITS}
    partitions: dict[str, str] = {}
    with (folder / CONFLICTS).open("wb") as conflicts, (folder / PROBLEMS).open("ab") as problems:
        for job, part in run.run("merge", merge_partition, jobs, total):
            books.add(part.books)
            for split in SPLITS:
                digests[split].update(part.keys[split])
                splits.update((key, split) for key in split_keys(part.keys[split]) if key in splits)
                if digest := part.files.get(f"{split}.spacy"):
                    name = f"{split}/part-{job.number:05d}.spacy"
                    link(job.folder / f"{split}.spacy", folder / name)
                    partitions[name] = digest
            _append(job.folder / CONFLICTS, conflicts)
            _append(job.folder / PROBLEMS, problems)
    return Made({split: digest.hexdigest() for split, digest in digests.items()}, partitions)


def _check_out(out: Path, sources: Sequence[Source]) -> None:
    """Check that what is to be replaced comes from a merge, and isn't read by this one.

    RAISES (InputError): it is not so.
    """
    folder = out.resolve()
    for source in sources:
        replaced = any(source.path.is_relative_to(folder / name) for name in (*SPLITS, "labels"))
        if replaced or folder.is_relative_to(source.path):
            raise InputError(
                f"data set {source.dataset.name!r}: {source.path} is read, so {out} can't be written there"
            )
    for name, ours in [*((split, "part-*.spacy") for split in SPLITS), ("labels", "ner.json")]:
        other = [file for file in (out / name).glob("*") if not file.match(ours)]
        if other:
            raise InputError(f"{out}: it has {other[0].relative_to(out)}, which no merge made; choose another folder")


def _open_cache(folder: Path) -> Path:
    """Make the part of the cache that this code may use; what other code left is deleted."""
    cache = folder / code_digest()
    for other in folder.iterdir():
        if other.is_dir() and other != cache:
            remove(other)
    for name in ("chunks", "parts", "signatures"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    return cache


def code_digest() -> str:
    """Digest the code that the results follow from: this package, and the versions of those that they depend on."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    for version in (spacy.__version__, np.__version__, msgspec.__version__, platform.python_version()):
        digest.update(version.encode())
    return digest.hexdigest()


def _note_extract(extract: Extract, job: ReadJob, source: Source, base: int, books: Books, problems: IO[bytes]) -> None:
    """Enter what couldn't be used into the books, and list it, with its data set, its file and its line in that."""
    books.rows_read += extract.rows.total()
    books.rows.update(extract.rows)
    books.datasets[source.dataset.name] += extract.rows.total()
    books.spans_read += extract.spans.total()
    books.spans.update(extract.spans)
    with job.out.with_suffix(".problems").open("rb") as lines:
        for line in lines:
            problem = Problem(**msgspec.json.decode(line))
            file = problem.file or source.path.name
            problems.write(problem_line(Problem(source.dataset.name, file, base + problem.line, problem.reason)))


def _forget(folder: Path, used: set[str]) -> None:
    """Delete from the cache what this merge didn't use."""
    for item in folder.iterdir():
        if re.split(r"[-.]", item.name)[0] not in used:
            remove(item)


def _first_problem(path: Path, count: int) -> InputError:
    with path.open(encoding="utf8") as lines:
        problems = map(json.loads, lines)
        first = next(found for found in problems if bucket_of(found["reason"]) in (*PROBLEM_ROWS, *PROBLEM_SPANS))
    where = f"data set {first['dataset']!r}, {first['file']}, line {first['line']}: {first['reason']}"
    return InputError(f"{count} rows or spans can't be used, the first in {where}; mend them, or leave out --strict")


def _append(part: Path, whole: IO[bytes]) -> None:
    """Append a partition's file to the whole."""
    with part.open("rb") as file:
        shutil.copyfileobj(file, whole)


def _write_labels(nlp: Language, labels: Sequence[str], path: Path) -> None:
    """Write what `spacy.read_labels.v1` reads for the ner component: label counts by action of the parser."""
    path.parent.mkdir()
    ner: Any = nlp.create_pipe("ner")
    path.write_text(json.dumps(ner.moves.get_actions(entity_types=sorted(labels)), indent=1), encoding="utf8")
