"""Answers about one text, made as a merge reads them, and what became of them."""

from collections import Counter
from typing import Any

from labelwise.corpus.ledger import outcome_of
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import Merged, names_of
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, check_task

NAMES = "abcdefghijklmnopqrstuvwxyz"


def make_answer(dataset: DataSet, line: int, task: Task) -> Answer:
    """Data sets are in the order of the first letters of their names."""
    check_task(task, list(task.meta or ()))
    return Answer(dataset, line, task, dataset.files[0], NAMES.find(dataset.name[0]))


def rows_of(merged: Merged) -> Counter[str]:
    return Counter(answer.outcome for answer in merged.answers)


def spans_of(merged: Merged) -> Counter[str]:
    """Those that are neither accepted nor rejected."""
    outcomes = [span.outcome for answer in merged.answers for span in answer.spans]
    standing = len(merged.accepted) + len(merged.rejected)
    assert outcomes.count("") == standing - len(merged.added), "each span has one outcome, or counts"
    return Counter(outcome_of(outcome) for outcome in outcomes if outcome)


def said(spans: dict[Any, Any]) -> dict[Any, list[str]]:
    return {key: names_of(given) for key, given in spans.items()}
