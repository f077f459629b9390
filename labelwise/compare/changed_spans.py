"""List errors that only one of two revisions makes."""

from typing import Any, Literal, NamedTuple

import pyarrow.compute as pc

from labelwise.compare.revisions import Revision
from labelwise.evaluate.tables import Tables

COLUMNS = ["key", "doc", "kind", "cause", "before", "after"]
COLUMNS += [f"{side}_{name}" for side in ("gold", "predicted") for name in ("start", "end", "label", "text")]


class ChangedSpan(NamedTuple):
    """An error that is fixed or new.

    label, words (str): of gold, or else of the prediction.
    text (str): document, or else the key of the text.
    """

    change: Literal["fixed", "new"]
    mistake: str
    label: str
    words: str
    text: str
    before: str
    after: str
    cause: str = ""


def changed_spans(baseline: Revision, other: Revision, *, dev: bool = False) -> list[ChangedSpan]:
    """List the errors fixed and new since the baseline, by label, on common texts and gold.

    dev (bool): on dev, for error analysis; empty without an evaluation on dev.
    """
    before, now = (one.tables._replace(split="dev" if dev else one.metrics.split) for one in (baseline, other))
    (gold, wrong), (gold_now, wrong_now) = map(_read, (before, now))
    texts = _keys(before) & _keys(now)
    changes: list[ChangedSpan] = []
    for change, mistakes, others in (("fixed", wrong, wrong_now), ("new", wrong_now, wrong)):
        for place, row in mistakes.items():
            shared = place in gold and place in gold_now if row["gold_label"] else place[0] in texts
            if shared and place not in others:
                changes.append(_changed(change, row))  # type: ignore[arg-type]
    return sorted(changes, key=lambda span: (span.label, span.change != "new", span.words, span.text))


def _keys(tables: Tables) -> set[str]:
    return {key for texts, _ in tables.groups(("key",), ()) for key in texts["key"].to_pylist()}


def _read(tables: Tables) -> tuple[set[tuple[Any, ...]], dict[tuple[Any, ...], dict[str, Any]]]:
    rows = tables.read_pairs(COLUMNS, pc.field("kind") != "unscored").to_pylist()
    gold = {_place(row, "gold") for row in rows if row["gold_label"]}
    wrong = [row for row in rows if row["kind"] not in ("right", "nested")]
    return gold, {_place(row, "gold" if row["gold_label"] else "predicted"): row for row in wrong}


def _place(row: dict[str, Any], side: str) -> tuple[Any, ...]:
    return row["key"], row[f"{side}_start"], row[f"{side}_end"], row[f"{side}_label"], side


def _changed(change: Literal["fixed", "new"], row: dict[str, Any]) -> ChangedSpan:
    label, words = row["gold_label"] or row["predicted_label"], row["gold_text"] or row["predicted_text"]
    text, cause = row["doc"] or row["key"], row["cause"] or ""
    return ChangedSpan(change, row["kind"], label, words, text, row["before"], row["after"], cause)
