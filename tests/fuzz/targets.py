"""What is fuzzed: each target takes any bytes, and raises an exception that is no InputError if a promise is broken.

The promises are in `promises`. The first bytes choose options, such as policies; the rest is the file.
"""

import re
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, get_args
from unittest import mock

import msgspec
import yaml

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.pipeline import forgetting
from labelwise.errors import InputError
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.settings import decode_yaml
from labelwise.sources import brat, declarations
from labelwise.sources.brat_tasks import encode_document
from labelwise.sources.declarations import load_datasets
from labelwise.sources.formats import read_items
from labelwise.sources.items import Item
from labelwise.sources.jsonl import read_jsonl
from tests.fuzz import json_formats, text_formats
from tests.fuzz.mutate import Bytes, mutate_lines, mutate_packed, mutate_yaml
from tests.fuzz.promises import FULL, balance, check, folder, read_file


class Target(NamedTuple):
    """What is fuzzed.

    run (Callable[[bytes], int]): raises an exception if a promise is broken; returns how many rows, T lines or data
        sets were read, and accounted for.
    change (Callable): changes data by its form; see `mutate`.
    head (int): bytes of options at the beginning.
    """

    run: Callable[[bytes], int]
    change: Callable[..., bytes]
    head: int = 0


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
    lost = [problem for problem in document.problems if problem.line and problem.reason in brat.NOT_CONVERTED]
    check(document.lines["T"] == len(document.mentions) + len(lost), document)
    check(document.text is not None or not document.mentions, document)
    check({mention.label for mention in document.mentions} <= document.labels.keys(), document)
    if document.text is None:
        return document.lines["T"]
    check(all(0 <= one.start < one.end <= len(document.text) for one in document.mentions), document)
    row = encode_document(document)
    spans = [span for item in read_jsonl(BytesIO(row)) for span in (item.task and item.task.spans) or ()]
    check(len(spans) == len(document.mentions), document, row)
    if head[1] > FULL:
        ledger = balance(read_jsonl(BytesIO(row)), head[0], docs=True)
        check(ledger.spans_read == len(document.mentions), document, ledger)
    return document.lines["T"]


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
        examples = [row for row in rows["example"] if row[0] == row[0] and row[0] in linked]
        check(len(items) == len(examples), items, rows)
        numbers = [number for number, _ in examples]
        for number, content in examples:
            encoded = content.encode() if isinstance(content, str) else content
            if type(number) is int and number and numbers.count(number) == 1 and isinstance(encoded, bytes):
                for item in items:
                    if item.line == number:
                        json_formats.check_row(json_formats.decode(encoded), item)
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
        declared = {item["name"]: item["labels"] for item in yaml.load(data, Loader=yaml.CSafeLoader)}
        check(declared.keys() == {dataset.name for dataset in datasets}, datasets)
        for dataset in datasets:
            check(declared[dataset.name] == "auto" or declared[dataset.name] == [*dataset.labels], datasets)
        msgspec.json.encode(datasets, enc_hook=str)
        return len(datasets)
    return 0


def _decode_inside(*arguments: Any) -> Any:
    """Decode declarations, and refuse paths that lead out of the folder: the whole disk would be searched."""
    declared = decode_yaml(*arguments)
    for item in declared:
        listed = item.path if isinstance(item.path, list) else [item.path or ""]
        if any(path.startswith("/") or ".." in path for path in (*listed, item.db or "")):
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


TARGETS = {
    "brat": Target(fuzz_brat, plain, head=2),
    "rows": Target(fuzz_rows, mutate_lines, head=3),
    "database": Target(fuzz_database, plain),
    "cells": Target(fuzz_cells, mutate_packed),
    "spacy": Target(fuzz_spacy, mutate_packed, head=1),
    "declarations": Target(fuzz_declarations, mutate_yaml),
    "conll": Target(text_formats.fuzz_conll, text_formats.mutate_text),
    "webanno": Target(text_formats.fuzz_webanno, text_formats.mutate_text),
    "tags": Target(text_formats.fuzz_tags, mutate_lines),
    "parquet": Target(text_formats.fuzz_parquet, mutate_packed, head=1),
    "label-studio": Target(json_formats.fuzz_label_studio, mutate_lines),
    "doccano": Target(json_formats.fuzz_jsonl, mutate_lines, head=1),
}
