"""What a merged Doc carries, and how to get at it.

A Doc carries three views of its annotation:

1. `doc.ents`, flat, is what the model is trained on. Tokens that belong to gold without token boundaries, or to no
   entity on a text that isn't complete for all labels, have spaCy's missing value.
2. `doc.spans["gold"]` holds every accepted span that has token boundaries, or was given some by the alignment policy;
   `doc.spans["incorrect_spans"]` every rejected one that has them.
3. `doc.user_data["labelwise"]` holds what scoring needs to be honest: `gold`, all accepted spans as
   `[start, end, label, data sets]` in characters, `rejected`, all rejected ones as `[start, end, label]`, and
   `uncovered`, the labels that the text isn't complete for; if there are any, also `datasets`, the names of the data
   sets that the text is from; and `doc`, the name of the document that it is, if its tasks have one (`meta.doc`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec
from spacy.tokens import Doc

from labelwise.common.errors import InputError
from labelwise.common.spans import SpanKey, State

Coverage = Literal["by-label", "drop", "outside"]

GOLD = "gold"
INCORRECT = "incorrect_spans"  # the name that the configs give to spaCy's ner component
USER_DATA = "labelwise"


def check_coverage(value: str) -> Coverage:
    """Check a policy for texts that aren't complete for all labels.

    RAISES (InputError): there is no such policy.
    """
    if value not in get_args(Coverage):
        raise InputError(f"coverage {value!r}: give {' or '.join(get_args(Coverage))}")
    return value  # type: ignore[return-value]


def set_user_data(
    doc: Doc,
    gold: Mapping[SpanKey, list[str]],
    rejected: Iterable[SpanKey],
    uncovered: Mapping[str, str],
    datasets: Iterable[str],
    name: str = "",
) -> None:
    """Store all accepted spans, each with the names of its data sets, all rejected ones, and what isn't covered.

    datasets (Iterable[str]): those that the text is from.
    name (str): the document that it is.
    """
    spans: list[list[Any]] = [[*key, names] for key, names in gold.items()]
    doc.user_data[USER_DATA] = {
        "gold": spans,
        "rejected": [list(key) for key in rejected],
        "uncovered": dict(sorted(uncovered.items())),
        **({"datasets": list(datasets)} if uncovered else {}),
        **({"doc": name} if name else {}),
    }


class _Carried(msgspec.Struct):
    """What a merge stores with a text; see 3. above."""

    gold: list[tuple[int, int, str, list[str]]]
    uncovered: dict[str, State]
    rejected: list[tuple[int, int, str]] = []
    datasets: list[str] = []
    doc: str = ""


def check_user_data(user_data: Any) -> None:
    """Check what a merge stored with a text, if one did.

    RAISES (TypeError or ValueError): it isn't what `set_user_data` stores.
    """
    if not isinstance(user_data, dict):
        raise TypeError(f"user data that is no map: {user_data!r:.40}")
    if USER_DATA in user_data:
        msgspec.convert(user_data[USER_DATA], _Carried)


def is_merged(doc: Doc) -> bool:
    """Tell whether a Doc comes from a merge."""
    carried = doc.user_data.get(USER_DATA)
    return isinstance(carried, dict) and carried.keys() >= {"gold", "uncovered"}


def all_gold(doc: Doc) -> set[SpanKey]:
    """Return all accepted spans of a merged Doc, even those without token boundaries."""
    return {(start, end, label) for start, end, label, _ in doc.user_data[USER_DATA]["gold"]}


def entities(doc: Doc) -> set[SpanKey]:
    """Return the entities of a Doc, in characters."""
    return {(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents}


def uncovered(doc: Doc) -> Mapping[str, State]:
    """Return the labels that a merged Doc isn't complete for."""
    return doc.user_data[USER_DATA]["uncovered"]
