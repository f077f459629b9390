"""What to do where annotations disagree: each policy is a function, chosen by its name.

Those that need tokens, `overlap` and `alignment`, are in `docs`.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from labelwise.answers import Answer
from labelwise.datasets import Split
from labelwise.errors import InputError

Duplicates = Literal["latest", "union", "error"]
Conflicts = Literal["accept-wins", "reject-wins", "latest"]
Overlap = Literal["longest", "first", "error"]
Coverage = Literal["missing", "drop", "outside"]
Alignment = Literal["drop", "expand", "contract", "error"]
Unmarked = Literal["missing", "outside"]


class Policies(msgspec.Struct, frozen=True):
    """What to do where annotations disagree; the first value of each is the default.

    duplicates (str): a data set answered a text, or judged a span, more than once: the "latest" answer by timestamp,
        then line; the "union" of the accepted ones; an "error".
    conflicts (str): a span accepted by one data set and rejected by another.
    overlap (str): accepted spans that overlap, where only one can be an entity: the "longest" in characters, then the
        label declared first, then the earlier start; the one whose label was declared "first", then the earlier start,
        then the longer; an "error".
    coverage (str): what unmarked tokens mean on a text that isn't complete for all labels: "missing" values, `drop` the
        text from train, or "outside".
    alignment (str): an accepted span that doesn't fall on token boundaries: "drop" it from the entities, "expand" it to
        whole tokens, "contract" it to them, or an "error".
    """

    duplicates: Duplicates = "latest"
    conflicts: Conflicts = "accept-wins"
    overlap: Overlap = "longest"
    coverage: Coverage = "missing"
    alignment: Alignment = "drop"


def latest(group: Sequence[Answer]) -> list[Answer]:
    """Keep the latest answer of a data set about a text."""
    return [max(group, key=lambda answer: answer.order)]


def union(group: Sequence[Answer]) -> list[Answer]:
    """Keep all accepted answers of a data set about a text; if there is none, the latest."""
    return [answer for answer in group if answer.task.answer == "accept"] or latest(group)


def only(group: Sequence[Answer]) -> list[Answer]:
    """Allow one answer of a data set about a text.

    RAISES (InputError): there are more.
    """
    if len(group) > 1:
        places = ", ".join(answer.place for answer in group)
        raise InputError(f"{places}: data set {group[0].dataset.name!r} answers one text; choose latest or union")
    return list(group)


DUPLICATES = {"latest": latest, "union": union, "error": only}


def accept_wins(accepts: Sequence[Answer], rejects: Sequence[Answer]) -> bool:
    """Decide for the accepted span."""
    return True


def reject_wins(accepts: Sequence[Answer], rejects: Sequence[Answer]) -> bool:
    """Decide for the rejected span."""
    return False


def latest_wins(accepts: Sequence[Answer], rejects: Sequence[Answer]) -> bool:
    """Decide for the span with the latest time; for the accepted one if they are equal."""
    return max(answer.time for answer in accepts) >= max(answer.time for answer in rejects)


CONFLICTS = {"accept-wins": accept_wins, "reject-wins": reject_wins, "latest": latest_wins}


def missing_values(split: Split) -> Unmarked | None:
    """Give unmarked tokens the missing value."""
    return "missing"


def no_training(split: Split) -> Unmarked | None:
    """Leave the text out of train; elsewhere, give unmarked tokens the missing value."""
    return None if split == "train" else "missing"


def no_entities(split: Split) -> Unmarked | None:
    """Take unmarked tokens for no entities."""
    return "outside"


# For a text that isn't complete for all labels: what its unmarked tokens are; None leaves it out of the corpus.
COVERAGE = {"missing": missing_values, "drop": no_training, "outside": no_entities}
