"""Review tasks for Prodigy: dropped spans with the spans kept instead, and disagreements.

A line of dropped_spans.jsonl:

    {"text": "Add 5 mL", "spans": [{"start": 4, "end": 8, "label": "Amount", "claim": "accept", "datasets": ["amount"],
     "dropped": true}, …], "_input_hash": …, "_task_hash": …,
     "meta": {"reason": "nested", "learned": true, "doc": "p1.txt", "from": "amount.jsonl:7, device.jsonl:7"}}

A line of disagreements.jsonl:

    {"text": …, "spans": [{"start": 4, "end": 8, "label": "Amount", "annotators": ["ann"]}, …], …
     "meta": {"label": "Amount", "annotators": "ann, bob", "doc": "p1.txt", "from": "ann.jsonl:7, bob.jsonl:9"}}

Both are for Prodigy's spans.manual, because their spans overlap. They have its tokens, and keys for the merge of the
answers. An answer to a disagreement is a review of its label. A task with a dropped span lacks other spans, so its
answer covers no label.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from spacy.vocab import Vocab

from labelwise.annotations import PREDICTED, REVIEW, UNCOVERED
from labelwise.base.errors import InputError
from labelwise.corpus.agreement import Version, find_settled, find_versions
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.dropped_spans import DroppedSpan, find_dropped
from labelwise.corpus.manifest import is_corpus, read_manifest
from labelwise.corpus.tables import Group, read_columns
from labelwise.corpus.tasks import place_in_tokens, task_hashes, task_tokens
from labelwise.corpus.texts import read_groups_with_docs

DROPPED, DISAGREEMENTS = "dropped_spans.jsonl", "disagreements.jsonl"


class Reviewed(NamedTuple):
    """Counts of an export: tasks by file, and texts outside the corpus, without a task."""

    tasks: Mapping[str, int]
    without_text: int


def write_review(corpus: Path, folder: Path, files: Collection[str], splits: Collection[str]) -> Reviewed:
    """Write files of tasks, sorted by text key: DROPPED, DISAGREEMENTS, or both."""
    if not is_corpus(corpus):
        raise InputError(f"{corpus}: not a merged corpus, so it dropped no span; leave out --dropped, --disagreements")
    labels = read_manifest(corpus).labels
    tasks, without_text = dict.fromkeys(files, 0), set[str]()
    for name in files:
        (folder / name).touch()
    for group, docs in read_groups_with_docs(corpus):
        found = {name: KINDS[name][0](group) for name in files}
        split_of: dict[str, str | None] = dict(read_columns(group.texts, "text", "split"))
        without_text |= {key for texts in found.values() for key in texts if not split_of[key]}
        for key, doc in docs:
            for name, texts in found.items():
                if key in texts and split_of[key] in splits:
                    lines = [*KINDS[name][1](doc, labels, texts[key])]
                    tasks[name] += len(lines)
                    with (folder / name).open("ab") as file:
                        file.writelines(lines)
    return Reviewed(tasks, len(without_text))


def _find_dropped(group: Group) -> dict[str, list[DroppedSpan]]:
    return {key: [*dropped] for key, dropped in groupby(find_dropped(group), attrgetter("text"))}


def _find_disagreements(group: Group) -> dict[str, dict[str, list[Version]]]:
    """Find the texts with differing annotators and no review, with their versions by label."""
    settled, texts = find_settled(group), dict[str, dict[str, list[Version]]]()
    for key, labels in find_versions(group):
        for label, versions in labels.items():
            if (key, label) not in settled and any(one.marked != versions[0].marked for one in versions):
                texts.setdefault(key, {})[label] = versions
    return texts


def dropped_span_tasks(doc: StoredDoc, labels: Sequence[str], dropped: Iterable[DroppedSpan]) -> Iterator[bytes]:
    """Yield a line of JSON for each dropped span, with the kept span."""
    for one in dropped:
        asserted = [span for span in (one.dropped, one.kept) if span]
        spans = [
            {
                "start": span.span[0],
                "end": span.span[1],
                "label": span.span[2],
                "claim": span.verdict,
                "datasets": span.datasets,
                "dropped": span is one.dropped,
            }
            for span in asserted
        ]
        places = [place for span in asserted for place in span.places]
        keys = {UNCOVERED: dict.fromkeys(labels, "none")}
        yield review_task(doc, spans, {"reason": one.reason, "learned": one.learned}, places, keys)


def disagreement_tasks(
    doc: StoredDoc, labels: Sequence[str], versions: Mapping[str, Sequence[Version]]
) -> Iterator[bytes]:
    """Yield a line of JSON for each label with disagreements."""
    for label, group in versions.items():
        marked = sorted({offsets for version in group for offsets in version.marked})
        spans = [
            {"start": start, "end": end, "label": label}
            | {"annotators": [version.who for version in group if (start, end) in version.marked]}
            for start, end in marked
        ]
        who = ", ".join(version.who for version in group)
        keys = {REVIEW: True, UNCOVERED: {other: "none" for other in labels if other != label}}
        yield review_task(doc, spans, {"label": label, "annotators": who}, [version.place for version in group], keys)


Find = Callable[[Group], Mapping[str, Any]]  # returns the spans to review of a row group's texts, by key
Make = Callable[[StoredDoc, Sequence[str], Any], Iterator[bytes]]  # yields the tasks of a text's spans
KINDS: Mapping[str, tuple[Find, Make]] = {
    DROPPED: (_find_dropped, dropped_span_tasks),
    DISAGREEMENTS: (_find_disagreements, disagreement_tasks),
}


def review_task(
    doc: StoredDoc,
    spans: list[dict[str, Any]],
    meta: Mapping[str, str | bool],
    places: Iterable[str],
    keys: Mapping[str, Any],
) -> bytes:
    """Make a line of JSON, a Prodigy task that no merge reads before it is saved."""
    text, name = doc.text, doc.annotation.doc
    tokens = task_tokens(doc.to_doc(Vocab()), [span[edge] for span in spans for edge in ("start", "end")])
    more = (("doc", name), ("from", ", ".join(dict.fromkeys(places))), (PREDICTED, "yes"))
    meta = {key: value for key, value in (*meta.items(), *more) if value}
    placed = {"tokens": tokens, "spans": place_in_tokens(spans, tokens)}
    task = {"text": text, **task_hashes(text, spans), **placed, "_view_id": "spans_manual", "meta": meta, **keys}
    return msgspec.json.encode(task) + b"\n"
