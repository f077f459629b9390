"""Read doccano's JSONL of sequence labeling: https://doccano.github.io/doccano/

    {"id": 1, "text": "Add 5 mL", "label": [[4, 8, "Amount"]]}      also "labels", once "entities"; "data" for "text"
    {"id": 1, "text": "Add 5 mL", "entities": [{"id": 7, "label": "Amount", "start_offset": 4, "end_offset": 8}],
     "relations": []}

Everything else that doccano was given with a text is a key of the row: our own exports add the document's name and the
predicted spans. Until somebody changes these spans, they are a prediction.

Objects may have the keys of other tools, such as "start" for "start_offset".

doccano's offsets count UTF-16 code units, as its pages do, or, by an option of a project, graphemes (doccano issue
2290); other writers of such rows count code points. Unless the data set's entry declares a reading, the one counts by
which most spans of the file end at words. An export with "annotations" has numbers in place of labels, which only
doccano can name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from labelwise.annotations import PREDICTED, Found, Problem, Reason, miscounted
from labelwise.base.text import is_integer
from labelwise.sources import keys
from labelwise.sources.clean import RawSpan, clean
from labelwise.sources.offsets import choose_counted


def parse_doccano(line: int, row: dict[str, Any], offsets: str = "") -> Sequence[Found]:
    """Convert a row to a task, or to a problem; a second problem says that it has more spans than were read."""
    text = keys.first_of(row, keys.TEXTS)
    if not isinstance(text, str) or not text.strip():
        return (keys.no_text(line, row),)
    lists = keys.marked_lists(row) or []
    if not lists and any(key in row for key in keys.LISTS):
        return (Problem(line, Reason.NOT_ANNOTATED, "no list of spans"),)
    if not lists:
        why = "its labels are numbers; export them as text" if "annotations" in row else "no list of spans"
        return (Problem(line, Reason.MALFORMED, why),)
    filled = [one for one in lists if one] or lists
    spans = [_offsets(one) for one in filled[0]]
    if any(_places(map(_offsets, one)) != _places(spans) for one in filled):
        why = f"its {' and '.join(key for key in keys.LISTS if row.get(key))} differ; keep one of them"
        return (Problem(line, Reason.MALFORMED, why),)
    rejected = keys.rejected_of(row)
    predicted = row.get(PREDICTED)
    unchanged = isinstance(predicted, list) and _places(spans) == sorted(map(str, predicted))
    task = clean(
        line,
        text,
        [*(RawSpan(*span) for span in spans), *rejected],
        who=[row.get("username") or row.get("user")],
        meta=keys.name_of(row, row, text) | ({PREDICTED: "yes"} if unchanged else {}),
        uncovered=keys.uncovered_of(row),
        offsets=offsets,
    )
    there = max(len(row[key]) for key in keys.LISTS if isinstance(row.get(key), list))
    read = len(task.all_spans) - len(rejected)
    return (task,) if there == read else (task, miscounted(line, there, "spans", read))


def is_doccanos(row: Mapping[str, Any]) -> bool:
    """Return whether a row with lists is doccano's own, rather than one that looks like it."""
    objects = [one for one in row.get("entities") or () if isinstance(one, dict)]
    return "label" in row or "labels" in row or any("start_offset" in one for one in objects)


def choose_offsets(rows: Iterable[Mapping[str, Any]]) -> str:
    """Choose the reading of doccano's offsets; see `offsets.choose_counted`."""

    def places() -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """Yield texts with the offsets of their spans."""
        for row in rows:
            spans = [_offsets(one)[:2] for marked in keys.marked_lists(row) or () for one in marked]
            spans += [(span.start, span.end) for span in keys.rejected_of(row)]
            text = keys.first_of(row, keys.TEXTS)
            yield text if isinstance(text, str) else "", [span for span in spans if all(map(is_integer, span))]

    return choose_counted(places())


def _places(spans: Iterable[tuple[Any, ...]]) -> list[str]:
    """List start, end and label of spans as strings, to compare values of any types."""
    return sorted(str([*one[:3]]) for one in spans)


def _offsets(one: Any) -> tuple[Any, ...]:
    """Return the fields of a RawSpan for a span in either form; anything else has none, and can't be used."""
    if isinstance(one, dict):
        label = keys.first_of(one, keys.NAMES)
        label = label[0] if isinstance(label, list) and len(label) == 1 else label
        return keys.first_of(one, keys.STARTS), keys.first_of(one, keys.ENDS), label, None, one.get("text")
    return tuple(one[:3]) if isinstance(one, list) and len(one) >= 3 else (None, None, None)
