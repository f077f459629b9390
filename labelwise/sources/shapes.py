"""Recognize the rows of other tools by their keys, and convert each to Prodigy's.

- Prodigy's, perhaps with lists for spans: `{"text": "Add 5 mL", "spans": [[4, 8, "Amount"]], "answer": "accept"}`; so
  is a row without any of these keys, such as `{"text": "Add"}`
- doccano's (https://doccano.github.io/doccano/): `{"id": 1, "text": "Add 5 mL", "label": [[4, 8, "Amount"]]}`, also
  `labels`, once `entities`, and `data` for `text`; and `{"id": 1, "text": "Add 5 mL", "entities": [{"id": 7, "label":
  "Amount", "start_offset": 4, "end_offset": 8}], "relations": []}`, whose objects may have the keys of other tools,
  such as "start" for "start_offset"
- spaCy's TRAIN_DATA: `["Add 5 mL", {"entities": [[4, 8, "Amount"]]}]`, also with the list alone
- dataturks, whose ends are inclusive: `{"content": "Add 5 mL", "annotation": [{"label": ["Amount"], "points":
  [{"start": 4, "end": 7, "text": "5 mL"}]}]}`
- GLiNER, whose ends are inclusive, too: `{"tokenized_text": ["Add", "5", "mL"], "ner": [[1, 2, "Amount"]]}`
- tokens and tags: `{"tokens": ["Add", "5"], "ner_tags": ["O", "B-Amount"]}`, also in strings, as "Add 5", "O
  B-Amount", or in pairs: `[["Add", "O"], ["5", "B-Amount"]]`
- Label Studio's: see `label_studio`

doccano keeps other keys of a row: our exports add document name and predicted spans, which are a prediction until they
are changed. A doccano export with "annotations" has numbers for labels, which only doccano can name.

A row is counted as `unsupported format` if its keys contradict one another, or if its spans are under an unknown key.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import msgspec

from labelwise.annotations import PREDICTED, REJECTED, Problem, Reason
from labelwise.base.text import is_integer
from labelwise.sources.clean import ANSWERS, RawSpan, find_quote
from labelwise.sources.foreign import name_keys
from labelwise.sources.label_studio import LISTS, is_label_studios, read_element
from labelwise.sources.prodigy_row import Converted, ProdigyRow, complete_row
from labelwise.sources.tags import BEGINS, OUTSIDE, PREFIXED, TAGS, TOKENS, Scheme, read_tagged

Shape = Literal["prodigy", "doccano", "tags"]

PRODIGYS = {"spans", "_input_hash", "_task_hash", "_view_id", "_session_id", "_annotator_id", "_timestamp"}
TEXTS = ("text", "data")
# Keys of spans, their letters in lower case. Characters first: `start` may number tokens beside them.
UNITS = ("offset", "char", "index", "idx", "pos", "position", "")
STARTS = (*(f"{start}{unit}" for unit in UNITS for start in ("start", "begin")), "offset")
ENDS = (*(f"end{unit}" for unit in UNITS), "stop")
PAIRS = ("offset", "offsets", "span")  # of start and end
NAMES = ("label", "labels", "type", "entity", "entitygroup", "entitytype", "entitylabel", "category", "class", "tag")
# Keys of values with start, end and label other than annotation: sentences, remarks, tokens, Prodigy's additions.
NO_ANNOTATION = {"sents", "Comments", "comments", "tokens", "meta", "relations", "options", "cats"}
NO_ANNOTATION |= {"versions", PREDICTED, REJECTED}
LABEL_STUDIOS = {"annotations", "completions", "predictions"}  # beside its `data`
PREDICTIONS = re.compile("predict|suggest", re.IGNORECASE)  # in the key of spans that nobody annotated
NO_LETTERS = re.compile("[^a-z]+")
TAG_ENDS = re.compile(r"[\s,'\"]+")  # between tags in a string
CONTRADICTION = "it has Prodigy's keys, and other annotation under another tool's; keep one of the two"
NO_LIST = "aren't a list of spans: write each with start, end and label"
WRONG = {"`$.text`": "its `text` isn't a string: write each text as a row", "`$.spans`": f"its `spans` {NO_LIST}"}
NO_OFFSETS = "its labels are about the whole text, without offsets; write each span with start, end and label"


class How(NamedTuple):
    """Options of a row reader.

    shown (str): reading inferred from the rows, for tools that count in several ways.
    array (bool): the rows are elements of an array; Label Studio's may lack its keys.
    scheme (Scheme | None): notation of tags in rows with tokens; None for each row's own.
    """

    offsets: str = ""
    shown: str = ""
    key: str = ""
    array: bool = False
    scheme: Scheme | None = None


def convert_row(line: int, content: Any, how: How) -> Iterator[Converted | Problem]:
    """Convert a row of any tool to Prodigy's rows, and to problems."""
    row = rewrite(content)
    if not isinstance(row, dict):
        yield Problem(
            line,
            Reason.MALFORMED,
            f"a task is an object, not {type(row).__name__}{'; decode it: jq -c fromjson' * isinstance(row, str)}",
        )
        return
    shape = shape_of(row)
    if shape != "prodigy" and is_label_studios(row):
        yield from read_element(line, row, how.key, how.offsets)
    elif other := find_contradiction(row, shape) or name_other(row, shape):
        yield Problem(line, Reason.UNSUPPORTED_FORMAT, other)
    elif shape == "tags":
        yield read_tagged(line, first_of(row, TOKENS), first_of(row, TAGS), scheme=how.scheme)
    elif shape == "doccano":
        yield read_doccano(line, row, how)
    elif how.array and shape is None:
        yield from read_element(line, row, how.key, how.offsets)
    elif not row.get("text"):
        yield no_text(line, row)
    else:
        try:
            yield Converted(msgspec.convert(row, ProdigyRow), how.offsets)
        except msgspec.ValidationError as error:
            yield Problem(line, Reason.MALFORMED, WRONG.get(str(error).rpartition(" ")[2], str(error)))


def rewrite(row: Any) -> Any:
    """Rewrite a simple row in doccano's or Prodigy's form; return others unchanged."""
    match row:
        case {"data": dict() as inner} if not LABEL_STUDIOS & row.keys() and shape_of(inner):
            return rewrite({key: value for key, value in row.items() if key != "data"} | inner)
        case [str(text), {"entities": entities} | [*entities]]:
            return {"text": text, "entities": entities}
        case [[str(), *_, str()], *_] if all(isinstance(pair, list) and len(pair) == len(row[0]) for pair in row):
            return {"tokens": [pair[0] for pair in row], "ner_tags": [pair[-1] for pair in row]}
        case {"text": str(), "spans": {**groups}} if len(groups) == 1:  # `Doc.to_json` of spaCy
            return rewrite(row | {"spans": next(iter(groups.values()))})
        case {"text": str(text), "spans": [{} | [*_] as first, *_] as spans} if not (
            isinstance(first, dict) and has_usual_keys(first.get("start"), first.get("label"))
        ):
            return row | {"spans": [_renamed(span, text) for span in spans]}
        case {"content": str(text), "annotation": None | []}:
            return {"text": text, "labels": None}
        case {"content": str(text), "annotation": [*marks]}:
            return {"text": text, "spans": list(_points(marks))}
        case {"tokenized_text": [*words], "ner": [*marks]} if all(isinstance(word, str) for word in words):
            return {"text": " ".join(words), "spans": list(_of_tokens(words, marks))}
        case {**keys} if not PRODIGYS & keys.keys():
            values = (first_of(row, TOKENS) or row.get("text"), first_of(row, TAGS))
            tokens, tags = (value.split() if isinstance(value, str) else value for value in values)
            if isinstance(tokens, list) and _are_tags(tags) and len(tokens) == len(tags):
                return row | {"tokens": tokens, "ner_tags": tags}
    return row


def _are_tags(value: Any) -> bool:
    """Return whether a value has only tags of tokens, such as B-PER and O: a list, or a string."""
    tags = TAG_ENDS.split(value.strip("[]'\" ")) if isinstance(value, str) else value
    tags = tags if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) else []
    return any(map(BEGINS.match, tags)) and all(tag in OUTSIDE or PREFIXED.fullmatch(tag) for tag in tags)


def has_usual_keys(start: Any, label: Any) -> bool:
    """Return whether a span has Prodigy's keys, by the values of two."""
    return start is not None and isinstance(label, str)


def _renamed(span: Any, text: str) -> dict[str, Any]:
    read = _span_of(span, text)
    own = {"start": read.start, "end": read.end, "label": read.label, "text": read.text}
    return {**span, **own} if isinstance(span, dict) else own


def _points(marks: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield a span per label of each mark; for anything else an unusable one."""
    for mark in marks:
        match mark:
            case {"label": [*labels], "points": [{"start": int(start), "end": int(end), **more}]}:
                for label in labels:
                    yield {"start": start, "end": end + 1, "label": label, "text": more.get("text")}
            case _:
                yield {"label": str(mark)[:80]}


def _of_tokens(words: list[str], marks: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield a span per mark, with offsets in tokens; for anything else an unusable one."""
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    for mark in marks:
        match mark:
            case [int(first), int(last), label, *_] if 0 <= first <= last < len(words):
                yield {"start": starts[first], "end": starts[last + 1] - 1, "label": label}
            case _:
                yield {"label": str(mark)[:80]}


def shape_of(row: Mapping[str, Any]) -> Shape | None:
    """Name the tool with a row's keys; None if no key is a tool's."""
    tagged = tags_of(row) is not None
    if (PRODIGYS & row.keys() and not (tagged and "text" not in row)) or row.get("answer") in ANSWERS:
        return "prodigy"
    if tagged:
        return "tags"
    return "doccano" if marked_lists(row) is not None else None


def tags_of(row: Mapping[str, Any]) -> list[Any] | None:
    """Return the tags of a row with tokens; None without both."""
    tokens, tags = first_of(row, TOKENS), first_of(row, TAGS)
    if not isinstance(tokens, list) or not isinstance(tags, list):
        return None
    # Beside a text, lists may have another meaning, such as spans.
    kinds = (str, int) if "text" in row else object
    is_it = all(isinstance(token, str) for token in tokens) and all(isinstance(tag, kinds) for tag in tags)
    return tags if is_it else None


def marked_lists(row: Mapping[str, Any]) -> list[list[Any]] | None:
    """Return the lists under doccano's keys; [] if all are null, None if the row isn't doccano's."""
    if not any(isinstance(row.get(key), str) for key in TEXTS):
        return None
    lists = [row[key] for key in LISTS if isinstance(row.get(key), list)]
    null = any(row.get(key, ...) is None for key in LISTS)
    return lists if lists or null or isinstance(row.get("annotations"), list) else None


def first_of(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value of the first of `keys` in a row; None without any."""
    return next((row[key] for key in keys if key in row), None)


def find_contradiction(row: Mapping[str, Any], shape: Shape | None) -> str:
    """Explain which keys contradict one format; "" if none do."""
    tags, marked = tags_of(row), next(filter(None, marked_lists(row) or ()), [])
    # Prodigy's tasks may have a list of the labels that were shown.
    spans = any(isinstance(value, list | dict) for value in marked)
    if shape != "prodigy":
        return NO_OFFSETS if marked and not spans and tags is None else ""
    tagged = tags is not None and not row.get("spans") and any(tag not in (*OUTSIDE, 0) for tag in tags)
    return CONTRADICTION if spans or tagged else ""


def name_other(row: Mapping[str, Any], shape: Shape | None) -> str:
    """Name an unreadable row's tool, or the unknown key of its spans; empty if unknown."""
    no_text = "audio_spans" in row or not isinstance(row.get("text"), str)
    if shape in (None, "prodigy") and no_text and (why := name_keys(_keys_of(row))):
        return why
    if row.get("spans") or isinstance(row.get("text"), dict):
        return ""
    if shape is None and len(row) > 1 and all(map(_has_text, row.values())):
        return "it is an object of rows; write each as a row: jq -c '.[]'"
    if shape is None and _is_span(row):
        return "it is a single span: write each text once, with a list of its `spans`"
    for key, value in sorted(row.items(), key=lambda item: bool(PREDICTIONS.search(item[0]))):
        read = key in LISTS and isinstance(value, list)
        if key in NO_ANNOTATION or key.startswith("_") or (read and shape is not None):
            continue
        if shape != "tags" and key not in TEXTS and _are_tags(value):
            return f"its `{key}` are tags: write a list of `tokens` and one of `ner_tags`, a tag for each token"
        if read:
            continue
        if _has_spans(value) and PREDICTIONS.search(key):
            if any(marked_lists(row) or ()):
                continue
            return (
                f"its only spans are predictions, under `{key}`: annotate it and write the spans as `spans`; if it has "
                f"none, delete `{key}`"
            )
        if _has_spans(value):
            return f"its spans are under `{key}`, which isn't read: name it `spans`, each with start, end and label"
        written = isinstance(value, str) and value.lstrip()[:1] in ("[", "{")  # JSON in a string
        if shape is None and ((key in LISTS and (written or (isinstance(value, dict) and value))) or _are_named(value)):
            return f"its `{key}` {NO_LIST}"
    return ""


def _keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys_of(inner)


def _are_named(value: Any) -> bool:
    """Return whether a value has annotations by label: strings, or objects."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(mark, dict) and isinstance(_value_of(mark, NAMES), str) for mark in value)
    lists = [*value.values()] if isinstance(value, dict) else []
    return (
        any(lists)
        and all(isinstance(marks, list) for marks in lists)
        and all(isinstance(mark, str | dict) for marks in lists for mark in marks)
    )


def _has_spans(value: Any) -> bool:
    if isinstance(value, dict):
        lists = [marks for marks in value.values() if isinstance(marks, list) and marks]
        return any(
            all(_is_span(mark) or (isinstance(mark, list) and _is_place(mark)) for mark in marks) for marks in lists
        )
    return isinstance(value, list) and bool(value) and (all(map(_is_span, value)) or all(map(_has_spans, value)))


def _is_span(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_place(value) and isinstance(_value_of(value, NAMES), str | list)
    return isinstance(value, list) and any(isinstance(cell, str) for cell in value[:3]) and _is_place(value)


def _is_place(value: Any) -> bool:
    if isinstance(value, dict):
        return None not in (_value_of(value, STARTS), _value_of(value, ENDS))
    return isinstance(value, list) and sum(map(is_integer, value[:3])) == 2


def _has_text(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return is_label_studios(value) or (isinstance(first_of(value, TEXTS), str) and not _is_place(value))


def no_text(line: int, row: Mapping[str, Any]) -> Problem:
    """Return the problem of a row without a text, naming its keys, or a list that may hold rows."""
    keys = ", ".join(sorted(row)[:8])
    texts = [key for key, value in row.items() if isinstance(value, str) and " " in value.strip()]
    named = f"; if `{texts[0]}` is the text, name it `text`" if len(texts) == 1 else ""
    lists = (key for key, value in row.items() if isinstance(value, list) and any(map(_has_text, value)))
    list_key = next((key for key in lists if key not in NO_ANNOTATION), "")
    rows = f"; write its list `{list_key}` alone to a file: jq .{list_key}" if list_key else ""
    return Problem(line, Reason.NO_TEXT, f"its keys are {keys}{rows or named}" if keys and "text" not in row else "")


def read_doccano(line: int, row: Mapping[str, Any], how: How) -> Converted | Problem:
    """Convert doccano's row.

    doccano's offsets count UTF-16 code units or, by a project's option, graphemes (doccano issue 2290); other writers
    of such rows count code points.
    """
    text = first_of(row, TEXTS)
    if not isinstance(text, str) or not text.strip():
        return no_text(line, row)
    lists = marked_lists(row) or []
    if not lists and any(key in row for key in LISTS):
        return Problem(line, Reason.NOT_ANNOTATED, "no list of spans")
    if not lists:
        numbered = any(is_integer(mark.get("label")) for mark in row["annotations"] if isinstance(mark, dict))
        why = "its labels are numbers; export them as text" if numbered else "no list of spans"
        return Problem(line, Reason.MALFORMED, why)
    filled = [[_span_of(mark, text) for mark in marks] for marks in lists if marks] or [[]]
    if any(_places(spans) != _places(filled[0]) for spans in filled):
        why = f"its {' and '.join(key for key in LISTS if row.get(key))} differ; keep one of them"
        return Problem(line, Reason.MALFORMED, why)
    predicted = row.get(PREDICTED)
    unchanged = isinstance(predicted, list) and _places(filled[0]) == sorted(map(str, predicted))
    who = row.get("username") or row.get("user") or row.get("annotator")
    prodigys = complete_row(text, filled[0], row, row, {PREDICTED: "yes"} if unchanged else {}, annotator_id=who)
    offsets = how.shown if counts_in_several_ways(row) else how.offsets
    rejected = len(prodigys.spans or ()) - len(filled[0])
    return Converted(prodigys, offsets, max(map(len, lists)) + rejected)


def counts_in_several_ways(row: Mapping[str, Any]) -> bool:
    """Return whether a row with doccano's lists is doccano's own."""
    entities = row.get("entities")
    objects = [entity for entity in entities if isinstance(entity, dict)] if isinstance(entities, list) else []
    return "label" in row or "labels" in row or any("start_offset" in entity for entity in objects)


def _places(spans: Iterable[RawSpan]) -> list[str]:
    """List spans as strings, to compare values of any type."""
    return sorted(str([span.start, span.end, span.label]) for span in spans)


def _span_of(span: Any, text: str) -> RawSpan:
    """Convert a span in any form; anything else has no offsets, so is unusable."""
    match span:
        case dict():
            label = _value_of(span, NAMES)
            label = label[0] if isinstance(label, list) and len(label) == 1 else label
            start, end, length = (_value_of(span, names) for names in (STARTS, ENDS, ("length",)))
            match _value_of(span, PAIRS):
                case [int(start), int(end)] | [[int(start), int(end)]]:
                    pass
            if end is None and is_integer(start) and is_integer(length):
                end = start + length
            return RawSpan(start, end, label, None, span.get("text") or find_quote(text, start, end, span.values()))
        case [str(), str(label), [[int(start), int(end)]]]:  # brat's own JSON
            return RawSpan(start, end, label)
        case [_, _, _, *_]:
            return RawSpan(*span[:3])
    return RawSpan()


def _value_of(span: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first of `names` among keys, whatever their signs and capitals."""
    return first_of({NO_LETTERS.sub("", key.lower()): value for key, value in span.items()}, names)
