"""Read the Docs of a `.spacy` file as tasks: spaCy's own, or an earlier merge's, with all annotation."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from labelwise.annotations import Item, Problem, Reason
from labelwise.base.errors import InputError
from labelwise.corpus.annotation import GOLD, INCORRECT, annotation_of, is_merged
from labelwise.corpus.docbin_reader import DAMAGES
from labelwise.corpus.manifest import find_partition, read_partition
from labelwise.sources.clean import RawSpan, clean

ENTS = "ents"  # `doc.ents` in a declaration


def read_spacy(path: Path, key: str = "") -> Iterator[Item]:
    """Yield the Docs of a `.spacy` file as tasks, binary ones if tokens have the missing value.

    key (str): declared spans, `doc.spans[key]`, or ENTS; empty for a Doc's own, if they are unambiguous.
    RAISES (InputError): if it isn't such a file, or has changed since its merge.
    """
    content = read_partition(find_partition(path))
    try:
        yield from _read_docs(content, key)
    except DAMAGES as error:
        raise InputError(f"{path}: spaCy can't read it: {error}; make it again") from error


def _read_docs(content: bytes, key: str) -> Iterator[Item]:
    # A process that reads JSONL doesn't load spaCy.
    import spacy
    from spacy.tokens import DocBin

    docs = DocBin().from_bytes(zlib.compress(content, level=0))  # which decompresses it
    for number, doc in enumerate(docs.get_docs(spacy.blank("xx").vocab), 1):
        try:
            merged = annotation_of(doc) if is_merged(doc) else None
        except msgspec.ValidationError as error:
            yield Problem(number, Reason.MALFORMED, f"its user data: {error}")
            continue
        if not doc.text or doc.text.isspace():
            yield Problem(number, Reason.NO_TEXT)
        elif merged:  # it has spans without token boundaries, too
            spans = [RawSpan(*span[:3]) for span in merged.gold]
            spans += [RawSpan(*span, "reject") for span in merged.rejected]
            yield clean(number, doc.text, spans, uncovered=merged.uncovered)
        elif problem := _find_problem(number, doc, key):
            yield problem
        else:
            partly = key in ("", ENTS) and any(token.ent_iob == 0 for token in doc)
            marked = doc.ents if key == ENTS else doc.spans.get(key or GOLD, doc.ents)
            spans = [RawSpan(span.start_char, span.end_char, span.label_) for span in marked]
            rejected = doc.spans.get(INCORRECT, ())
            spans += [RawSpan(span.start_char, span.end_char, span.label_, "reject") for span in rejected]
            yield clean(number, doc.text, spans, kind="binary" if partly else "complete")


def _find_problem(number: int, doc: Any, key: str) -> Problem | None:
    """Explain why a Doc's spans are ambiguous; None if they aren't."""
    spans_by_name = {**doc.spans, ENTS: doc.ents}
    groups = {name: {(span.start, span.end, span.label) for span in spans} for name, spans in spans_by_name.items()}
    if key:
        return None if key in groups else Problem(number, Reason.NOT_ANNOTATED, f"it has no spans[{key!r}]")
    read = GOLD if GOLD in groups else ENTS
    more = min((name for name in groups if name != INCORRECT and not groups[name] <= groups[read]), default=None)
    if more is None:
        return None
    lacking, chosen = (name if name == ENTS else f"spans[{name!r}]" for name in (more, read))
    why = f"{chosen} lacks spans of {lacking}; declare `spans: {more}` or `spans: {read}`"
    return Problem(number, Reason.UNSUPPORTED_FORMAT, why)
