"""Record the outcome of each text, row and span.

Jobs write columns of the three tables as MessagePack, because pyarrow would take 40 MB in each worker; the tables are
made from these when all jobs are done.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.annotations import SPAN_PROBLEMS, Problem, Reason
from labelwise.base.text import trim
from labelwise.corpus.manifest import Split
from labelwise.merge.buckets import Text
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.claims import SpanOutcome, SpanRef
from labelwise.merge.rules.decisions import DecisionOutcome
from labelwise.merge.rules.one_text import Merged
from labelwise.merge.rules.to_doc import Projection

SPAN_REASONS = (*SPAN_PROBLEMS, Reason.NOT_A_SPAN, Reason.OTHER_LABEL)  # of problems with less than a row
STATES = ("complete", "partial")
BATCH_ROWS = 2**12  # that a job holds before it writes them
SIZE = struct.Struct("<Q")  # of a batch, in bytes
NOBODY = (None, False, None)  # who, anonymous, when

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


class TextResult(NamedTuple):
    """The outcome of one text.

    chosen_by (str): what chose its split.
    why_not (str | None): why it is left out of the corpus; None if it isn't.
    made (Projection | None): its Doc; None if it is left out.
    """

    answers: Sequence[Answer]
    merged: Merged
    split: Split
    chosen_by: str
    why_not: str | None = None
    made: Projection | None = None


class AccountWriter:
    """Writes a part of the account: batches of the three tables, cut at texts, column by column."""

    def __init__(self, file: Path) -> None:
        """Open a new file."""
        self.texts: list[tuple[Any, ...]] = []
        self.rows: list[tuple[Any, ...]] = []
        self.spans: list[tuple[Any, ...]] = []
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("xb")

    def __enter__(self) -> "AccountWriter":
        """Begin to write."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Write the last batch, and close the file."""
        self.flush()
        self._file.close()

    def end_text(self) -> None:
        """Write a batch if there is enough for one."""
        if len(self.rows) + len(self.spans) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is held as a batch."""
        if self.texts or self.rows or self.spans:
            batch = encode([[*zip(*rows, strict=True)] for rows in (self.texts, self.rows, self.spans)])
            self._file.write(SIZE.pack(len(batch)) + batch)
            self.texts, self.rows, self.spans = [], [], []


def read_batches(file: Path) -> Iterator[Sequence[Sequence[Sequence[Any]]]]:
    """Yield the batches of a part of the account: the columns of each table, or none if it has no rows."""
    with file.open("rb") as batches:
        while head := batches.read(SIZE.size):
            yield decode(batches.read(*SIZE.unpack(head)))


def add_problem(account: AccountWriter, problem: Problem, dataset: str, file: str, kind: str | None = None) -> None:
    """Add a row, or a span outside any row, that can't be used.

    file (str): the name of its source, as declared, unless it has a file of its own.
    kind (str | None): "decision" for a decision.
    """
    place = (dataset, problem.file or file, problem.line)
    why = (problem.reason, problem.detail or None, None)
    if problem.reason in SPAN_REASONS:
        account.spans.append((None, None, None, *place, *[None] * 6, *why, False, False))
    else:
        account.rows.append((None, None, *place, *NOBODY, kind, None, *why, [], [], [], [], False, False))


def add_decision(account: AccountWriter, judged: DecisionOutcome, text: str, row: int | None) -> None:
    """Add a decision.

    text (str): the key of its text.
    row (int | None): its number among the rows of the text; None without such a text.
    """
    decision = judged.decision
    place = (decision.dataset, judged.row.file, judged.row.line)
    why = (judged.reason, judged.detail or None, None)
    account.rows.append((text, row, *place, *NOBODY, "decision", decision.verdict, *why, [], [], [], [], False, False))


def add_text(account: AccountWriter, text: Text, found: TextResult) -> None:
    """Add a text, its rows and its spans.

    RAISES (RuntimeError): a span has no outcome, which is a bug in this program.
    """
    key, answers, merged, made = text.key.hex(), found.answers, found.merged, found.made
    split, words = (found.split, len(made.doc)) if made else (None, None)
    states = [sorted(label for label, state in merged.coverage.items() if state == name) for name in STATES]
    same = [other.hex() for other in sorted(text.variants())]
    account.texts.append((key, split, found.why_not, found.chosen_by, words, merged.doc or None, *states, same))
    counting = (*merged.gold.values(), *merged.rejected.values())
    not_covered = {claims[0].span: SpanOutcome(Reason.NOT_COVERED) for claims in counting}
    outcomes = merged.spans | (made.spans if made else not_covered)
    refs = [(answer.number, place) for answer in answers for place in range(len(answer.task.all_spans))]
    refs += [(row, 0) for row, _ in enumerate(merged.judged, len(answers)) if (row, 0) in outcomes]
    numbers = {ref: number for number, ref in enumerate(refs)}
    if numbers.keys() != outcomes.keys():
        lost = min(numbers.keys() ^ outcomes.keys())
        raise RuntimeError(f"{answers[0].place}: the span {lost} of the text has no outcome; please report this")
    for answer in answers:
        row, task = merged.rows[answer.number], answer.task
        place = (answer.dataset.name, answer.file.name, task.line)
        who = (answer.who[0] or None, bool(answer.who[1]), task.when)
        versions = merged.versions.get(answer.number, [])
        labels = (list(row.covered), list(row.superseded), list(row.superseded.values()), versions)
        why = (row.reason, None, row.winner)
        flags = (task.review, answer.number in merged.out_of_order)
        account.rows.append((key, answer.number, *place, *who, answer.kind, task.answer, *why, *labels, *flags))
        shown = "" if row.reason == Reason.IGNORED else merged.text
        for position, span in enumerate(task.all_spans):
            ref = (answer.number, position)
            own = (answer.dataset.name, span.file or answer.file.name, span.line if span.file else task.line)
            start, end = (None, None) if span.problem else (span.start, span.end)
            quoted = None if span.problem else shown[span.start : span.end] or None
            verdict = span.verdict if span.problem else answer.verdict(span)
            what = (start, end, span.label, span.renamed or None, quoted, verdict)
            account.spans.append((key, answer.number, numbers[ref], *own, *what, *_ends(outcomes[ref], numbers)))
    for number, judged in enumerate(merged.judged, len(answers)):
        add_decision(account, judged, key, number)
        if (outcome := outcomes.get((number, 0))) and (added := judged.decision.added):
            start, end = trim(merged.text, *added)
            place = (judged.decision.dataset, judged.row.file, judged.row.line)
            what = (start, end, judged.decision.label, None, merged.text[start:end], "accept")
            account.spans.append((key, number, numbers[number, 0], *place, *what, *_ends(outcome, numbers)))


def _ends(outcome: SpanOutcome, numbers: Mapping[SpanRef, int]) -> tuple[Any, ...]:
    """Return the columns of a span's outcome."""
    winner = None if outcome.winner is None else numbers[outcome.winner]
    return outcome.reason, outcome.detail or None, winner, outcome.realigned, outcome.learnt
