"""The annotation of a merged Doc.

A Doc carries three views of its annotation:

1. `doc.ents`, flat, is what the model is trained on. Tokens that belong to gold without token boundaries, or to no
   entity on a text that isn't complete for all labels, have spaCy's missing value.
2. `doc.spans["gold"]` holds each accepted span on token boundaries, if need be those of the alignment policy;
   `doc.spans["incorrect_spans"]` each rejected one on token boundaries.
3. `annotation_of(doc)` says which spans can be scored; `doc.user_data["labelwise"]` has it for msgpack.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from spacy.tokens import Doc

from labelwise.base.errors import InputError
from labelwise.base.text import SpanKey, State, evaluable

Coverage = Literal["by-label", "drop", "outside"]

# Those of `spacy_per_label.known`, which isn't imported: a merge would depend on the recognizer, and run again with it.
GOLD = "gold"
INCORRECT = "incorrect_spans"  # the name that the configs give to spaCy's ner component
USER_DATA = "labelwise"
DATASET = "dataset"  # a key of groups: the names of datasets
_decode = msgspec.msgpack.Decoder().decode


class Annotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole annotation of a text; spans are in characters.

    gold (list): all accepted spans, even those without token boundaries, each with the names of its datasets.
    rejected (list[SpanKey]): all rejected spans.
    uncovered (dict[str, State]): the labels that the text isn't complete for.
    datasets (list[str]): if there are any of these, the datasets of the text.
    doc (str): the name of the document, if its tasks have one (`meta.doc`).
    unit (str): digest of what it shares with other texts, so that they are no independent sample; empty for none.
    groups (dict[str, list[str]]): the values of the keys that the setting `by` names, which divide texts into groups.
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
        """The accepted spans."""
        return {(start, end, label) for start, end, label, _ in self.gold}

    def evaluable(self, spans: Iterable[SpanKey], also: Iterable[SpanKey] = ()) -> set[SpanKey]:
        """Keep the spans that can be judged; see `text.evaluable`.

        also (Iterable): more spans that count as judged.
        """
        return evaluable(spans, (*self.accepted, *self.rejected, *also), self.uncovered)


def annotate(doc: Doc, annotation: Annotation) -> None:
    """Store an annotation with a Doc."""
    doc.user_data[USER_DATA] = msgspec.to_builtins(annotation, builtin_types=[bytes])


def is_merged(doc: Doc) -> bool:
    """Return whether a Doc comes from a merge."""
    return USER_DATA in doc.user_data


def annotation_of(doc: Doc) -> Annotation:
    """Return the annotation that a merge stored with a Doc.

    RAISES (InputError): it isn't from a merge.
    RAISES (msgspec.ValidationError): what is stored isn't an annotation.
    """
    if not is_merged(doc):
        raise not_merged(doc.text)
    return msgspec.convert(doc.user_data[USER_DATA], Annotation)


def decode_annotation(user_data: bytes) -> Annotation | None:
    """Decode what a `.spacy` file has of a Doc's user data; None if a merge stored nothing there.

    RAISES (TypeError or ValueError): it isn't an annotation.
    """
    content: Any = _decode(user_data) if user_data else {}
    if not isinstance(content, dict):
        raise TypeError(f"user data that is no map: {content!r:.40}")
    return msgspec.convert(content[USER_DATA], Annotation) if USER_DATA in content else None


def not_merged(text: str) -> InputError:
    """Make the error for a text that isn't from a merge."""
    return InputError(f"{text[:40]!r}...: nothing says which labels it is complete for; use the merge's corpus")


def entities(doc: Doc) -> set[SpanKey]:
    """Return the entities of a Doc, in characters."""
    return {(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents}
