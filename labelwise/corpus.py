"""Merge data sets into a corpus of partitioned `.spacy` files, in a fixed amount of memory.

1. Index: each data set is read once for the keys of its texts (see `index`).
2. Plan: the range of keys is cut into partitions of about `docs_per_partition` texts. A text's partition follows from
   its key, so it depends neither on the number of workers nor on the order of files.
3. Merge: the partitions are worked on, one by one or side by side (see `partitions`).
4. Account: every row and span read is in one bucket, or the command fails.
5. Commit: what was written to a folder beside the corpus is moved there, `manifest.json` last.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from math import ceil
from pathlib import Path
from typing import IO, Any

import msgspec
from spacy.language import Language

from labelwise.books import Books
from labelwise.datasets import SPLITS, DataSet, all_labels
from labelwise.errors import InputError
from labelwise.index import build_index, count_by_dataset, count_texts, split_index
from labelwise.manifest import MANIFEST, write_manifest
from labelwise.output import move_into, workspace
from labelwise.partitions import Job, load_tokenizer, merge_partition, problem_line
from labelwise.settings import Settings
from labelwise.tokenizer import write_tokenizer

PROBLEMS = "problems.jsonl"
Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


def merge_datasets(
    datasets: list[DataSet],
    out: Path,
    settings: Settings,
    *,
    executor: Executor | None = None,
    progress: Progress = lambda items, name, total: items,
    strict: bool = False,
) -> Books:
    """Merge data sets: write `train`, `dev`, `test`, `labels`, four files of what else there is, and `manifest.json`.

    out (Path): the folder that gets them; nothing else in it is touched.
    executor (Executor | None): where the partitions are worked on; None is this process.
    progress (Progress): wraps the results of each phase, given its name and the number of results to come.
    strict (bool): rows and spans that can't be used are an error.
    RAISES (InputError): an "error" policy met its case, or a file changed meanwhile.
    RAISES (RuntimeError): the books don't balance, which is an error of this program.
    """
    labels = all_labels(datasets)
    # A bad language or pattern is found before anything is read, and forked workers share what is loaded here.
    nlp = load_tokenizer(settings)
    run = executor.map if executor else map
    with workspace(out / "merge") as folder:
        for split in SPLITS:
            (folder / split).mkdir(parents=True)
        paths = [(dataset.name, dataset.path) for dataset in datasets]
        index, unread = build_index(paths, lambda *args: progress(run(*args), "index", len(paths)))
        books = Books.of_index(count_by_dataset(index, [dataset.name for dataset in datasets]), unread, labels)
        parts = max(1, ceil(count_texts(index) / settings.docs_per_partition))
        jobs = [
            Job(number, entries, datasets, labels, settings, folder)
            for number, entries in enumerate(split_index(index, parts))
        ]
        digests = {split: hashlib.sha256() for split in SPLITS}
        with (folder / "conflicts.jsonl").open("wb") as conflicts, (folder / PROBLEMS).open("wb") as problems:
            problems.writelines(map(problem_line, unread))
            for job, part in zip(jobs, progress(run(merge_partition, jobs), "merge", parts), strict=True):
                books.add(part.books)
                for split, keys in part.keys.items():
                    digests[split].update(b"".join(keys))
                _append(job.conflicts, conflicts)
                _append(job.problems, problems)
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
                split: {"texts": books.texts[split], "words": books.words[split], "digest": digests[split].hexdigest()}
                for split in SPLITS
            },
        )
        move_into(folder, out, last=MANIFEST)
    return books


def _first_problem(path: Path, count: int) -> InputError:
    with path.open(encoding="utf8") as lines:
        first = json.loads(next(lines))
    where = f"data set {first['dataset']!r}, line {first['line']}: {first['reason']}"
    return InputError(f"{count} rows or spans can't be used, the first in {where}; mend them, or leave out --strict")


def _append(part: Path, whole: IO[bytes]) -> None:
    """Append a partition's file to the whole, and delete it."""
    with part.open("rb") as file:
        shutil.copyfileobj(file, whole)
    part.unlink()


def _write_labels(nlp: Language, labels: Sequence[str], path: Path) -> None:
    """Write what `spacy.read_labels.v1` reads for the ner component: label counts by action of the parser."""
    path.parent.mkdir()
    ner: Any = nlp.create_pipe("ner")
    path.write_text(json.dumps(ner.moves.get_actions(entity_types=sorted(labels)), indent=1), encoding="utf8")
