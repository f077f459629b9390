"""What is fuzzed: each target takes any bytes, and raises an exception that is no InputError if a promise is broken.

1. Nothing but an InputError, or the system's error about a file, comes out of a reader.
2. Everything that was read has one counted outcome: after reading, the tasks are merged, and the ledger balances.
3. What the merge makes of it can be written, and read again.

The first bytes choose options, such as policies; the rest is the file.
"""

import atexit
import re
import shutil
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from io import BytesIO
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, get_args
from unittest import mock

import msgspec
import yaml

from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError
from labelwise.common.keys import text_key
from labelwise.corpus.annotation import Coverage
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.streaming import forgetting
from labelwise.merge.jobs import MergeJob
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.ledger import PROBLEM_SPANS, Ledger, Problem, outcome_of, problem_line
from labelwise.merge.rules.lost_spans import lost_span_tasks
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Alignment, Conflicts, Duplicates, Overlap, Policies
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.rules.splits import declared_split
from labelwise.merge.task_store import TaskWriter, decode_task
from labelwise.merge.text_result import merge_one
from labelwise.sources import brat, declarations
from labelwise.sources.declarations import DataSet, load_datasets
from labelwise.sources.formats import read_items
from labelwise.sources.items import Item
from labelwise.sources.jsonl import read_jsonl
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy_datasets import declare, tasks
from labelwise.sources.prodigy_db import MOST
from tests.conftest import write_docs
from tests.fuzz.mutate import Bytes, mutate_lines, mutate_packed

FILE = Path("fuzz.jsonl")
DATASETS = (
    DataSet("one", (FILE,), ("A", "B"), absent=("C",)),
    DataSet("two", (FILE,), ("A",), kind="binary"),
    DataSet("three", (FILE,), ("C", "A"), split="test"),
)
LABELS = ["A", "B", "C"]
FULL = 239  # a byte of options above it has Docs made
POLICIES = [
    Policies(duplicates, conflicts=conflicts, overlap=overlap, coverage=coverage, alignment=alignment)
    for duplicates, conflicts, overlap, coverage, alignment in product(
        *map(get_args, (Duplicates, Conflicts, Overlap, Coverage, Alignment))
    )
    if "error" not in (duplicates, conflicts, overlap, alignment)
]


class Target(NamedTuple):
    """What is fuzzed.

    run (Callable[[bytes], int]): raises an exception if a promise is broken; returns how many rows, T lines or data
        sets were read, and accounted for.
    change (Callable): changes data by its form; see `mutate`.
    words (tuple[str, ...]): what a fuzzer may put into data.
    head (int): bytes of options at the beginning.
    """

    run: Callable[[bytes], int]
    change: Callable[..., bytes]
    words: tuple[str, ...] = ()
    head: int = 0


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
    ledger = Ledger(labels={label: Counter() for label in LABELS})
    settings = Settings(policies=POLICIES[option % len(POLICIES)], normalize=normalize)
    writer = TaskWriter(FILE)
    read = spans = 0
    for item in items:
        check(0 <= item.line <= MOST, item)
        if item.task is not None:
            read += 1
            spans += len(item.task.spans or ())
            item.task.meta = None
            writer.add(item.line, normalize_task(item.task) if normalize else item.task)
        if item.problem:
            outcome = outcome_of(item.problem)
            counter = ledger.spans if outcome in PROBLEM_SPANS else ledger.rows
            counter[outcome] += 1
            problem_line(Problem("", item.file, item.line, item.problem))
    ledger.rows_read, ledger.spans_read = ledger.rows.total(), ledger.spans.total()
    expected = ledger.rows_read + read, ledger.spans_read + spans
    texts: dict[bytes, list[Answer]] = {}
    for key, line, encoded, text in sorted(writer.tasks):
        check(key == text_key(text))
        answer = Answer(DATASETS[line % len(DATASETS)], line, decode_task(encoded), FILE)
        texts.setdefault(text, []).append(answer)
    (_make_docs if docs else _merge_only)(texts, settings, ledger)
    check((ledger.rows_read, ledger.spans_read) == expected, expected, ledger)
    ledger.check()
    msgspec.json.encode(ledger.sorted())
    return ledger


def _merge_only(texts: dict[bytes, list[Answer]], settings: Settings, ledger: Ledger) -> None:
    for text, answers in texts.items():
        answers.sort(key=lambda answer: DATASETS.index(answer.dataset))
        ledger.rows_read += len(answers)
        ledger.spans_read += sum(len(answer.task.spans or ()) for answer in answers)
        decoded = text.decode("utf8", "surrogatepass")
        merged = merge_text(decoded, answers, settings.policies, declared_split(answers))
        ledger.rows.update(merged.rows)
        ledger.spans.update(merged.spans)
        ledger.spans["entity"] += len(merged.accepted) + len(merged.rejected)
        list(lost_span_tasks(decoded, merged.lost, merged.places, merged.name))
        list(map(problem_line, merged.problems))
        for start, end, label in (*merged.accepted, *merged.rejected):
            check(0 <= start < end <= len(decoded) and label in LABELS, merged)


def _make_docs(texts: dict[bytes, list[Answer]], settings: Settings, ledger: Ledger) -> None:
    job = MergeJob(0, 1, [], [], LABELS, settings, folder())
    tokenizer = load_tokenizer(Settings())
    with forgetting(tokenizer.nlp):
        docs = []
        for text, answers in texts.items():
            decoded = text.decode("utf8", "surrogatepass")
            answers.sort(key=lambda answer: DATASETS.index(answer.dataset))
            result = merge_one(text_key(text), decoded, answers, job, tokenizer, ledger)
            list(lost_span_tasks(decoded, result.merged.lost, result.merged.places, result.merged.name))
            list(map(problem_line, result.merged.problems))
            if result.doc is not None:
                docs.append(result.doc)
        check(ledger.spans["entity"] == sum(len(doc.ents) for doc in docs), ledger)
        check(sum(ledger.texts[split] for split in SPLITS) == len(docs), ledger)
        path = folder() / "written.spacy"
        write_docs(docs, path)
        stored = list(read_stored_docs(path))
        check([doc.text for doc in stored] == [doc.text for doc in docs])
        gold = sum(len(doc.annotation.gold) for doc in stored)
        check(gold == sum(ledger.labels[label]["gold"] for label in LABELS), gold, ledger)


def fuzz_rows(data: bytes) -> int:
    """Prodigy's JSONL: rows that can't be used are counted, and slices hold the same rows as the whole."""
    head, rows = data[:3].ljust(3, b"\0"), data[3:]
    items = list(read_jsonl(BytesIO(rows)))
    # Lines end in LF, whatever else may end them.
    check(rows.count(b"\n") <= len(items) <= len(re.split(rb"\r|\n", rows)))
    cut = head[1] * len(rows) // 256
    parts = [list(read_jsonl(BytesIO(rows), 0, cut)), list(read_jsonl(BytesIO(rows), cut))] if cut else [items]
    check([item[1:] for part in parts for item in part] == [item[1:] for item in items])
    ledger = balance(items, head[0], normalize=bool(head[2] & 1), docs=head[2] > FULL)
    check(ledger.rows_read == sum(bool(item.task or item.problem) for item in items), ledger)
    return ledger.rows_read


ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "shift_jis", "gb18030", "euc_kr", "utf-8")
NO_TEXT = b"\0\0"


def fuzz_brat(data: bytes) -> int:
    """A brat document: each T line is a mention or a problem, by any options, and so it is once converted."""
    head, (text, found, ann) = data[:2].ljust(2, b"\0"), data[2:].partition(NO_TEXT)
    contents = {".txt": text, ".ann": ann} if found else {".ann": text}

    def read(path: Path) -> bytes:
        if path.suffix not in contents:
            raise FileNotFoundError(path)
        return contents[path.suffix]

    with mock.patch.object(brat, "read_file", read):
        document = brat.read_document(
            Path("corpus/doc"),
            Path("corpus"),
            labels=frozenset("AB") if head[0] & 128 else None,
            missing_ann=get_args(brat.MissingAnn)[head[0] >> 3 & 1],
            discontinuous=get_args(brat.Discontinuous)[(head[0] >> 4 & 3) % 3],
            shifted=get_args(brat.Shifted)[head[0] >> 6 & 1],
            encoding=ENCODINGS[head[0] & 7],
        )
        counts = brat.count_labels([Path("corpus/doc")], Path("corpus"), ENCODINGS[head[0] & 7])
    lost = [problem for problem in document.problems if problem.line and problem.reason in brat.NOT_CONVERTED]
    check(document.lines["T"] == len(document.mentions) + len(lost), document)
    check(document.text is not None or not document.mentions, document)
    check({mention.label for mention in document.mentions} <= counts.keys(), document, counts)
    if document.text is None:
        return document.lines["T"]
    check(all(0 <= one.start < one.end <= len(document.text) for one in document.mentions), document)
    labels = sorted(counts)
    rows = b"".join(row for _, row in tasks(document, document.text, labels))
    spans = [span for item in read_jsonl(BytesIO(rows)) for span in (item.task and item.task.spans) or ()]
    check(len(spans) == len(document.mentions), document, rows)
    if head[1] > FULL:
        written = yaml.safe_dump(declare(labels, "auto", "")).encode()
        declared = decode_yaml(written, list[dict[str, Any]], "written", "")
        check([item["labels"] for item in declared] == [[label] for label in labels], declared)
        ledger = balance(read_jsonl(BytesIO(rows)), head[0], docs=True)
        check(ledger.spans_read == len(document.mentions), document, ledger)
    return document.lines["T"]


def read_file(data: bytes, name: str, dataset: str = "") -> Iterator[Item]:
    """Write a file, and read it."""
    path = folder() / name
    path.write_bytes(data)
    with suppress(InputError):
        yield from read_items(path, dataset)


def fuzz_database(data: bytes) -> int:
    """The bytes of a database."""
    return balance(read_file(data, "bytes.db", "a")).rows_read


def fuzz_cells(data: bytes) -> int:
    """The cells of a database: any values, in tables that are Prodigy's."""
    try:
        tables = msgspec.msgpack.decode(data)
        path = folder() / "cells.db"
        rows = {name: [tuple(row[:2]) for row in tables[name]] for name in ("dataset", "example", "link")}
        _write_cells(path, rows, "UTF-16" if tables.get("utf16") else "UTF-8")
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, sqlite3.Error, msgspec.MsgspecError):
        return 0  # not such tables
    items: list[Item] = []
    with suppress(InputError):
        items.extend(read_items(path, "a"))
        wanted = {number for number, name in rows["dataset"] if name == "a" and number is not None}
        linked = {example for example, number in rows["link"] if number in wanted and example is not None}
        check(len(items) == sum(number in linked for number, _ in rows["example"] if number == number), items, rows)  # noqa: PLR0124
    return balance(items).rows_read


def _write_cells(path: Path, tables: dict[str, list[tuple[Any, Any]]], encoding: str) -> None:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(
            f"pragma encoding = '{encoding}'; pragma journal_mode = off; pragma synchronous = off; begin;"
            "create table dataset (id, name); create table example (id, content);"
            "create table link (example_id, dataset_id);"
        )
        for name, rows in tables.items():
            connection.executemany(f"insert into {name} values (?, ?)", rows)
        connection.execute("commit")
    finally:
        connection.close()


def fuzz_spacy(data: bytes) -> int:
    """A `.spacy` file, before it was compressed, as a source and as a part of a corpus."""
    packed = zlib.compress(data[1:], 1)
    ledger = balance(read_file(packed, "docs.spacy"), data[0] if data else 0)
    with suppress(InputError), forgetting(load_tokenizer(Settings()).nlp):
        for doc in read_stored_docs(folder() / "docs.spacy"):
            check(doc.to_doc(load_tokenizer(Settings()).nlp.vocab).text == doc.text)
            doc.annotation  # noqa: B018
    return ledger.rows_read


def fuzz_declarations(data: bytes) -> int:
    """A `datasets.yml` in a folder with one file of each kind."""
    root = _declared_folder()
    (root / "datasets.yml").write_bytes(data)
    with mock.patch.object(declarations, "decode_yaml", _decode_inside), suppress(InputError, OSError):
        datasets = load_datasets([root / "datasets.yml"])
        check(all(dataset.labels and dataset.files for dataset in datasets))
        check(len({dataset.name for dataset in datasets}) == len(datasets))
        check(all(file.is_relative_to(root) for dataset in datasets for file in dataset.files), datasets)
        msgspec.json.encode(datasets, enc_hook=str)
        return len(datasets)
    return 0


def _decode_inside(*arguments: Any) -> Any:
    """Decode declarations, and refuse paths that lead out of the folder: the whole disk would be searched."""
    declared = decode_yaml(*arguments)
    for item in declared:
        path = (item.path or "") + (item.db or "")
        if path.startswith("/") or ".." in path:
            raise InputError("outside")
    return declared


@cache
def _declared_folder() -> Path:
    root = folder() / "declared"
    for name in ("a.jsonl", "b.jsonl.gz", "c.spacy", "p.db", "brat/d.txt", "brat/d.ann", "docs/e.spacy", "empty/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to(".")
    return root.resolve()


def plain(data: bytes, rng: Any, mutate: Bytes) -> bytes:
    """Change bytes as bytes."""
    return mutate(data)


JSON_WORDS = ('"text":', '"spans":[', '"start":', '"end":', '"label":"A"', '"answer":"reject"', '"_view_id":"ner"')
YAML_WORDS = (
    *(
        "!!int ",
        "!!float ",
        "!!bool ",
        "!!timestamp ",
        "!!binary ",
        "!!set ",
        "!!omap ",
        "!!null ",
        "&a ",
        "*a",
        "<<: ",
    ),
    *("- name: b\n", "path: ", "db: p.db", "labels: [A]\n", "kind: binary", "split: test", "absent: [B]", "? ", "~"),
    *("*.jsonl", "**/*", "[a]", "\\0", "\\ud800", "2020-13-01", "1:1", "0x", "docs", "brat", "loop"),
)
BRAT_WORDS = ("\nT1\tA 0 3\t", ";4 9", "\r\n", "\u2028", "\ufeff", "\U0001f600", "\nR1\t", "\n#1\t", "\u0660", "\u00a0")
TARGETS = {
    "brat": Target(fuzz_brat, plain, BRAT_WORDS, head=2),
    "rows": Target(fuzz_rows, mutate_lines, JSON_WORDS, head=3),
    "database": Target(fuzz_database, plain, ("SQLite format 3", "CREATE TABLE ", "dataset", "example", "link")),
    "cells": Target(fuzz_cells, mutate_packed),
    "spacy": Target(fuzz_spacy, mutate_packed, head=1),
    "declarations": Target(fuzz_declarations, plain, YAML_WORDS),
}
