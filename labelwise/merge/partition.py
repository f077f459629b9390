"""Merge one partition: the work of one process; one text's tasks are held at a time.

The result is kept in the cache, with a fingerprint of all that it depends on: a later run takes it from there if that
is the same.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from labelwise.common.files import staged
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.corpus.manifest import SPLITS, Split
from labelwise.corpus.pipeline import forgetting
from labelwise.corpus.places import PLACES, places_line
from labelwise.merge.jobs import MergeJob, read_answer
from labelwise.merge.rules.agreement import disagreement_tasks
from labelwise.merge.rules.answers import place_of
from labelwise.merge.rules.decisions import judge
from labelwise.merge.rules.ledger import Ledger, Problem, outcome_of, problem_line
from labelwise.merge.rules.lost_spans import lost_span_tasks
from labelwise.merge.rules.one_text import Merged
from labelwise.merge.rules.settings import load_tokenizer
from labelwise.merge.runs import RunReader, find_texts
from labelwise.merge.text_result import merge_one

LOST_SPANS, DISAGREEMENTS, PROBLEMS = "lost_spans.jsonl", "disagreements.jsonl", "problems.jsonl"
LINES = (LOST_SPANS, DISAGREEMENTS, PROBLEMS, PLACES)  # files of a partition, of lines


class PartitionResult(msgspec.Struct):
    """The result of a partition, except for its files: LINES, and one of Docs for each split that has any.

    fingerprint (str): see `MergeJob.fingerprint`.
    counts (list): of the ledger, by path.
    keys (dict[Split, list[bytes]]): of the Docs' texts, in order.
    names (dict[bytes, str]): the documents that texts are, by key, of those that have a name.
    files (dict[str, str]): the names of its files, with their digests.
    """

    fingerprint: str
    counts: list[tuple[tuple[str, ...], int]]
    keys: dict[Split, list[bytes]]
    names: dict[bytes, str]
    files: dict[str, str]


_decode_result = msgspec.msgpack.Decoder(PartitionResult).decode


def merge_partition(job: MergeJob) -> None:
    """Merge the texts of one partition and write its files and its result, unless an earlier run did.

    RAISES (InputError): an "error" policy met its case.
    """
    fingerprint = job.fingerprint()
    earlier = _whole_result(job.folder)
    if earlier and earlier.fingerprint == fingerprint:
        return
    ledger = Ledger()
    result = PartitionResult(fingerprint, [], {split: [] for split in SPLITS}, {}, {})
    docs = {split: DocWriter() for split in SPLITS}
    lines: dict[str, list[bytes]] = {name: [] for name in LINES}
    tokenizer = load_tokenizer(job.settings)
    without_text = dict(job.decisions)
    with RunReader() as reader:
        for key, places in find_texts(job.parts):
            text = reader.read_text(key, places[0])
            answers = [read_answer(place, job, reader) for place in places]
            with forgetting(tokenizer.nlp):
                split, made, merged = merge_one(key, text, answers, job, tokenizer, ledger)
                if made:
                    docs[split].add(made.doc, made.starts, made.ends)
                    result.keys[split].append(key)
                    where = [place_of(answer, merged.places) for answer in answers]
                    lines[PLACES].append(places_line(key, list(filter(None, where))))
            if merged.name:
                result.names[key] = merged.name
            places_that_count = list(merged.places)
            lines[LOST_SPANS] += lost_span_tasks(text, merged.lost, places_that_count, merged.name)
            lines[DISAGREEMENTS] += disagreement_tasks(text, merged.versions, places_that_count, merged.name)
            lines[PROBLEMS] += map(problem_line, find_problems(merged))
            without_text.pop(key, None)
    for _, rows in sorted(without_text.items()):
        judged, _ = judge(rows, "", ())
        ledger["rows_read",] += len(judged)
        ledger.count(("rows",), [outcome_of(one.outcome) for one in judged])
        lines[PROBLEMS] += [problem_line(one.problem()) for one in judged]
    result.counts = list(ledger.items())
    with staged(job.folder, folder=True) as folder:
        folder.mkdir()
        for split in SPLITS:
            if result.keys[split]:
                docs[split].write(folder / f"{split}.spacy")
        for name, content in lines.items():
            (folder / name).write_bytes(b"".join(content))
        result.files = {file.name: _digest_file(file) for file in sorted(folder.iterdir())}
        (folder / "result").write_bytes(msgspec.msgpack.encode(result))


def find_problems(merged: Merged) -> Iterator[Problem]:
    """Yield the spans of a text that can't be used, and the decisions."""
    for answer in merged.answers:
        for span in answer.spans:
            if ":" in span.outcome:
                yield Problem(answer.dataset.name, *(span.place or answer.name), span.outcome)
    yield from (one.problem() for one in merged.judged if ":" in one.outcome)


def _digest_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def read_result(folder: Path) -> PartitionResult:
    """Read the result of a partition."""
    return _decode_result((folder / "result").read_bytes())


def _whole_result(folder: Path) -> PartitionResult | None:
    """Read the result of an earlier run, if its files are complete and unchanged."""
    try:
        result = read_result(folder)
        whole = all(_digest_file(folder / name) == digest for name, digest in result.files.items())
    except (OSError, msgspec.DecodeError):
        return None
    return result if whole else None
