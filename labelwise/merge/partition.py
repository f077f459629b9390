"""Merge one partition: the work of one process; one text's tasks are held at a time.

The result is kept in the cache, with a fingerprint of all that it depends on: a later run takes it from there if that
is the same.
"""

import hashlib
from itertools import chain
from pathlib import Path

import msgspec

from labelwise.base.files import atomic
from labelwise.base.text import decode_counter
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.corpus.ledger import Ledger, problem_line
from labelwise.corpus.manifest import SPLITS, Split
from labelwise.corpus.pipeline import forgetting
from labelwise.corpus.places import PLACES, places_line
from labelwise.merge.plan import MergeJob
from labelwise.merge.rules.agreement import disagreement_tasks
from labelwise.merge.rules.answers import place_of
from labelwise.merge.rules.decisions import judge
from labelwise.merge.rules.lost_spans import lost_span_tasks
from labelwise.merge.rules.settings import load_tokenizer
from labelwise.merge.runs import RunReader
from labelwise.merge.text_result import count_decisions, find_problems, merge_one

LOST_SPANS, DISAGREEMENTS, PROBLEMS = "lost_spans.jsonl", "disagreements.jsonl", "problems.jsonl"
LINES = (LOST_SPANS, DISAGREEMENTS, PROBLEMS, PLACES)  # files of a partition, of lines


class PartitionResult(msgspec.Struct):
    """The result of a partition, except for its files: LINES, and one of Docs for each split that has any.

    fingerprint (str): see `MergeJob.fingerprint`.
    keys (dict[Split, list[bytes]]): of the Docs' texts, in order.
    names (dict[bytes, str]): the documents that texts are, by key, of those that have a name.
    files (dict[str, str]): the names of its files, with their digests.
    """

    fingerprint: str
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    keys: dict[Split, list[bytes]] = msgspec.field(default_factory=lambda: {split: [] for split in SPLITS})
    names: dict[bytes, str] = {}
    files: dict[str, str] = {}


def merge_partition(job: MergeJob) -> None:
    """Merge the texts of one partition and write its files and its result, unless an earlier run did.

    RAISES (InputError): an "error" policy met its case.
    """
    result = PartitionResult(job.fingerprint())
    earlier = _whole_result(job.folder)
    if earlier and earlier.fingerprint == result.fingerprint:
        return
    docs = {split: DocWriter() for split in SPLITS}
    lines: dict[str, list[bytes]] = {name: [] for name in LINES}
    tokenizer = load_tokenizer(job.settings)
    without_text = dict(job.decisions)
    with RunReader(job.runs) as reader, forgetting(tokenizer.nlp):
        for key, places in job.texts():
            text = reader.read_text(places[0])
            answers = [job.read_answer(place, reader) for place in places]
            split, made, merged = merge_one(key, text, answers, job, tokenizer, result.ledger)
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
            lines[PROBLEMS] += map(problem_line, find_problems(answers, merged.judged))
            without_text.pop(key, None)
    judged, _ = judge(list(chain.from_iterable(rows for _, rows in sorted(without_text.items()))), "", ())
    count_decisions(judged, result.ledger)
    lines[PROBLEMS] += map(problem_line, find_problems((), judged))
    with atomic(job.folder, folder=True) as folder:
        folder.mkdir()
        for split in SPLITS:
            if result.keys[split]:
                docs[split].write(folder / f"{split}.spacy")
        for name, content in lines.items():
            (folder / name).write_bytes(b"".join(content))
        result.files = {file.name: _digest_file(file) for file in sorted(folder.iterdir())}
        (folder / "result").write_bytes(msgspec.msgpack.encode(result))


def _digest_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def read_result(folder: Path) -> PartitionResult:
    """Read the result of a partition."""
    content = (folder / "result").read_bytes()
    return msgspec.msgpack.decode(content, type=PartitionResult, dec_hook=decode_counter)


def _whole_result(folder: Path) -> PartitionResult | None:
    """Read the result of an earlier run, if its files are complete and unchanged."""
    try:
        result = read_result(folder)
        whole = all(_digest_file(folder / name) == digest for name, digest in result.files.items())
    except (OSError, msgspec.DecodeError):
        return None
    return result if whole else None
