"""Write brat documents as tasks: one for each annotated text, with the spans of all labels, and a file for each split.

1. An annotated text becomes one accepted task, complete for all labels of its corpus.
2. Every T line read ends up as one span of a task or as one line, with its reason, in `problems.jsonl`.
3. Documents are read once, some at a time, and forgotten when they are written.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from labelwise.corpus.tasks import DATASETS
from labelwise.sources.brat import NOT_CONVERTED, Document

PROBLEMS, REPORT = "problems.jsonl", "report.json"


class Report(msgspec.Struct):
    """The outcome of each part of a brat corpus, in counts.

    documents (dict): "converted", and the others by reason.
    lines (dict): lines of the annotation files by kind; "T" are the annotations.
    annotations (dict): T lines "converted", and the others by reason; adds up to lines["T"].
    notes (dict): converted, but not exactly as written (see brat.Document); these overlap.
    labels (dict): converted spans by label.
    """

    documents: dict[str, int]
    lines: dict[str, int]
    annotations: dict[str, int]
    notes: dict[str, int]
    labels: dict[str, int]


class Converted(NamedTuple):
    """What some documents became.

    tasks (dict[str, bytes]): lines of JSON, by split.
    problems (bytes): lines of JSON.
    counts (dict[str, Counter[str]]): those of a Report; and "written", labels as all well-formed T lines have them.
    """

    tasks: dict[str, bytes]
    problems: bytes
    counts: dict[str, Counter[str]]


def convert_documents(documents: Iterable[Document], split: str, folders: Mapping[str, str]) -> Converted:
    """Make tasks of documents.

    split (str): that of all of them, but for those in `folders`.
    folders (Mapping[str, str]): splits by folder of the corpus.
    """
    tasks: dict[str, bytearray] = {}
    problems = bytearray()
    counts: dict[str, Counter[str]] = {field: Counter() for field in (*Report.__struct_fields__, "written")}
    for document in documents:
        _count(document, counts)
        for problem in document.problems:
            problems += msgspec.json.encode(problem._asdict()) + b"\n"
        if document.text is not None:
            folder, inside, _ = document.path.partition("/")
            own = folders.get(folder, split) if inside else split
            tasks.setdefault(own, bytearray()).extend(encode_document(document))
    return Converted({own: bytes(lines) for own, lines in tasks.items()}, bytes(problems), counts)


def encode_document(document: Document) -> bytes:
    """Encode an annotated document as a line of JSON."""
    spans: list[dict[str, Any]] = [
        {"start": start, "end": end, "label": label} | ({"fragments": fragments} if fragments else {})
        for start, end, label, fragments, _ in document.mentions
    ]
    task = {
        "text": document.text,
        "spans": spans,
        "answer": "accept",
        "_view_id": "spans_manual",  # the interface in which spans may overlap
        "meta": {"doc": document.path},
    }
    return msgspec.json.encode(task) + b"\n"


def write_tasks(converted: Iterable[Converted], out: Path) -> dict[str, Counter[str]]:
    """Write a file of tasks for each split that has some, SPLIT.jsonl, and `problems.jsonl`, into a new folder.

    RETURNS (dict): the counts of all.
    """
    out.mkdir()
    counts: dict[str, Counter[str]] = {field: Counter() for field in (*Report.__struct_fields__, "written")}
    with ExitStack() as stack:
        problems = stack.enter_context((out / PROBLEMS).open("wb"))
        files = {}
        for some in converted:
            problems.write(some.problems)
            for split, lines in some.tasks.items():
                if split not in files:
                    files[split] = stack.enter_context((out / f"{split}.jsonl").open("wb"))
                files[split].write(lines)
            for field, counter in some.counts.items():
                counts[field].update(counter)
    return counts


def write_report(counts: Mapping[str, Counter[str]], out: Path) -> Report:
    """Write `report.json`.

    RAISES (RuntimeError): the counts don't balance, which is a bug in this program.
    """
    report = Report(**{field: dict(sorted(counts[field].items())) for field in Report.__struct_fields__})
    (out / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    if report.lines.get("T", 0) != sum(report.annotations.values()):
        raise RuntimeError(
            f"{report.lines.get('T', 0)} T lines read, but {report.annotations} counted: please report this"
        )
    return report


def declare_tasks(out: Path, labels: list[str], prefix: str, document_url: str) -> None:
    """Write `datasets.yml`: each split's file is a data set, brat or brat-SPLIT, complete for all labels.

    prefix (str): what the names begin with.
    document_url (str): where documents are shown; empty for nowhere.
    """
    splits = sorted(file.stem for file in out.glob("*.jsonl") if file.name != PROBLEMS)
    declared = [
        {
            "name": f"{prefix}brat" + f"-{split}" * (split != "auto"),
            "path": f"{split}.jsonl",
            "labels": labels,
            "kind": "complete",
            "split": split,
            **({"document_url": document_url} if document_url else {}),
        }
        for split in splits
    ]
    (out / DATASETS).write_text(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True), encoding="utf8")


def read_problems(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the problems of a conversion, one by one."""
    with (out / PROBLEMS).open(encoding="utf8") as lines:
        yield from map(json.loads, lines)


def _count(document: Document, counts: dict[str, Counter[str]]) -> None:
    counts["lines"] += document.lines
    counts["notes"] += document.notes
    counts["written"] += document.labels
    counts["labels"].update(mention.label for mention in document.mentions)
    counts["annotations"]["converted"] += len(document.mentions)
    counts["documents"]["converted"] += document.text is not None
    for problem in document.problems:
        if problem.line == 0:
            counts["documents"][problem.reason] += 1
        elif problem.reason in NOT_CONVERTED:
            counts["annotations"][problem.reason] += 1
