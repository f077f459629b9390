"""Describe rows and spans line by line: outcome, replacement, and deciding setting."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS, Reason
from labelwise.corpus import queries
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.tables import read_groups
from labelwise.why.account import Account, Row
from labelwise.why.deciders import SPLITS, decider
from labelwise.why.predicted import PredictedSpan, TrainSpan

MAX_TEXT_CHARS = 150  # of a shown text
PROBLEM_ROWS = (*ROW_PROBLEMS, Reason.NOT_ANNOTATED, Reason.POLICY_QUESTION, Reason.STALE_DECISION)
PROBLEM_SPANS = (*SPAN_PROBLEMS, Reason.NOT_A_SPAN)


def tell(account: Account, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about a text.

    settings (Mapping): the manifest's.
    """
    yield from tell_text(account, settings)
    for number, row in enumerate(account.rows):
        spans = [account.spans[n] for n in account.wanted_spans if account.spans[n]["row"] == row["row"]]
        if number in account.wanted_rows or spans:
            yield from tell_row(account, row, settings)
            for span in spans:
                yield from tell_span(account, span, settings)
            if not spans and number in account.wanted_rows and row["reason"] == Reason.MERGED:
                yield "    no span here"
    if not account.rows:
        for number in account.wanted_spans:
            yield from tell_span(account, account.spans[number], settings)


def tell_problems(corpus: Path) -> Iterator[str]:
    """Yield a line for each row and span that can't be used, or needs a person: dataset, file, line, reason, details.

    RAISES (InputError): if a merge hasn't written the tables.
    """
    for group in read_groups(corpus, stopped=True):
        for table, reasons in ((group.rows, PROBLEM_ROWS), (group.spans, PROBLEM_SPANS)):
            for row in queries.where(table, "reason", reasons).to_pylist():
                name = f"{row['dataset']}\t" if row["dataset"] else ""
                yield f"{name}{row['file']}:{row['line']}\t{queries.describe(row)}"


def tell_text(account: Account, settings: Mapping[str, Any]) -> Iterator[str]:
    """Name the text and its split."""
    if not (text := account.text):
        return
    name = f"document {text['doc']}, " if text["doc"] else ""
    if text["split"]:
        where = f"in {text['split']}, {SPLITS[text['chosen_by']].format(**settings)}"
    else:
        where = f"not in the corpus: {text['reason']}"
        if text["reason"] == "not fully annotated":
            where += f", {decider(Reason.NOT_FULLY_ANNOTATED, settings, '')}"
    words = f": {_shorten(account)!r}" if account.shown else ""
    yield f"Text {text['text']}, {name}{where}{words}"


def _shorten(account: Account) -> str:
    starts = [account.spans[n]["start"] for n in account.wanted_spans if account.spans[n]["start"] is not None]
    start = max(0, min(starts, default=0) - MAX_TEXT_CHARS // 3)
    end = start + MAX_TEXT_CHARS
    text = " ".join(account.shown[start:end].split())
    return f"{'… ' if start else ''}{text}{' …' if end < len(account.shown) else ''}"


def tell_row(account: Account, row: Row, settings: Mapping[str, Any]) -> Iterator[str]:
    """Describe a row's outcome."""
    words = ", ".join(filter(None, (row["who"], row["kind"], row["answer"])))
    yield f"  {_place(row)}{f', {words}' if words else ''}: {queries.describe(row)}"
    if kept_row := account.kept_row(row):
        yield f"    instead: {_place(kept_row)}{_by(kept_row)}"
    if words := decider(row["reason"], settings, row["dataset"]):
        yield f"    {words}"
    if row["reason"] == Reason.MERGED:
        for label, number in zip(row["superseded"] or (), row["superseded_by"] or (), strict=True):
            overruled_by = "" if number is None else f" by {_place(account.rows[number])}{_by(account.rows[number])}"
            yield f"    superseded for {label}{overruled_by}, {decider(Reason.SUPERSEDED, settings, row['dataset'])}"


def tell_span(account: Account, span: Row, settings: Mapping[str, Any]) -> Iterator[str]:
    """Describe a span's outcome."""
    row = account.row_of(span)
    of_row = row is not None and (row["file"], row["line"]) == (span["file"], span["line"])
    own, notes = "" if of_row else f"{span['file']}:{span['line']}, ", []
    if span["renamed"]:
        notes.append(f"renamed from {span['renamed']}")
    if span["realigned"]:
        notes.append("moved to whole tokens by `alignment`")
    if span["learned"]:
        notes.append("learned by a head for each label")
    if account.doc and span["reason"] in (Reason.MISALIGNED, Reason.REJECTED_MISALIGNED):
        notes.append(f"inside {_tokens(account.doc, span)}")
    outcome = "; ".join((queries.describe(span), *notes))
    yield f"    {own}{_span(span)}: {outcome}"
    if kept := account.kept_span(span):
        kept_row = account.row_of(kept)
        yield f"      instead: {_span(kept) + ', ' if 'label' in kept else ''}{_place(kept)}{_by(kept_row)}"
    if review := account.review_of(span):
        yield f"      decided by a review: {_place(review)}{_by(review)}"
    elif setting := decider(span["reason"], settings, span["dataset"]):
        yield f"      {setting}"


def tell_predicted(
    text: str, spans: Sequence[PredictedSpan], accounts: Mapping[str, Account], settings: Mapping[str, Any]
) -> Iterator[str]:
    """Yield lines about a text's predicted spans, with the annotated spans that speak most for each.

    accounts (Mapping): the annotated spans' texts, by key.
    """
    account = Account(None, text, None, (), (), (), ())
    yield f"Text {_shorten(account)!r}{'' if spans else ': no span is predicted'}"
    for span in spans:
        yield f"  {span.label} {text[span.start : span.end]!r} [{span.start}, {span.end}]: {span.probability:.2f}"
        for one in span.speaking:
            yield f"    {one.score:.2f} {one.shown}"
            yield from _tell_annotated(accounts[one.key], one, settings)
        if not span.speaking:
            yield "    no annotated span of train speaks for it"


def _tell_annotated(account: Account, annotated: TrainSpan, settings: Mapping[str, Any]) -> Iterator[str]:
    """Describe where a span of train was annotated, and the spans that it replaced."""
    for span in account.spans:
        # A span that `alignment` moved has its old offsets in the table.
        same = (span["start"], span["end"]) == (annotated.start, annotated.end) or span["realigned"]
        overlaps = span["start"] is not None and span["start"] < annotated.end and annotated.start < span["end"]
        counts = span["reason"] == Reason.ENTITY or span["learned"]
        if same and overlaps and counts and span["label"] == annotated.label:
            setting = decider(span["reason"], settings, span["dataset"])
            moved = ["moved to whole tokens by `alignment`"] if span["realigned"] else []
            row = account.row_of(span)
            yield f"      {'; '.join([_place(span) + _by(row), *moved, *filter(None, [setting])])}"
            for other in account.spans:
                if other["kept_span"] == span["span"] and other["reason"] != Reason.DUPLICATE:
                    setting = decider(other["reason"], settings, other["dataset"])
                    outcome = "; ".join(filter(None, [queries.describe(other), setting]))
                    yield f"        instead of {_span(other)}, {_place(other)}: {outcome}"


def _span(span: Row) -> str:
    words = f" {span['words']!r}" if span["words"] else ""
    where = "" if span["start"] is None else f" [{span['start']}, {span['end']}]"
    verdict = f"{span['verdict']} " if span["verdict"] not in (None, "accept") else ""
    return f"{verdict}{span['label'] or 'a span'}{words}{where}"


def _tokens(doc: StoredDoc, span: Row) -> str:
    starts, ends = (offsets.tolist() for offsets in doc.offsets())
    edges = [edge for edge in (span["start"], span["end"]) if edge not in starts and edge not in ends]
    cut = [
        doc.text[start:end]
        for start, end in zip(starts, ends, strict=True)
        if any(start < edge < end for edge in edges)
    ]
    return " and ".join(map(repr, cut))


def _place(row: Row) -> str:
    """Name file, line and dataset; a decision about a text that isn't there has no dataset's name."""
    line = f":{row['line']}" if row["line"] else ""
    return f"{row['file']}{line}" + (f", dataset {row['dataset']}" if row["dataset"] else "")


def _by(row: Row | None) -> str:
    return f", {row['who']}" if row and row["who"] else ""
