"""Merge data sets into a corpus of partitioned `.spacy` files, in a fixed amount of memory.

1. Read: each data set is read once; what is needed of it goes to the cache, sorted by text (`read`, `runs`).
2. Plan: the range of keys is cut into a power of two of partitions of `docs_per_partition` texts or fewer. A text's
   partition follows from its key, so it depends neither on the number of workers nor on the order of files.
3. Merge: the partitions are worked on, one by one or side by side (`partition`).
4. Account: every row and span read has one outcome, or the command fails.
5. Commit: the old manifest is deleted, the files are moved to their places, and the new manifest last.

The cache holds the results of 1 and 3. A later run takes those that were made from the same data, settings and code, so
that it does only new work, and a run that was killed resumes.
"""

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from labelwise.base.errors import InputError
from labelwise.base.files import atomic_together, link
from labelwise.base.parallel import MapJobs, Progress, count_cores, give_back, no_progress, open_workers
from labelwise.corpus.ledger import Ledger, Problem, outcome_of, problem_line
from labelwise.corpus.manifest import MANIFEST, SPLITS
from labelwise.datasets.decisions import DecisionRow, find_decisions
from labelwise.datasets.declarations import DataSet, all_labels, load_datasets
from labelwise.merge.cache import CACHE, Cache, forget_unused, open_cache
from labelwise.merge.commit import OUTPUTS, check_ledger, check_out, write_metrics, write_rest
from labelwise.merge.near_duplicates import (
    NEAR_DUPLICATES,
    Home,
    NearPair,
    find_pairs,
    group_texts,
    sign_partition,
    write_near_duplicates,
)
from labelwise.merge.partition import LINES, PROBLEMS, merge_partition, read_result
from labelwise.merge.plan import count_partitions, plan_merging
from labelwise.merge.read import collect_extracts, plan_reading, read_source
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.runs import Run, Source


def merge_data(
    declarations: Sequence[Path | str],
    out: Path | str,
    settings: Settings,
    *,
    workers: int = 1,
    decisions: Path | str | None = None,
    metrics: Path | str | None = None,
    strict: bool = False,
    may_be_empty: bool = False,
    progress: Progress = no_progress,
) -> Ledger:
    """Merge declared data sets: write `train`, `dev`, `test`, `labels`, seven files more, and `manifest.json`.

    declarations (Sequence[Path | str]): `datasets.yml` files.
    out (Path | str): the folder for the corpus; nothing else in it is touched, except for the cache.
    workers (int): processes that read sources and merge partitions; 0 for one per core that this process may use.
    decisions (Path | str | None): the folder of decisions.
    metrics (Path | str | None): the JSON file for the ledger.
    strict (bool): rows and spans that can't be used are an error.
    may_be_empty (bool): it isn't an error if no text goes into the corpus.
    RAISES (InputError): a declaration, a setting or, with `strict`, a row is wrong; an "error" policy met its case; a
        file changed meanwhile, another merge is writing to the folder, or the disk is full.
    RAISES (RuntimeError): the ledger doesn't balance, which is a bug in this program.
    """
    datasets = load_datasets([Path(path).absolute() for path in declarations])
    if workers < 0:
        raise InputError(f"--workers {workers}: give a number of processes, or 0 for one per core")
    out, metrics = Path(out).absolute(), Path(metrics) if metrics else None
    # A bad language or pattern is found before anything is read, and forked workers share what is loaded here. Nothing
    # else refers to it, as a worker lets go of it when it has seen many words.
    load_tokenizer(settings)
    files = [(dataset, file) for dataset in datasets for file in dataset.files]
    sources = [Source(number, dataset, *file) for number, (dataset, file) in enumerate(files)]
    ledger = open_ledger(datasets, settings)
    others = [out / name for name in OUTPUTS if name != MANIFEST]
    folders = [out / name for name in (*SPLITS, "labels")]
    with (
        open_workers(workers or count_cores()) as map_jobs,
        atomic_together(out / MANIFEST, *others, metrics, folders=folders) as (manifest, *_, metrics_file),
    ):
        folder = manifest.parent
        check_out(out, sources)
        cache = open_cache(out / CACHE)
        for split in SPLITS:
            (folder / split).mkdir(parents=True)
        with (folder / PROBLEMS).open("wb") as problems:
            decided = read_decisions(Path(decisions), ledger, problems) if decisions else {}
            jobs = plan_reading(sources, cache.tasks, settings)
            extracts = progress(map_jobs(read_source, jobs), "read", len(jobs))
            runs = collect_extracts(jobs, extracts, settings, ledger, problems)
        forget_unused(cache.tasks, {job.out.name for job in jobs})

        count = count_partitions(runs, settings)
        labels = list(ledger.labels)
        pairs = compare_texts(runs, count, labels, settings, cache, map_jobs, progress) if ledger.compared else []
        groups = group_texts(pairs) if settings.near_duplicates == "group" else {}
        homes = {text.key: Home() for pair in pairs for text in (pair.one, pair.other)}
        work = plan_merging(runs, count, labels, settings, cache.partitions, groups, decided)
        merged = progress(map_jobs(merge_partition, work), "merge", count)
        keys, partitions = gather(merged, cache.partitions, homes, ledger, folder)
        for kept in (cache.partitions, cache.signatures):
            forget_unused(kept, {f"{number:05d}" for number in range(count)})
        write_near_duplicates(pairs, homes, sources, ledger, folder / NEAR_DUPLICATES)
        check_ledger(ledger, folder, strict=strict, may_be_empty=may_be_empty)
        if metrics_file:
            write_metrics(ledger, metrics_file, partitions)
        write_rest(folder, datasets, load_tokenizer(settings).nlp, settings, ledger, keys, partitions)
    return ledger


def open_ledger(datasets: Sequence[DataSet], settings: Settings) -> Ledger:
    """Begin a ledger with all that is counted even if there is none of it."""
    ledger = Ledger(compared=settings.near_duplicates != "off")
    for label in all_labels(datasets):
        ledger.labels[label].clear()
    for dataset in datasets:
        ledger.datasets[dataset.name] = 0
        ledger.renamed.update({f"{dataset.name}: {old} to {new}": 0 for old, new in dataset.rename.items()})
    return ledger


def read_decisions(decisions: Path, ledger: Ledger, problems: IO[bytes]) -> dict[bytes, list[DecisionRow]]:
    """Read the decisions, by the key of their text; count and list unusable ones."""
    found: dict[bytes, list[DecisionRow]] = {}
    for row in find_decisions(decisions):
        if row.decision:
            found.setdefault(bytes.fromhex(row.decision.text), []).append(row)
        else:
            ledger.rows_read += 1
            ledger.rows[outcome_of(row.problem)] += 1
            problems.write(problem_line(Problem("", row.file, row.line, row.problem)))
    return found


def compare_texts(
    runs: Sequence[Run],
    count: int,
    labels: list[str],
    settings: Settings,
    cache: Cache,
    map_jobs: MapJobs,
    progress: Progress,
) -> list[NearPair]:
    """Find the pairs of texts that are nearly equal, partition by partition; `count` is the number of these."""
    work = plan_merging(runs, count, labels, settings, cache.partitions)
    signed = [cache.signatures / name for name in progress(map_jobs(sign_partition, work), "compare", count)]
    pairs = find_pairs(signed, settings.near_similarity)
    give_back()
    return pairs


def gather(
    merged: Iterable[None], results: Path, homes: dict[bytes, Home], ledger: Ledger, folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Put the partitions together.

    merged (Iterable[None]): merges the next one.
    results (Path): the folder that has one for each partition, in which its result is.
    homes (dict[bytes, Home]): the split and the document of each text whose key it has are put into it.
    RETURNS (tuple): a digest of the keys of each split, and one of each `.spacy` file.
    """
    digests = {split: hashlib.sha256() for split in SPLITS}
    partitions: dict[str, str] = {}
    with ExitStack() as stack:
        whole = {name: stack.enter_context((folder / name).open("ab")) for name in LINES}
        for number, _ in enumerate(merged):
            own = results / f"{number:05d}"
            result = read_result(own)
            ledger.add(result.ledger)
            for split in SPLITS:
                digests[split].update(b"".join(result.keys[split]))
                homes.update(
                    (key, Home(split, result.names.get(key, ""))) for key in result.keys[split] if key in homes
                )
                if digest := result.files.get(f"{split}.spacy"):
                    name = f"{split}/part-{number:05d}.spacy"
                    link(own / f"{split}.spacy", folder / name)
                    partitions[name] = digest
            for name, file in whole.items():
                _append(own / name, file)
    return {split: digest.hexdigest() for split, digest in digests.items()}, partitions


def _append(file: Path, whole: IO[bytes]) -> None:
    """Append a partition's file to the whole."""
    with file.open("rb") as content:
        shutil.copyfileobj(content, whole)
