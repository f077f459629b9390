"""Merge datasets into a corpus of partitioned `.spacy` files, in bounded memory.

1. Read: each dataset is read once into buckets by the keys of texts (`read`, `buckets`). Texts that differ only in
   white space or Unicode composition get one key (`same_texts`).
2. Plan: the keys are cut into partitions, a power of two, of `docs_per_partition` texts or fewer. A text's partition
   follows from its key, whatever the number of workers and the order of files.
3. Merge: each job merges a range of keys (`partition`).
4. Account: each row and span has one outcome in the tables (`corpus.tables`), or the command fails.
5. Commit: the old manifest is deleted, the files are moved into place, and the new manifest comes last.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.jobs import DoJobs, map_in_place
from labelwise.base.parallel import Progress, count_cores, no_progress, open_workers, trim_heap
from labelwise.corpus.ledger import DIGEST, Ledger
from labelwise.corpus.manifest import MANIFEST, SPLITS
from labelwise.datasets.decisions import DecisionRow, find_decisions
from labelwise.datasets.declarations import all_labels, load_datasets
from labelwise.merge.account import AccountWriter, add_problem
from labelwise.merge.buckets import Buckets, count_bits, range_of, written_texts
from labelwise.merge.near_duplicates import (
    GROUPED,
    PAIR,
    NearPair,
    Rows,
    find_pairs,
    group_texts,
    read_splits,
    sign_range,
)
from labelwise.merge.outputs import FOLDERS, OUTPUTS, check_out
from labelwise.merge.partition import MergeJob, merge_range
from labelwise.merge.parts import Parts, PartsJob, compare_lengths, search_parts, write_parts
from labelwise.merge.read import ReadCounts, ReadJob, Source, read_source
from labelwise.merge.readings import Trials
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.rules.splits import SplitGroup
from labelwise.merge.same_texts import join_texts
from labelwise.sources.brat import READ_SUFFIXES
from labelwise.sources.files import stat_of

TEXT_BYTES = 2**22  # in a partition, on average; a worker holds it


def merge_data(
    declarations: Sequence[Path | str] | Path,
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
    """Merge declared datasets: write `train`, `dev`, `test`, `labels`, six more files, and `manifest.json`.

    out (Path | str): folder for the corpus; other files in it stay.
    workers (int): processes; 0 for one per usable core.
    metrics (Path | str | None): JSON file for the counts; the corpus's digest is written beside it.
    strict (bool): refuse unusable rows and spans.
    RAISES (InputError): if a declaration, a setting or, with `strict`, a row is wrong, a file changed meanwhile,
        another merge writes to the folder, or the disk is full.
    RAISES (RuntimeError): if the counts don't balance, a bug.
    """
    declarations = [declarations] if isinstance(declarations, Path | str) else declarations
    datasets = load_datasets([Path(path).absolute() for path in declarations])
    if workers < 0:
        raise InputError(f"--workers {workers}: give a number of processes, or 0 for one per core")
    out, metrics = Path(out).absolute(), Path(metrics) if metrics else None
    # A bad language or pattern is found before anything is read, and forked workers share the tokenizer. No reference
    # is kept, so a worker can free it after many words.
    load_tokenizer(settings)
    files = [(dataset, file) for dataset in datasets for file in dataset.files]
    sources = [Source(number, dataset, file) for number, (dataset, file) in enumerate(files)]
    others = [*(out / name for name in OUTPUTS if name != MANIFEST), metrics, metrics and metrics.with_suffix(DIGEST)]
    with atomic(out / MANIFEST, *others, folders=[out / name for name in FOLDERS]) as (manifest, *_, counts, digest):
        check_out(out, sources)
        corpus = manifest.parent
        work = corpus / "work"
        with open_workers(workers or count_cores(), corpus) as map_jobs:

            def do(function: Callable[[Any, Path], Any], jobs: Sequence[Any], name: str) -> list[Any]:
                return list(progress(map_in_place(map_jobs, function, jobs, work), name, len(jobs)))

            read, buckets = read_sources(sources, work, settings, do)
            size = join_texts(buckets, sum(one.tasks for one in read), do)
            decided = gather_decisions(Path(decisions) if decisions else None, work / "decisions", buckets)
            sources = complete_unanswered(sources, read)
            plan = plan_merging(sources, buckets, size, all_labels(datasets), settings)
            pairs = compare_texts(plan, settings, work, do)
            parts = find_parts(plan, compare_lengths(sources, read), work, do)
            joined = np.concatenate([np.empty(0, PAIR), *parts.values()])
            groups = group_texts(pairs, joined) if settings.near_duplicates == "group" else np.empty(0, GROUPED)
            jobs = give_each(plan, groups, decided)
            merged = list(progress(map_in_place(map_jobs, merge_range, jobs, work), "merge", len(plan)))

        trim_heap()
        # These import pyarrow, 40 MB that workers don't need.
        from labelwise.merge.balance import check_balance
        from labelwise.merge.check_kinds import Merged
        from labelwise.merge.checks import find_checks
        from labelwise.merge.commit import check_account, write_account, write_metrics, write_pairs, write_rest

        for split in SPLITS:
            (work / split).mkdir(exist_ok=True)
            (work / split).rename(corpus / split)
        partitions = {name: digest for result in merged for name, digest in result.partitions.items()}
        part_names = [f"account-{job.number}" for job in plan] + [f"read-{source.number}" for source in sources]
        part_names += ["decisions", *(f"rest-{job.number}" for job in plan)]
        account = write_account([work / name for name in part_names], corpus, datasets)
        check_balance(account.sources, corpus, sources, read, buckets)
        ledger = account.ledger
        ledger.near_duplicates = write_pairs(pairs, corpus, sources)
        trials: Trials = sum((result.trials for result in merged), Counter())
        ledger.checks = find_checks(Merged(corpus, datasets, settings, ledger, account.figures, trials, parts))
        stopped = any(check.stops for check in ledger.checks)
        check_account(ledger, corpus, strict=strict, may_be_empty=may_be_empty or stopped)
        nlp = load_tokenizer(settings).nlp
        write_rest(corpus, datasets, nlp, settings, ledger, account.keys, partitions)
        if metrics:
            write_metrics(counts, digest, ledger, partitions)
    return ledger


def read_sources(
    sources: Sequence[Source], work: Path, settings: Settings, do: DoJobs
) -> tuple[list[ReadCounts], Buckets]:
    """Read all sources into buckets; return their counts, and the buckets."""
    stats = [stat_of(source.file.path, READ_SUFFIXES) for source in sources]
    bits = count_bits(sum(size for stat in stats for _, _, size, *_ in stat), len(sources))
    written_texts.cache_clear()  # an earlier merge of this process may have written to a folder of the same name
    jobs = [ReadJob(source, stat, bits, settings.kept_meta) for source, stat in zip(sources, stats, strict=True)]
    return do(read_source, jobs, "read"), Buckets(work, bits)


def complete_unanswered(sources: Sequence[Source], read: Sequence[ReadCounts]) -> list[Source]:
    """Treat unanswered rows without spans as complete in datasets without other rows."""
    answered = {source.dataset.name for source, counts in zip(sources, read, strict=True) if counts.answered}
    return [
        msgspec.structs.replace(source, dataset=msgspec.structs.replace(source.dataset, kind="complete"))
        if source.dataset.kind == "auto" and source.dataset.name not in answered
        else source
        for source in sources
    ]


def gather_decisions(decisions: Path | None, part: Path, buckets: Buckets) -> dict[bytes, list[DecisionRow]]:
    """Read the decisions, in order, by the key of their text, or of its first equal text."""
    rows: list[tuple[bytes, DecisionRow]] = []
    with AccountWriter(part) as account:
        for row in find_decisions(decisions) if decisions else ():
            if row.decision:
                rows.append((bytes.fromhex(row.decision.text), row))
            elif row.problem:
                add_problem(account, row.problem, "", row.file, "decision")
    same = buckets.same() if rows else {}
    by_text: dict[bytes, list[DecisionRow]] = {}
    for key, row in rows:
        by_text.setdefault(same.get(key, key), []).append(row)
    return by_text


def plan_merging(
    sources: Sequence[Source], buckets: Buckets, size: tuple[int, int], labels: list[str], settings: Settings
) -> list[MergeJob]:
    """Plan the jobs; partitions are a power of two, which a few more texts rarely change.

    size (tuple[int, int]): distinct texts, and their bytes.
    """
    texts, text_bytes = size
    least = max(1, ceil(texts / settings.docs_per_partition), ceil(text_bytes / TEXT_BYTES))
    partition_bits = (least - 1).bit_length()
    bits = min(partition_bits, buckets.bits)
    read_bits = max(bits, buckets.read_bits())
    return [
        MergeJob(
            number=number,
            bits=bits,
            read_bits=read_bits,
            buckets=buckets,
            partition_bits=partition_bits,
            sources=sources,
            labels=labels,
            settings=settings,
        )
        for number in range(1 << bits)
    ]


def give_each(
    plan: Sequence[MergeJob], groups: Rows, decisions: Mapping[bytes, list[DecisionRow]]
) -> Iterator[MergeJob]:
    """Yield jobs with their texts' groups (GROUPED, sorted by key) and decisions."""
    ranges = np.array([range_of(key.tobytes(), plan[0].bits) for key in groups["key"]], np.int64)
    decided: defaultdict[int, dict[bytes, list[DecisionRow]]] = defaultdict(dict)
    for key, rows in decisions.items():
        decided[range_of(key, plan[0].bits)][key] = rows
    for job in plan:
        own_rows = groups[slice(*np.searchsorted(ranges, (job.number, job.number + 1)))]
        own_groups = {row["key"].tobytes(): SplitGroup(row["unit"].tobytes(), *read_splits(row)) for row in own_rows}
        yield msgspec.structs.replace(job, groups=own_groups, decisions=decided[job.number])


def compare_texts(plan: Sequence[MergeJob], settings: Settings, work: Path, do: DoJobs) -> list[NearPair]:
    """Find near-duplicates, unless the policy is "off"."""
    if settings.near_duplicates == "off":
        return []
    pairs = find_pairs([work / name for name in do(sign_range, plan, "compare")], settings.near_similarity)
    trim_heap()
    return pairs


def find_parts(plan: Sequence[MergeJob], wholes: Mapping[str, Sequence[str]], work: Path, do: DoJobs) -> Parts:
    """Find texts that are parts of another dataset's; see `parts`."""
    if not wholes:
        return {}
    names = sorted({name for datasets in wholes.values() for name in datasets})
    jobs = [PartsJob(job, wholes, names) for job in plan]
    files = [work / name for name in do(write_parts, jobs, "parts")]
    tables: defaultdict[tuple[str, str], list[Rows]] = defaultdict(list)
    for parts in do(search_parts, [msgspec.structs.replace(job, files=files) for job in jobs], "search"):
        for datasets, pairs in parts.items():
            tables[datasets].append(pairs)
    return {datasets: np.concatenate(pairs) for datasets, pairs in tables.items()}
