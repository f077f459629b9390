"""Record the outcome of each text, row and span.

Jobs write columns of the three tables as MessagePack, because pyarrow would take 40 MB in each worker. Most columns
have few values: their tuple is written once per batch (`corpus.tables.OWN` names the other columns).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.annotations import SPAN_PROBLEMS, Problem, Reason
from labelwise.base.text import trim
from labelwise.corpus.columns import Columns
from labelwise.corpus.manifest import Split
from labelwise.merge.buckets import Text
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.claims import SpanOutcome, SpanRef
from labelwise.merge.rules.decisions import DecisionOutcome
from labelwise.merge.rules.one_text import Merged
from labelwise.merge.rules.to_doc import Projection

SPAN_REASONS = (*SPAN_PROBLEMS, Reason.NOT_A_SPAN, Reason.OTHER_LABEL)  # problems of spans, not of rows
STATES = ("complete", "partial")
BATCH_ROWS = 2**12  # held before they are written
SIZE = struct.Struct("<Q")  # of a batch, in bytes
NOBODY = (None, False)  # who, anonymous
NO_SPAN = (None, None, None)  # label, renamed, verdict
NO_LABELS = ((), (), (), (), False, False)  # the last columns of a row

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Columns]).decode


class TextResult(NamedTuple):
    """A text's outcome: its Doc, or why it isn't in the corpus."""

    answers: Sequence[Answer]
    merged: Merged
    split: Split
    chosen_by: str
    why_not: str | None = None
    projection: Projection | None = None


class TableWriter:
    """Collects rows of a table for a batch.

    own (list[tuple]): values of each row in the columns of `corpus.tables.OWN`, and a number for the others.
    shared (dict[tuple, int]): tuples of values in the other columns, by number.
    """

    def __init__(self) -> None:
        self.own: list[tuple[Any, ...]] = []
        self.shared: dict[tuple[Any, ...], int] = {}

    def add(self, own: tuple[Any, ...], *shared: Any) -> None:
        """Add a row: own values, then shared ones in the schema's order."""
        self.own.append((*own, self.shared.setdefault(shared, len(self.shared))))


class AccountWriter:
    """Writes a part of the tables in batches, cut at texts, column by column."""

    def __init__(self, file: Path) -> None:
        self._begin()
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("xb")

    def __enter__(self) -> "AccountWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.flush()
        self._file.close()

    def _begin(self) -> None:
        self.texts, self.rows, self.spans = TableWriter(), TableWriter(), TableWriter()

    def end_text(self) -> None:
        """Write a batch if it is large enough."""
        if len(self.rows.own) + len(self.spans.own) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the waiting rows as a batch."""
        tables = (self.texts, self.rows, self.spans)
        if any(table.own for table in tables):
            batch = encode([([*zip(*table.own, strict=True)], [*table.shared]) for table in tables])
            self._file.write(SIZE.pack(len(batch)) + batch)
            self._begin()


def read_batches(file: Path) -> Iterator[Sequence[Columns]]:
    """Yield a part's batches: columns of each table."""
    with file.open("rb") as batches:
        while head := batches.read(SIZE.size):
            yield decode(batches.read(*SIZE.unpack(head)))


def add_problem(account: AccountWriter, problem: Problem, dataset: str, file: str, kind: str | None = None) -> None:
    """Add an unusable row, or a span outside any row; a decision's kind is "decision"."""
    file = problem.file or file
    why = (problem.reason, problem.detail or None, None)
    if problem.reason in SPAN_REASONS:
        account.spans.add(
            (None, None, None, problem.line, None, None, None), dataset, file, *NO_SPAN, *why, False, False
        )
    else:
        own = (None, None, problem.line, None)
        account.rows.add(own, dataset, file, *NOBODY, kind, None, *why, *NO_LABELS)


def add_decision(account: AccountWriter, decided: DecisionOutcome, text: str, row: int | None) -> None:
    """Add a decision, with its number among the text's rows; None without a text."""
    decision = decided.decision
    what = (decision.dataset, decided.row.file, *NOBODY, "decision", decision.verdict)
    why = (decided.reason, decided.detail or None, None)
    account.rows.add((text, row, decided.row.line, None), *what, *why, *NO_LABELS)


def add_text(account: AccountWriter, text: Text, result: TextResult) -> None:
    """Add a text, its rows and its spans; a span without an outcome is a bug."""
    key, answers, merged, projection = text.key.hex(), result.answers, result.merged, result.projection
    split, words = (result.split, len(projection.doc)) if projection else (None, None)
    states = [sorted(label for label, state in merged.coverage.items() if state == name) for name in STATES]
    same = [other.hex() for other in sorted(text.variants)]
    account.texts.add((key, split, result.why_not, result.chosen_by, words, merged.doc or None, *states, same))
    counting = (*merged.gold.values(), *merged.rejected.values())
    not_covered = {claims[0].span: SpanOutcome(Reason.NOT_FULLY_ANNOTATED) for claims in counting}
    outcomes = merged.spans | (projection.spans if projection else not_covered)
    refs = [(answer.number, place) for answer in answers for place in range(len(answer.task.all_spans))]
    refs += [(row, 0) for row, _ in enumerate(merged.decisions, len(answers)) if (row, 0) in outcomes]
    numbers = {ref: number for number, ref in enumerate(refs)}
    if numbers.keys() != outcomes.keys():
        lost = min(numbers.keys() ^ outcomes.keys())
        raise RuntimeError(f"{answers[0].place}: the span {lost} of the text has no outcome; please report this")
    for answer in answers:
        row, task, file = merged.rows[answer.number], answer.task, answer.file.name
        name, of = answer.dataset.name, (key, answer.number)
        account.rows.add(
            (*of, task.line, task.when),
            name,
            file,
            answer.who[0] or None,
            bool(answer.who[1]),
            answer.kind,
            task.answer,
            row.reason,
            repr(task.answer) if row.reason == Reason.UNKNOWN_ANSWER else None,
            row.kept,
            tuple(row.covered),
            tuple(row.superseded),
            tuple(row.superseded.values()),
            tuple(merged.versions.get(answer.number, ())),
            task.review,
            answer.number in merged.out_of_order,
        )
        shown = "" if row.reason == Reason.IGNORED else merged.text
        for position, span in enumerate(task.all_spans):
            ref = (answer.number, position)
            start, end = (None, None) if span.problem else (span.start, span.end)
            quoted = None if span.problem else shown[span.start : span.end] or None
            verdict = span.verdict if span.problem else answer.verdict(span)
            values = (*of, numbers[ref], span.line if span.file else task.line, start, end, quoted)
            what = (name, span.file or file, span.label, span.renamed or None, verdict)
            account.spans.add(values, *what, *_ends(outcomes[ref], numbers))
    for number, decided in enumerate(merged.decisions, len(answers)):
        add_decision(account, decided, key, number)
        if (outcome := outcomes.get((number, 0))) and (added := decided.decision.added):
            start, end = trim(merged.text, *added)
            values = (key, number, numbers[number, 0], decided.row.line, start, end, merged.text[start:end])
            what = (decided.decision.dataset, decided.row.file, decided.decision.label, None, "accept")
            account.spans.add(values, *what, *_ends(outcome, numbers))


def _ends(outcome: SpanOutcome, numbers: Mapping[SpanRef, int]) -> tuple[Any, ...]:
    kept = None if outcome.kept is None else numbers[outcome.kept]
    return outcome.reason, outcome.detail or None, kept, outcome.realigned, outcome.learned
