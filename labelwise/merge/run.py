"""Merge data sets into a corpus of partitioned `.spacy` files, in a fixed amount of memory.

1. Read: each data set is read once, in slices; what is needed of it goes to the cache, sorted by text (`runs`).
2. Plan: the range of keys is cut into a power of two of partitions of `docs_per_partition` texts or fewer. A text's
   partition follows from its key, so it depends neither on the number of workers nor on the order of files.
3. Merge: the partitions are worked on, one by one or side by side (`partition`).
4. Account: every row and span read has one outcome, or the command fails.
5. Commit: the old manifest is deleted, the files are moved to their places, and the new manifest last.

The cache holds the results of 1 and 3. A later run takes those that were made from the same data, settings and code, so
that it does only new work, and a run that was killed resumes.
"""

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import msgspec

from labelwise.common.errors import InputError
from labelwise.common.files import link, staged_together
from labelwise.common.memory import plan_workers
from labelwise.common.parallel import MapJobs, open_workers
from labelwise.common.progress import Progress, no_progress
from labelwise.corpus.manifest import MANIFEST, SPLITS
from labelwise.corpus.places import PLACES, declared_line
from labelwise.merge.cache import CACHE, forget_unused, open_cache
from labelwise.merge.commit import OUTPUTS, Made, check_ledger, check_out, write_metrics, write_rest
from labelwise.merge.jobs import ReadJob, Source
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
from labelwise.merge.plan import ALONE, PER_WORKER, count_partitions, plan_merging, plan_reading
from labelwise.merge.read_sources import Extract, median_seconds, read_slice
from labelwise.merge.rules.ledger import Ledger, Problem, outcome_of, problem_line
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.runs import Run, run_path
from labelwise.sources.decisions import DecisionRow, find_decisions
from labelwise.sources.declarations import DataSet, all_labels, load_datasets


def merge_data(
    declarations: Sequence[Path | str],
    out: Path | str,
    settings: Settings,
    *,
    workers: int = 1,
    memory: str = "",
    address: str = "",
    decisions: Path | str | None = None,
    metrics: Path | str | None = None,
    strict: bool = False,
    progress: Progress = no_progress,
) -> Ledger:
    """Merge declared data sets, in as many processes as are allowed.

    declarations (Sequence[Path | str]): `datasets.yml` files.
    out (Path | str): the folder for the corpus.
    workers (int): processes; 0 for one per core.
    memory (str): fewer workers if they would take more than this, such as "256MB"; empty for no limit.
    address (str): see `parallel.open_workers`.
    decisions (Path | str | None): the folder of decisions.
    metrics (Path | str | None): the JSON file for the ledger.
    strict (bool): rows and spans that can't be used are an error.
    RAISES (InputError): a declaration, a setting or, with `strict`, a row is wrong.
    """
    out = Path(out).absolute()  # a cluster's workers are elsewhere
    datasets = load_datasets([Path(path).absolute() for path in declarations])
    if workers < 0:
        raise InputError(f"--workers {workers}: give a number of processes, or 0 for one per core")
    workers = workers or os.cpu_count() or 1
    load_tokenizer(settings)  # which all workers share, so that it is there when memory is planned
    workers = plan_workers(memory, workers, ALONE, PER_WORKER)
    with open_workers(workers, address, out) as map_jobs:
        return merge_datasets(
            datasets,
            out,
            settings,
            map_jobs=map_jobs,
            progress=progress,
            strict=strict,
            may_be_empty=False,
            decisions=Path(decisions) if decisions else None,
            metrics=Path(metrics) if metrics else None,
        )


def merge_datasets(
    datasets: Sequence[DataSet],
    out: Path,
    settings: Settings,
    *,
    map_jobs: MapJobs = map,
    progress: Progress = no_progress,
    strict: bool = False,
    may_be_empty: bool = True,
    decisions: Path | None = None,
    metrics: Path | None = None,
) -> Ledger:
    """Merge data sets: write `train`, `dev`, `test`, `labels`, seven files of everything else, and `manifest.json`.

    out (Path): the folder to write them to; nothing else in it is touched, except for the cache.
    map_jobs (Callable): reads sources and merges partitions; see `parallel.open_workers`.
    strict (bool): rows and spans that can't be used are an error.
    may_be_empty (bool): it isn't an error if no text goes into the corpus.
    decisions (Path | None): the folder of decisions.
    metrics (Path | None): the JSON file for the ledger.
    RAISES (InputError): an "error" policy met its case, a file changed meanwhile, another merge is writing to the
        folder, the disk is full.
    RAISES (RuntimeError): the ledger doesn't balance, which is a bug in this program.
    """
    labels = all_labels(datasets)
    # A bad language or pattern is found before anything is read, and forked workers share what is loaded here.
    load_tokenizer(settings)
    sources = [Source(dataset, file) for dataset in datasets for file in dataset.files]
    ledger = Ledger({("labels", label, "gold"): 0 for label in labels})
    ledger.update({("datasets", dataset.name): 0 for dataset in datasets})
    ledger.update({("renamed", _renamed(dataset, old)): 0 for dataset in datasets for old in dataset.rename})
    ledger.update({("inferred", dataset.name): len(dataset.labels) for dataset in datasets if dataset.inferred})

    others = [out / name for name in OUTPUTS if name != MANIFEST]
    folders = [out / name for name in (*SPLITS, "labels")]
    with staged_together(out / MANIFEST, *others, metrics, folders=folders) as (manifest, *_, metrics_file):
        folder = manifest.parent
        check_out(out, sources)
        cache = open_cache(out / CACHE)
        for split in SPLITS:
            (folder / split).mkdir(parents=True)
        decided = _read_decisions(decisions, ledger, folder / PROBLEMS) if decisions else {}
        (folder / PLACES).write_bytes(
            declared_line(
                {dataset.name: dataset.labels for dataset in datasets},
                {dataset.name: dataset.document_url for dataset in datasets},
            )
        )
        jobs = plan_reading(sources, cache, settings)
        extracts = progress(map_jobs(read_slice, jobs), "read", len(jobs))
        runs = _note_extracts(jobs, extracts, sources, ledger, folder)
        forget_unused(cache.tasks, {job.out.name for job in jobs})
        count = count_partitions(runs, settings)

        pairs: list[NearPair] = []
        if settings.near_duplicates != "off":
            partitions = plan_merging(runs, count, sources, labels, settings, cache)
            names = progress(map_jobs(sign_partition, partitions), "compare", count)
            signed = [cache.signatures / name for name in names]
            pairs = find_pairs(signed, settings.near_similarity)
        groups = group_texts(pairs) if settings.near_duplicates == "group" else {}
        homes = {place.key: Home() for pair in pairs for place in (pair.one, pair.other)}
        partitions = plan_merging(runs, count, sources, labels, settings, cache, groups, decided)
        merged = progress(map_jobs(merge_partition, partitions), "merge", count)
        made = _merge(merged, cache.partitions, homes, ledger, folder)
        for made_before in (cache.partitions, cache.signatures):
            forget_unused(made_before, {f"{number:05d}" for number in range(count)})
        write_near_duplicates(pairs, homes, sources, ledger, folder / NEAR_DUPLICATES)
        check_ledger(ledger, folder, strict=strict, may_be_empty=may_be_empty)
        if metrics_file:
            write_metrics(ledger, metrics_file, made.partitions, compared=settings.near_duplicates != "off")
        write_rest(folder, load_tokenizer(settings).nlp, settings, ledger, made)
    return ledger


def _note_extracts(
    jobs: Sequence[ReadJob], extracts: Iterable[Extract], sources: Sequence[Source], ledger: Ledger, folder: Path
) -> list[Run]:
    """Count rows and spans read, note unusable ones, and return the runs."""
    runs: list[Run] = []
    seconds: dict[str, Counter[str]] = {}
    base = 0
    with (folder / PROBLEMS).open("ab") as problems:
        for job, extract in zip(jobs, extracts, strict=True):
            base = base if job.start else 0
            runs += [
                Run(run_path(job.out, number), job.number, base, tasks)
                for number, (tasks, _) in enumerate(extract.runs)
            ]
            _note_extract(extract, job, sources[job.number], base, ledger, problems)
            seconds.setdefault(sources[job.number].dataset.name, Counter()).update(extract.seconds)
            base += extract.lines
    ledger.update({("seconds", name): median_seconds(found) for name, found in seconds.items() if found})
    return runs


def _renamed(dataset: DataSet, old: str) -> str:
    return f"{dataset.name}: {old} to {dataset.rename[old]}"


def _read_decisions(decisions: Path, ledger: Ledger, problems: Path) -> dict[bytes, list[DecisionRow]]:
    """Read the decisions, by the key of their text; enter unusable ones into the ledger, and list them."""
    found: dict[bytes, list[DecisionRow]] = {}
    with problems.open("ab") as lines:
        for row in find_decisions(decisions):
            if row.decision:
                found.setdefault(bytes.fromhex(row.decision.text), []).append(row)
            else:
                ledger["rows_read",] += 1
                ledger["rows", outcome_of(row.problem)] += 1
                lines.write(problem_line(Problem("", row.file, row.line, row.problem)))
    return found


def _note_extract(
    extract: Extract, job: ReadJob, source: Source, base: int, ledger: Ledger, problems: IO[bytes]
) -> None:
    """Enter what was read into the ledger, and list unusable rows and spans, with data set, file and line."""
    rows = extract.tasks + extract.rows.total()
    ledger["rows_read",] += rows
    ledger["datasets", source.dataset.name] += rows
    ledger["spans_read",] += extract.spans_read + extract.spans.total()
    ledger.update({("rows", outcome): n for outcome, n in extract.rows.items()})
    ledger.update({("spans", outcome): n for outcome, n in extract.spans.items()})
    ledger.update({("renamed", _renamed(source.dataset, old)): spans for old, spans in extract.renamed.items()})
    with job.out.with_suffix(".problems").open("rb") as lines:
        for line in lines:
            problem = Problem(**msgspec.json.decode(line))
            file = problem.file or source.path.name
            problems.write(problem_line(Problem(source.dataset.name, file, base + problem.line, problem.reason)))


def _merge(merged: Iterable[None], results: Path, homes: dict[bytes, Home], ledger: Ledger, folder: Path) -> Made:
    """Put the partitions together.

    merged (Iterable[None]): merges the next one.
    results (Path): the folder that has one for each partition, in which its result is.
    homes (dict[bytes, Home]): the split and the document of each text whose key it has are put into it.
    """
    digests = {split: hashlib.sha256() for split in SPLITS}
    partitions: dict[str, str] = {}
    with ExitStack() as stack:
        whole = {name: stack.enter_context((folder / name).open("ab")) for name in LINES}
        for number, _ in enumerate(merged):
            own = results / f"{number:05d}"
            result = read_result(own)
            ledger.update(dict(result.counts))
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
    return Made({split: digest.hexdigest() for split, digest in digests.items()}, partitions)


def _append(file: Path, whole: IO[bytes]) -> None:
    """Append a partition's file to the whole."""
    with file.open("rb") as content:
        shutil.copyfileobj(content, whole)
