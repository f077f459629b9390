"""Write brat documents as Prodigy data sets, one JSONL file per label: the way they would have been annotated there.

1. Every annotated text becomes one accepted `ner_manual` task for every label, with that label's spans or none:
   a brat document is complete for all labels of its corpus.
2. Every T line read ends up as one span in the data sets or as one line, with its reason, in `problems.jsonl`.
3. Documents are read, written and forgotten one by one; blocks of them, of which files are made side by side, are put
   together in their order.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from labelwise.corpus.tasks import DATASETS, LabelFiles, file_names, input_hash, task_hash
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


class Block(NamedTuple):
    """Some of the documents: counts as those of a report, and the splits that their texts are in."""

    counts: dict[str, Counter[str]]
    used: set[str]


def write_block(
    documents: Iterable[Document], labels: list[str], out: Path, *, split: str, folders: Mapping[str, str]
) -> Block:
    """Write the files of some documents into a new folder; see `write_datasets`.

    documents (Iterable[Document]): consumed once, nothing is kept.
    """
    counts: dict[str, Counter[str]] = {field: Counter() for field in Report.__struct_fields__}
    used: set[str] = set()
    with ExitStack() as stack:
        files = {own: stack.enter_context(made) for own, made in label_files(out, labels, split, folders).items()}
        problems = stack.enter_context((out / PROBLEMS).open("w", encoding="utf8"))
        for document in documents:
            _count(document, counts)
            for problem in document.problems:
                problems.write(json.dumps(problem._asdict(), ensure_ascii=False) + "\n")
            if document.text is not None:
                own = folders.get(document.path.partition("/")[0], split) if "/" in document.path else split
                used.add(own)
                for label, task in tasks(document, document.text, labels):
                    files[own].write(label, task)
    return Block(counts, used)


def label_files(out: Path, labels: list[str], split: str, folders: Mapping[str, str]) -> dict[str, LabelFiles]:
    """Make a new folder with an empty file for each label, and one in it for each split that folders have."""
    out.mkdir(parents=True)
    files = {split: LabelFiles(out, labels)}
    for own in sorted({*folders.values()} - {split}):
        (out / own).mkdir()
        files[own] = LabelFiles(out / own, labels)
    return files


def write_datasets(
    blocks: Iterable[tuple[Path, Block]],
    labels: list[str],
    out: Path,
    *,
    split: str = "auto",
    folders: Mapping[str, str] = {},
    prefix: str = "",
    document_url: str = "",
) -> Report:
    """Write one data set per label, `datasets.yml`, `report.json` and `problems.jsonl` into a new folder.

    blocks (Iterable[tuple[Path, Block]]): with their folders.
    labels (list[str]): a file is made for each, even if no span has it.
    out (Path): a folder that doesn't exist.
    split (str): that of all of them, but for those in `folders`.
    folders (Mapping[str, str]): splits by folder of the corpus; they get data sets of their own, SPLIT-LABEL.
    prefix (str): goes before each label to name the data set.
    document_url (str): where documents are shown; empty for nowhere.
    RAISES (RuntimeError): the counts don't balance, which is a bug in this program.
    """
    files = label_files(out, labels, split, folders)
    (out / PROBLEMS).touch()
    counts: dict[str, Counter[str]] = {field: Counter() for field in Report.__struct_fields__}
    counts["labels"].update(dict.fromkeys(labels, 0))
    used: set[str] = set()
    for folder, block in blocks:
        for field, counter in block.counts.items():
            counts[field].update(counter)
        used |= block.used
        for file in filter(Path.is_file, folder.rglob("*")):
            with file.open("rb") as part, (out / file.relative_to(folder)).open("ab") as whole:
                shutil.copyfileobj(part, whole)
    declared = []
    for own, made in files.items():
        if own in used or not used:
            declared += declare(labels, own, *((prefix,) if own == split else (f"{prefix}{own}-", f"{own}/")))
        else:  # a data set without any text would only be warned of
            for path in made.paths.values():
                path.unlink()
    declared = [one | ({"document_url": document_url} if document_url else {}) for one in declared]
    (out / DATASETS).write_text(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True), encoding="utf8")
    report = Report(**{field: dict(sorted(counter.items())) for field, counter in counts.items()})
    content = json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False) + "\n"
    (out / REPORT).write_text(content, encoding="utf8")
    if report.lines.get("T", 0) != sum(report.annotations.values()):
        raise RuntimeError(
            f"{report.lines.get('T', 0)} T lines read, but {report.annotations} counted: please report this"
        )
    return report


def tasks(document: Document, text: str, labels: list[str]) -> Iterable[tuple[str, bytes]]:
    """Yield (label, task as a line of JSON) for an annotated document and its text."""
    text_hash = input_hash(text)
    head = b'{"text":' + msgspec.json.encode(text) + b',"_input_hash":%d' % text_hash
    tail = b',"_is_binary":false,"_view_id":"ner_manual","answer":"accept","meta":{"doc":%s}}\n'
    tail %= msgspec.json.encode(document.path)
    spans: dict[str, list[dict[str, Any]]] = {label: [] for label in labels}
    for start, end, label, fragments, _ in document.mentions:
        span: dict[str, Any] = {"start": start, "end": end, "label": label}
        spans[label].append(span | {"fragments": fragments} if fragments else span)
    for label in labels:
        middle = b',"_task_hash":%d,"spans":' % task_hash(text_hash, spans[label])
        yield label, head + middle + msgspec.json.encode(spans[label]) + tail


def declare(labels: Iterable[str], split: str, prefix: str, folder: str = "") -> list[dict[str, Any]]:
    """Declare the data sets of labels; see `write_datasets`."""
    return [
        {"name": prefix + label, "path": folder + name, "labels": [label], "kind": "complete", "split": split}
        for label, name in file_names(labels).items()
    ]


def _count(document: Document, counts: dict[str, Counter[str]]) -> None:
    counts["lines"] += document.lines
    counts["notes"] += document.notes
    counts["labels"].update(mention.label for mention in document.mentions)
    counts["annotations"]["converted"] += len(document.mentions)
    counts["documents"]["converted"] += document.text is not None
    for problem in document.problems:
        if problem.line == 0:
            counts["documents"][problem.reason] += 1
        elif problem.reason in NOT_CONVERTED:
            counts["annotations"][problem.reason] += 1
