"""Rewrite rows of some tools as doccano's or Prodigy's, and name other tools' rows in errors.

- spaCy's TRAIN_DATA: `["Add 5 mL", {"entities": [[4, 8, "Amount"]]}]`
- Prodigy's, with lists for spans: `{"text": "Add 5 mL", "spans": [[4, 8, "Amount"]]}`
- dataturks, whose ends are inclusive: `{"content": "Add 5 mL", "annotation": [{"label": ["Amount"], "points":
  [{"start": 4, "end": 7, "text": "5 mL"}]}]}`
- GLiNER, whose ends are inclusive, too: `{"tokenized_text": ["Add", "5", "mL"], "ner": [[1, 2, "Amount"]]}`
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from labelwise.annotations import PREDICTED, REJECTED
from labelwise.base.text import is_integer
from labelwise.sources.keys import ENDS, LISTS, NAMES, STARTS

NAMED = {
    ("classes", "annotations"): "this is ner-annotator's: write its `annotations` alone to a file: jq .annotations",
    ("paragraphs",): "this is spaCy 2's training JSON: convert it to .spacy with `python -m spacy convert`",
    ("pages",): "it has `pages`, each of which is a text: write each as a row of its own",
    ("%FEATURE_STRUCTURES",): "this is UIMA's CAS as JSON: export WebAnno TSV 3 instead",
    ("sentences", "ner"): "its spans count the tokens of `sentences`: write texts with offsets in characters",
}
# Keys of values with start, end and label that aren't annotation: sentences, remarks, tokens, and Prodigy's additions.
NO_ANNOTATION = {"sents", "Comments", "comments", "tokens", "meta", "relations", "options", PREDICTED, REJECTED}


def rewrite(row: Any) -> Any:
    """Return a row as doccano or Prodigy would write it, if it is one of the above; else the row itself."""
    match row:
        case [str(text), {"entities": entities}]:
            return {"text": text, "entities": entities}
        case {"text": str(), "spans": [[*_], *_] as spans}:
            return row | {"spans": [dict(zip(("start", "end", "label"), one, strict=False)) for one in spans]}
        case {"content": str(text), "annotation": None | []}:
            return {"text": text, "labels": None}
        case {"content": str(text), "annotation": [*marks]}:
            return {"text": text, "spans": list(_points(marks))}
        case {"tokenized_text": [*words], "ner": [*marks]} if all(isinstance(word, str) for word in words):
            return {"text": " ".join(words), "spans": list(_of_tokens(words, marks))}
    return row


def _points(marks: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield a span for each label of each mark, and one that can't be used for anything else."""
    for mark in marks:
        match mark:
            case {"label": [*labels], "points": [{"start": int(start), "end": int(end), **more}]}:
                for label in labels:
                    yield {"start": start, "end": end + 1, "label": label, "text": more.get("text")}
            case _:
                yield {"label": str(mark)[:80]}


def _of_tokens(words: list[str], marks: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield a span for each mark, whose offsets count tokens, and one that can't be used for anything else."""
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    for mark in marks:
        match mark:
            case [int(first), int(last), label, *_] if 0 <= first <= last < len(words):
                yield {"start": starts[first], "end": starts[last + 1] - 1, "label": label}
            case _:
                yield {"label": str(mark)[:80]}


def name_other(row: Mapping[str, Any]) -> str:
    """Name the tool that wrote an unreadable row, or the unknown key of its spans; empty if neither is known."""
    if not row.get("spans"):
        for keys, why in NAMED.items():
            if all(isinstance(row.get(key), list) for key in keys) and not isinstance(row.get("text"), str):
                return why
        for key, value in row.items():
            read = key in LISTS and isinstance(value, list)
            if key not in NO_ANNOTATION and not read and _has_spans(value):
                return f"its spans are under `{key}`, which isn't read: name it `spans`, each with start, end and label"
    return ""


def _has_spans(value: Any) -> bool:
    """Return whether a value is a list of spans, or such lists by label."""
    if isinstance(value, dict):
        return any(isinstance(one, list) and one and all(map(_is_place, one)) for one in value.values())
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_place(value) and any(isinstance(value.get(name), str | list) for name in NAMES)
    return isinstance(value, list) and any(isinstance(one, str) for one in value[:3]) and _is_place(value)


def _is_place(value: Any) -> bool:
    if isinstance(value, dict):
        return all(value.keys() & {*names} for names in (STARTS, ENDS))
    return isinstance(value, list) and sum(map(is_integer, value[:3])) == 2
