"""Tasks and spans from any tool, and the outcomes that a merge gives them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Literal

import msgspec

from labelwise.base.text import State

Verdict = Literal["accept", "reject", "ignore"]
# The question: all spans, yes or no on some, something else (about the spans that it shows), or nothing yet; or its
# text has tags.
Kind = Literal["complete", "binary", "about spans", "other", "unanswered", "tags in text"]

# Keys of records that our own exports write, and readers read.
DOCUMENT = "doc"  # key of `meta`: name of the text's document
PREDICTED = "predicted"  # key of `meta`: marks predicted spans
UNCOVERED = "_labelwise_uncovered"  # key of a row: labels that its text isn't complete for
REVIEW = "_labelwise_review"  # key of a row: marks an answer that decides between several annotators
REJECTED = "_labelwise_rejected"  # key of a row: rejected spans
PROBLEM = "_labelwise_problem"  # key of a row: annotation that `convert-brat` couldn't convert


class Reason(StrEnum):
    """The outcome of a row or of a span, in the words of docs/outcomes.md."""

    # rows
    MERGED = "merged"
    SUPERSEDED = "superseded"  # a span, too
    SAME_ANSWER = "same answer"
    REJECTED = "rejected"  # a span, too
    IGNORED = "ignored"  # a span, too
    PREDICTION = "prediction"
    UNKNOWN_ANSWER = "unknown answer"
    UNSUPPORTED_INTERFACE = "unsupported interface"
    SPLIT_CONFLICT = "split conflict"
    NOT_ANNOTATED = "not annotated"
    BAD_JSON = "bad JSON"
    NO_TEXT = "no text"
    MALFORMED = "malformed"
    INCOMPLETE_READ = "incomplete read"  # the reader found fewer rows or spans than the file has
    UNSUPPORTED_FORMAT = "unsupported format"
    # rows that are decisions
    CORRECTED = "corrected"
    CONFIRMED = "confirmed"
    POLICY_QUESTION = "policy question"
    REPLACED_DECISION = "replaced decision"
    STALE_DECISION = "stale decision"
    # spans
    ENTITY = "entity"
    SAME_SPAN = "same span"
    NESTED = "nested"
    CROSSING = "crossing"
    MISALIGNED = "misaligned"
    OUTVOTED = "outvoted"
    CONFLICT = "conflict"
    REMOVED = "removed by a decision"
    REJECTED_MISALIGNED = "rejected, misaligned"
    NOT_FULLY_ANNOTATED = "text not fully annotated"
    DUPLICATE = "duplicate"
    UNDECLARED = "undeclared label"
    INVALID = "invalid"
    NOT_A_SPAN = "not a span"  # an annotation of another kind, such as a relation
    OTHER_LABEL = "other label"  # brat's, which `labels` of the section brat leaves out
    MENTION_DIFFERS = "mention differs"  # brat's: it quotes other words than those at its offsets
    DISCONTINUOUS = "discontinuous"  # brat's, in several pieces
    NOT_DECODABLE = "not decodable"  # brat's, in another encoding
    IN_SUPERSEDED = "in superseded task"
    IN_SAME_ANSWER = "in same answer task"
    IN_REJECTED = "in rejected task"
    IN_IGNORED = "in ignored task"
    IN_PREDICTION = "in prediction task"
    IN_UNKNOWN_ANSWER = "in unknown answer task"
    IN_UNSUPPORTED_INTERFACE = "in unsupported interface task"
    IN_SPLIT_CONFLICT = "in split conflict task"


# Rows and spans that can't be used: `--strict` fails on them.
ROW_PROBLEMS = (
    *(Reason.BAD_JSON, Reason.NO_TEXT, Reason.MALFORMED, Reason.INCOMPLETE_READ),
    *(Reason.UNSUPPORTED_FORMAT, Reason.UNKNOWN_ANSWER),
)
SPAN_PROBLEMS = (Reason.INVALID, Reason.UNDECLARED, Reason.MENTION_DIFFERS, Reason.DISCONTINUOUS, Reason.NOT_DECODABLE)


class Span(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A span of a text: start and end in code points, end exclusive, stripped of white space.

    verdict (str | None): verdict on this span; None for the task's answer.
    file, line: its place, such as a line of brat's annotation file; empty for the task's.
    renamed (str): its label in the source, if that differs.
    problem (str): why it has no usable offsets; empty if it has.
    fits (tuple[str, ...]): other readings of its offsets that yield the quoted words.
    """

    start: int
    end: int
    label: str
    verdict: Verdict | None = None
    file: str = ""
    line: int = 0
    renamed: str = ""
    problem: str = ""
    fits: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One answer to one question about one text.

    unusable (tuple[Span, ...]): spans with a problem, left out of `spans`.
    answer (str): "accept", "reject" or "ignore"; other values can't be used.
    who (str): annotator or session; empty if unknown.
    when (float | None): seconds since 1970.
    review (bool): decides between several annotators.
    predicted (bool): a pipeline made the spans; unsaved if `when` is None.
    uncovered (dict): labels that an earlier merge says aren't fully annotated.
    """

    line: int
    text: str
    spans: tuple[Span, ...] = ()
    unusable: tuple[Span, ...] = ()
    answer: str = "accept"
    kind: Kind = "complete"
    who: str = ""
    when: float | None = None
    review: bool = False
    predicted: bool = False
    doc: str = ""
    uncovered: dict[str, State] = {}
    meta: dict[str, str] = {}

    @property
    def all_spans(self) -> tuple[Span, ...]:
        """The usable spans, then the unusable ones."""
        return self.spans + self.unusable


class Problem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row, or an annotation outside any row, that can't be used; line 0 is a whole file."""

    line: int
    reason: Reason
    detail: str = ""
    file: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


class UnreadRow(Problem, frozen=True, array_like=True, gc=False):
    """An unannotated row with a text, for prediction."""

    text: str = ""
    meta: dict[str, str] = {}


Item = Task | Problem  # what a reader yields


def incomplete_read(line: int, total: int, what: str, read: int) -> Problem:
    """Return the problem of an incompletely read file or row; `line` is 0 if unknown."""
    return Problem(line, Reason.INCOMPLETE_READ, f"only {read:,} of {total:,} {what} were read")


def rename_labels(task: Task, rename: Mapping[str, str]) -> Task:
    """Rename a task's labels; renames may swap two names."""
    if not rename:
        return task
    return msgspec.structs.replace(
        task,
        spans=tuple(_renamed(task.spans, rename)),
        unusable=tuple(_renamed(task.unusable, rename)),
        uncovered={rename.get(label, label): state for label, state in task.uncovered.items()},
    )


def _renamed(spans: Iterable[Span], rename: Mapping[str, str]) -> Iterator[Span]:
    for span in spans:
        new = rename.get(span.label)
        yield span if new is None else msgspec.structs.replace(span, label=new, renamed=span.label)


def answer_digest(spans: Iterable[tuple[int, int]]) -> str:
    """Digest an answer for one label: start and end of its accepted spans."""
    return hashlib.blake2b(msgspec.json.encode(sorted(spans)), digest_size=6).hexdigest()
