"""What must hold of whatever is read; each target of `targets` and `text_formats` uses it.

1. Nothing but an InputError, or the system's error about a file, comes out of a reader.
2. Everything that was read has one counted outcome: after reading, the tasks are merged, and the ledger balances.
3. What the merge makes of it can be written, and read again.
"""

import atexit
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, get_args

import msgspec

from labelwise.corpus.annotation import Coverage
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.ledger import PROBLEM_SPANS, Ledger, Problem, outcome_of, problem_line
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.pipeline import forgetting
from labelwise.errors import InputError
from labelwise.merge.plan import MergeJob
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.lost_spans import lost_span_tasks
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Alignment, Conflicts, Duplicates, Overlap
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.rules.splits import declared_split
from labelwise.merge.runs import decode_task, encode_task
from labelwise.merge.text_result import find_problems, merge_one
from labelwise.sources.declarations import DataSet
from labelwise.sources.formats import read_items
from labelwise.sources.items import Item
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy import check_task
from labelwise.sources.prodigy_tables import MOST
from labelwise.text import text_key
from tests.conftest import write_docs

FILE = Path("fuzz.jsonl")
DATASETS = (
    DataSet("one", (FILE,), ("A", "B"), absent=("C",)),
    DataSet("two", (FILE,), ("A",), kind="binary"),
    DataSet("three", (FILE,), ("C", "A"), split="test"),
)
LABELS = ["A", "B", "C"]
FULL = 239  # a byte of options above it has Docs made
POLICIES = [
    {
        **{"duplicates": duplicates, "conflicts": conflicts, "overlap": overlap},
        **{"coverage": coverage, "alignment": alignment},
    }
    for duplicates, conflicts, overlap, coverage, alignment in product(
        *map(get_args, (Duplicates, Conflicts, Overlap, Coverage, Alignment))
    )
    if "error" not in (duplicates, conflicts, overlap, alignment)
]


@cache
def folder() -> Path:
    """Make this process's folder."""
    made = mkdtemp(prefix="labelwise-fuzz-")
    atexit.register(shutil.rmtree, made)
    return Path(made)


def check(promise: bool, *found: Any) -> None:
    """Raise an error if a promise is broken."""
    if not promise:
        raise AssertionError(found)


def balance(items: Iterable[Item], option: int = 0, *, normalize: bool = False, docs: bool = False) -> Ledger:
    """Merge tasks as a merge does, in memory; the ledger must balance.

    option (int): the number of the policies.
    docs (bool): make Docs, too, which takes most of the time, write them to a file, and read that: they must hold what
        the ledger says. Without, the spans that count are entered as entities.
    """
    ledger = Ledger()
    settings = Settings(**POLICIES[option % len(POLICIES)], normalize=normalize)
    texts: dict[bytes, list[Answer]] = {}
    for item in items:
        check(0 <= item.line <= MOST, item)
        if item.task is not None:
            ledger.rows_read += 1
            ledger.spans_read += len(item.task.spans or ())
            task = normalize_task(item.task) if normalize else item.task
            check_task(task)
            text, task.text = (task.text or "").encode("utf8", "surrogatepass"), None
            number = item.line % len(DATASETS)
            kept = decode_task(encode_task(task))
            texts.setdefault(text, []).append(Answer(DATASETS[number], item.line, kept, FILE, number))
        if item.problem:
            outcome = outcome_of(item.problem)
            if outcome in PROBLEM_SPANS:
                ledger.spans_read += 1
                ledger.spans[outcome] += 1
            else:
                ledger.rows_read += 1
                ledger.rows[outcome] += 1
            problem_line(Problem("", item.file, item.line, item.problem))
    (_make_docs if docs else _merge_only)(texts, settings, ledger)
    ledger.check()
    msgspec.json.encode(ledger.nested())
    return ledger


def _merge_only(texts: dict[bytes, list[Answer]], settings: Settings, ledger: Ledger) -> None:
    for text, answers in texts.items():
        answers.sort(key=lambda answer: answer.order[1:])
        decoded = text.decode("utf8", "surrogatepass")
        merged = merge_text(decoded, answers, settings, declared_split(answers))
        for said in (*merged.accepted.values(), *merged.rejected.values()):
            said[0][1].outcome = "entity"
        ledger.rows.update(answer.outcome for answer in answers)
        ledger.spans.update(outcome_of(span.outcome) for answer in answers for span in answer.spans)
        list(lost_span_tasks(decoded, merged.lost, list(merged.places), merged.name))
        list(map(problem_line, find_problems(merged.answers, merged.judged)))
        for start, end, label in (*merged.accepted, *merged.rejected):
            check(0 <= start < end <= len(decoded) and label in LABELS, merged)


def _make_docs(texts: dict[bytes, list[Answer]], settings: Settings, ledger: Ledger) -> None:
    job = MergeJob(0, 1, [], b"", LABELS, settings, folder(), {}, {})
    tokenizer = load_tokenizer(Settings())
    with forgetting(tokenizer.nlp):
        docs = []
        for text, answers in texts.items():
            decoded = text.decode("utf8", "surrogatepass")
            answers.sort(key=lambda answer: answer.order[1:])
            result = merge_one(text_key(text), decoded, answers, job, tokenizer, ledger)
            list(lost_span_tasks(decoded, result.merged.lost, list(result.merged.places), result.merged.name))
            list(map(problem_line, find_problems(answers, result.merged.judged)))
            if result.made:
                docs.append(result.made.doc.to_doc(tokenizer.nlp.vocab))
        check(ledger.spans["entity"] == sum(len(doc.ents) for doc in docs), ledger)
        check(sum(ledger.texts[split] for split in SPLITS) == len(docs), ledger)
        path = folder() / "written.spacy"
        write_docs(docs, path)
        stored = list(read_stored_docs(path))
        check([doc.text for doc in stored] == [doc.text for doc in docs])
        gold = sum(len(doc.annotation.gold) for doc in stored)
        check(gold == sum(ledger.labels[label]["gold"] for label in LABELS), gold, ledger)


def read_file(data: bytes, name: str, dataset: str = "") -> Iterator[Item]:
    """Write a file, and read it."""
    path = folder() / name
    path.write_bytes(data)
    with suppress(InputError):
        yield from read_items(path, dataset)
