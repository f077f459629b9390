"""Policies for disagreements: each is a table of its values."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec
from spacy.tokens import Doc, Span

from labelwise.base.errors import InputError
from labelwise.base.settings import check_choices
from labelwise.base.text import SpanKey
from labelwise.corpus.annotation import Coverage
from labelwise.merge.rules.answers import Answer, by_time

Duplicates = Literal["latest", "union"]
Annotators = Literal["half", "all", "union"]  # or names
Conflicts = Literal["accept-wins", "reject-wins"]
Overlap = Literal["longest", "first"]
Alignment = Literal["drop", "expand", "contract"]
Unmarked = Literal["missing", "outside"]


class Policies(msgspec.Struct, frozen=True):
    """Policies for disagreements (docs/settings.md). The first value of each is the default."""

    duplicates: Duplicates = "latest"
    annotators: str = "half"
    conflicts: Conflicts = "accept-wins"
    overlap: Overlap = "longest"
    coverage: Coverage = "by-label"
    alignment: Alignment = "drop"

    def __post_init__(self) -> None:
        check_choices(self)


def latest(group: Sequence[Answer]) -> list[Answer]:
    """Keep a person's latest answer about a text."""
    return by_time(group)[-1:]


def union(group: Sequence[Answer]) -> list[Answer]:
    """Keep a person's accepted answers about a text; without any, the latest."""
    return [answer for answer in group if answer.task.answer == "accept"] or latest(group)


DUPLICATES = {"latest": latest, "union": union}


def choose_duplicates(group: Sequence[Answer], policy: str) -> list[Answer]:
    """Choose among a person's answers: first by the datasets' own policies, then among the rest.

    policy (str): for the rest. If it keeps an answer of a dataset with its own policy, all answers chosen by that
        count.
    """
    by_policy: dict[str, list[Answer]] = {}
    for answer in group:
        if answer.dataset.duplicates:
            by_policy.setdefault(answer.dataset.name, []).append(answer)
    if not by_policy:
        return DUPLICATES[policy](group)
    chosen = {name: DUPLICATES[answers[0].dataset.duplicates](answers) for name, answers in by_policy.items()}
    others = [answer for answer in group if not answer.dataset.duplicates]
    last = {name: by_time(answers)[-1] for name, answers in chosen.items()}
    kept = {answer.number for answer in DUPLICATES[policy]([*others, *last.values()])}
    together = [answer for name, answers in chosen.items() if last[name].number in kept for answer in answers]
    return sorted(
        [*(answer for answer in others if answer.number in kept), *together], key=lambda answer: answer.number
    )


# Share of the annotators who must have annotated a span; with 0, all spans count.
ANNOTATORS = {"half": 0.5, "all": 1, "union": 0}


def names_in(annotators: str) -> list[str]:
    """Return the names in a value of `annotators`, in order; none for a policy."""
    return [] if annotators in ANNOTATORS else [name.strip() for name in annotators.split(",")]


def unknown_annotators(annotators: str, known: Collection[str]) -> list[str]:
    """Return unknown names in `annotators`; refuse a value without a known one."""
    names = names_in(annotators)
    unknown = [name for name in names if name not in known]
    if names and unknown == names:
        listed = ", ".join(sorted(filter(None, known))) or "none"
        raise InputError(
            f"section merge: annotators: {annotators!r} is neither a policy ({', '.join(ANNOTATORS)}) nor an "
            f"annotator who answered ({listed}); correct it in project.yml"
        )
    return unknown


# Whether an accepted span counts where another dataset rejects it.
CONFLICTS = {"accept-wins": True, "reject-wins": False}


# The value of unmarked tokens in texts that aren't complete for all labels, in train and in other splits; None leaves
# such texts out of the corpus.
COVERAGE: dict[str, tuple[Unmarked | None, Unmarked]] = {
    "by-label": ("missing", "missing"),
    "drop": (None, "missing"),
    "outside": ("outside", "outside"),
}


def contract(doc: Doc, key: SpanKey) -> Span | None:
    """Return the tokens inside the span, stripped of white space, if any."""
    span = doc.char_span(*key, alignment_mode="contract")
    if span is None:
        return None
    words = [token.i for token in span if not token.text.isspace()]
    return Span(doc, words[0], words[-1] + 1, label=key[2]) if words else None


# For spans that aren't on token boundaries.
ALIGNMENT: dict[str, Callable[[Doc, SpanKey], Span | None]] = {
    "drop": lambda doc, key: None,
    "expand": lambda doc, key: doc.char_span(*key, alignment_mode="expand"),
    "contract": contract,
}


Tokens = tuple[int, int]  # start and end, the end exclusive


class Flat(NamedTuple):
    """Spans without overlaps, and the others, each with an overlapping kept span."""

    kept: list[SpanKey]
    lost: list[tuple[SpanKey, SpanKey]]


def flatten(spans: Mapping[SpanKey, Tokens], labels: Sequence[str], policy: str) -> Flat:
    """Keep spans that share no token with a kept span, in order of the policy, then of declared labels."""
    in_order = sorted(spans.values())
    if all(one[1] <= other[0] for one, other in pairwise(in_order)):  # as in nearly all texts
        return Flat([*spans], [])
    owner: dict[int, SpanKey] = {}
    kept, lost = [], []
    declared = {label: number for number, label in enumerate(labels)}
    for key in sorted(spans, key=lambda key: OVERLAP[policy](key[0], key[1], declared[key[2]])):
        tokens = range(*spans[key])
        if owner.keys().isdisjoint(tokens):
            owner.update(dict.fromkeys(tokens, key))
            kept.append(key)
        else:
            lost.append((key, next(owner[token] for token in tokens if token in owner)))
    return Flat(kept, sorted(lost))


# The order of accepted spans that overlap, by start and end in characters, and the label's place in the declaration.
OVERLAP: dict[str, Callable[[int, int, int], tuple[int, ...]]] = {
    "longest": lambda start, end, label: (start - end, label, start),
    "first": lambda start, end, label: (label, start, start - end),
}
