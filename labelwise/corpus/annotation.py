"""The annotation of a merged Doc.

A Doc carries three views of its annotation:

1. `doc.ents`, flat, is for training. Tokens of misaligned gold, and unannotated tokens of a text that isn't complete
   for all labels, have spaCy's missing value.
2. `doc.spans["gold"]` holds each aligned accepted span, also those realigned by policy; `doc.spans["incorrect_spans"]`
   each aligned rejected span.
3. `annotation_of(doc)` has all spans, and labels to score; `doc.user_data["labelwise"]` stores it.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from spacy.tokens import Doc

from labelwise.base.errors import InputError
from labelwise.base.text import SpanKey, State, evaluable

Coverage = Literal["by-label", "drop", "outside"]

# As in `spacy_per_label.known`, which isn't imported, or a merge would run again when the recognizer changes.
GOLD = "gold"
INCORRECT = "incorrect_spans"  # the configs' name for spaCy's ner component
USER_DATA = "labelwise"
DATASET = "dataset"  # a key of groups: the names of datasets
_decode = msgspec.msgpack.Decoder().decode


class Annotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """All annotation of a text; offsets in characters.

    gold (list): accepted spans, also misaligned ones, with the names of their datasets.
    uncovered (dict[str, State]): labels that the text isn't complete for.
    unit (str): digest of the group of dependent texts that it belongs to; "" for none.
    groups (dict[str, list[str]]): values of the keys in the setting `by`.
    """

    gold: list[tuple[int, int, str, list[str]]]
    rejected: list[SpanKey]
    uncovered: dict[str, State]
    datasets: list[str] = []
    doc: str = ""
    unit: str = ""
    groups: dict[str, list[str]] = {}

    @property
    def accepted(self) -> set[SpanKey]:
        """Return the accepted spans."""
        return {(start, end, label) for start, end, label, _ in self.gold}

    def evaluable(self, spans: Iterable[SpanKey], also: Iterable[SpanKey] = ()) -> set[SpanKey]:
        """Keep the spans that can be scored; see `text.evaluable`."""
        return evaluable(spans, (*self.accepted, *self.rejected, *also), self.uncovered)


def annotate(doc: Doc, annotation: Annotation) -> None:
    """Store an annotation with a Doc."""
    doc.user_data[USER_DATA] = msgspec.to_builtins(annotation, builtin_types=[bytes])


def is_merged(doc: Doc) -> bool:
    """Return whether a Doc comes from a merge."""
    return USER_DATA in doc.user_data


def annotation_of(doc: Doc) -> Annotation:
    """Return the annotation that a merge stored with a Doc; refuse a Doc without one."""
    if not is_merged(doc):
        raise not_merged(doc.text)
    return msgspec.convert(doc.user_data[USER_DATA], Annotation)


def decode_annotation(user_data: bytes) -> Annotation | None:
    """Decode a Doc's stored annotation; None without.

    RAISES (TypeError or ValueError): if it isn't an annotation.
    """
    content: Any = _decode(user_data) if user_data else {}
    if not isinstance(content, dict):
        raise TypeError(f"user data that is no map: {content!r:.40}")
    return msgspec.convert(content[USER_DATA], Annotation) if USER_DATA in content else None


def not_merged(text: str) -> InputError:
    """Return the error for a text that isn't from a merge."""
    return InputError(f"{text[:40]!r}...: nothing says which labels it is complete for; use the merge's corpus")


def entities(doc: Doc) -> set[SpanKey]:
    """Return the entities of a Doc, in characters."""
    return {(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents}
