"""Read the Docs of a `.spacy` file as tasks: spaCy's own, or those of an earlier merge with all that they carry."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.errors import InputError
from labelwise.corpus.annotation import GOLD, INCORRECT, Annotation, annotation_of, is_merged
from labelwise.corpus.docbin_reader import DAMAGES
from labelwise.corpus.manifest import find_partition, read_partition
from labelwise.sources.items import Item
from labelwise.sources.prodigy import Task, TaskSpan

ENTS = "ents"  # what a declaration calls `doc.ents`


def read_spacy(path: Path, key: str = "") -> Iterator[Item]:
    """Yield the Docs of a `.spacy` file as tasks; where tokens have the missing value, only the marked spans are known.

    key (str): the declared spans, `doc.spans[key]`, or ENTS; empty for those that a Doc has, if that is certain.
    RAISES (InputError): it isn't such a file, or a partition that has changed since it was merged.
    """
    content = read_partition(find_partition(path))
    try:
        yield from _read_docs(content, key)
    except DAMAGES as error:
        raise InputError(f"{path}: spaCy can't read it: {error}; make it again") from error


def _read_docs(content: bytes, key: str) -> Iterator[Item]:
    # spaCy is needed only for this: a process that reads JSONL doesn't load it.
    import spacy
    from spacy.tokens import DocBin

    docs = DocBin().from_bytes(content)
    for number, doc in enumerate(docs.get_docs(spacy.blank("xx").vocab), 1):
        try:
            merged = annotation_of(doc) if is_merged(doc) else None
        except msgspec.ValidationError as error:
            yield Item(number, None, f"malformed: its user data: {error}")
            continue
        if not doc.text or doc.text.isspace():
            yield Item(number, None, "no text")
        elif problem := "" if merged else _why_not(doc, key):
            yield Item(number, None, problem)
        else:
            task = Task(doc.text, _doc_spans(doc, merged, key), view_id="spans_manual")
            if merged:
                task.uncovered = merged.uncovered
            elif any(token.ent_iob == 0 for token in doc) and key in ("", ENTS):
                task.is_binary = True
            yield Item(number, task)


def _why_not(doc: Any, key: str) -> str:
    """Say why it isn't known which spans of a Doc are its annotation; empty if it is."""
    named = {**doc.spans, ENTS: doc.ents}
    groups = {name: {(span.start, span.end, span.label) for span in spans} for name, spans in named.items()}
    if key:
        return "" if key in groups else f"not annotated: it has no spans[{key!r}]"
    read = GOLD if GOLD in groups else ENTS
    more = min((name for name in groups if name != INCORRECT and not groups[name] <= groups[read]), default=None)
    if more is None:
        return ""
    one, other = (name if name == ENTS else f"spans[{name!r}]" for name in (more, read))
    return f"other format: {other} lacks spans of {one}; declare `spans: {more}` or `spans: {read}`"


def _doc_spans(doc: Any, merged: Annotation | None, key: str) -> list[TaskSpan]:
    """List the accepted and the rejected spans of a Doc; a merge kept also those without token boundaries."""
    if merged:
        accepted = [TaskSpan(*span[:3]) for span in merged.gold]
        return accepted + [TaskSpan(*span, "reject") for span in merged.rejected]
    marked = doc.ents if key == ENTS else doc.spans.get(key or GOLD, doc.ents)
    accepted = [TaskSpan(span.start_char, span.end_char, span.label_) for span in marked]
    rejected = doc.spans.get(INCORRECT, ())
    return accepted + [TaskSpan(span.start_char, span.end_char, span.label_, "reject") for span in rejected]
