"""Doubts: was each data set read as it was meant? Each doubt is a query of the tables, with a sample and a remedy.

Some stop: a data set can't have been meant so, and nothing goes on from the corpus but `why`, until its entry says
what it is, or `expect_losses: true`. The others are warnings. The doubts about all data sets are told at once.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwise.annotations import ROW_PROBLEMS, Reason
from labelwise.base.text import counted
from labelwise.corpus import queries
from labelwise.corpus.ledger import Doubt
from labelwise.corpus.texts import find_doc
from labelwise.datasets.convert_brat import is_conversion
from labelwise.datasets.declarations import DataSet
from labelwise.merge.figures import SAMPLE, SUPERSEDED, UNUSED, Figures
from labelwise.merge.readings import Trials, best_reading
from labelwise.merge.rules.settings import Settings
from labelwise.merge.text_doubts import doubts_about_texts, quote
from labelwise.sources.formats import TABLES

MANY = 10  # spans, or rows, from which it is no accident
NAMED = 4  # reasons, or labels, that a doubt names
OFF_TOKENS = 1 / 6  # of a data set's spans, from which its tokens seem to be others
COPY = 0.9  # of a data set's answers, from which it is a copy of another one
USED = (
    Reason.ENTITY,
    Reason.SAME_SPAN,
    Reason.NESTED,
    Reason.CROSSING,
    Reason.OUTVOTED,
    Reason.ACCEPT_REJECT,
    Reason.REMOVED,
)
BARE = frozenset("BIOSELU")  # what stands before a label in a tag
EXPECTED = "expect_losses: true"


def find_doubts(
    corpus: Path, datasets: Sequence[DataSet], settings: Settings, trials: Mapping[str, Trials]
) -> list[Doubt]:
    """List the doubts about all data sets, those that stop first.

    corpus (Path): its tables and partitions; the manifest needn't be there.
    trials (Mapping): by data set, how its spans fare by other readings of their offsets.
    """
    figures = Figures(corpus)
    found = [
        doubt for dataset in datasets for doubt in doubts_about(dataset, figures, trials.get(dataset.name, {}), corpus)
    ]
    return sorted([*found, *doubts_about_texts(corpus, settings)], key=lambda doubt: not doubt.stops)


def doubts_about(dataset: DataSet, figures: Figures, trials: Trials, corpus: Path) -> Iterator[Doubt]:
    """Yield the doubts about a data set; none stops if losses are expected."""
    stopping = [*_stopping(dataset, figures, trials, corpus)]
    for doubt in stopping:
        yield doubt._replace(stops=not dataset.expect_losses)
    if not stopping:
        yield from _off_tokens(dataset, figures, corpus)
    yield from _warning(dataset, figures, corpus)


def _stopping(dataset: DataSet, figures: Figures, trials: Trials, corpus: Path) -> Iterator[Doubt]:
    """Yield what can't have been meant so."""
    name, add = dataset.name, _adding(dataset)
    expected = f"If it is meant so, {add}"
    rows = figures.rows_of(name)
    bad = Counter({reason: rows[reason] for reason in ROW_PROBLEMS if rows[reason]})
    used, unused = figures.labels(name, USED), figures.labels(name, UNUSED)
    nothing = bad[Reason.OTHER_FORMAT] and not used and not unused
    if nothing or (bad.total() >= MANY and 2 * bad.total() > rows.total()):
        what = f"{bad.total():,} of {counted(rows.total(), 'row')} can't be used: {_tell(bad)}"
        sample = [_place(one) for reason in bad for one in figures.samples.get((name, reason), ())][:SAMPLE]
        yield Doubt(f"Data set {name!r}: {what}.", expected, [EXPECTED], sample, stops=True)
    undeclared = figures.labels(name, [Reason.UNDECLARED])
    lost = unused if undeclared == unused and not used else unused - undeclared
    reasons = [reason for reason in UNUSED if lost & figures.labels(name, [reason])]
    places = [one for reason in reasons for one in figures.samples.get((name, reason), ())][:SAMPLE]
    if reading := best_reading(trials):
        before, after = trials[reading][1:]
        what = f"{counted(before, 'span')} can't be used, as offsets count otherwise; by {reading}, {after:,} can't"
        yield Doubt(f"Data set {name!r}: {what}.", add, [f"offsets: {reading}"], _quotes(places, corpus), stops=True)
    elif lost.total() >= MANY and lost.total() > used.total():
        why = Counter({reason: (lost & figures.labels(name, [reason])).total() for reason in reasons})
        what = f"{lost.total():,} of {counted((lost + used).total(), 'span')} can't be used: {_tell(why)}"
        correct = f"Correct `offsets: {dataset.offsets}`, which its entry says. " if dataset.offsets else ""
        yield Doubt(f"Data set {name!r}: {what}.", correct + expected, [EXPECTED], _quotes(places, corpus), stops=True)
    if any(file.path.name.endswith(TABLES) for file in dataset.files) and (said := _no_labels(used + lost)):
        remedy = f"Correct the column of the tags, or `labels`. {expected}"
        yield Doubt(f"Data set {name!r}: {said}.", remedy, [EXPECTED], _quotes(places, corpus), stops=True)
    if gone := _replaced_labels(dataset, figures):
        labels = ", ".join(f"{label} ({n:,})" for label, n in gone.most_common(NAMED))
        what = (
            f"all spans of {labels} are superseded by later answers to the same texts, which have spans of other "
            "labels only: the texts seem to have been annotated label after label"
        )
        sample = _quotes(figures.samples.get((name, "alone"), ()), corpus)
        left = [label for label in dataset.labels if label not in gone]
        yield Doubt(
            f"Data set {name!r}: {what}.",
            f"{add}, so that all answers count; or `labels: [{', '.join(left)}]`, so that nothing is learnt of others",
            ["duplicates: union"],
            sample,
            stops=True,
        )


def _warning(dataset: DataSet, figures: Figures, corpus: Path) -> Iterator[Doubt]:
    """Yield what may be misread."""
    name, add = dataset.name, _adding(dataset)
    alone, spans = figures.passes[name, "alone"], figures.passes[name, "spans"]
    if alone >= MANY and not _replaced_labels(dataset, figures):
        sample = _quotes(figures.samples.get((name, "alone"), ()), corpus)
        what = (
            f"{counted(alone, 'row')} superseded by a later row of the same text that has no span of some labels: "
            f"{counted(spans, 'span')} lost"
        )
        yield Doubt(f"Data set {name!r}: {what}.", f"If both rows count, {add}", ["duplicates: union"], sample)
    rows = figures.rows_of(name).total()
    for pair in {frozenset(pair) for pair in figures.copies if name in pair and len({*pair}) == 2}:
        [other] = pair - {name}
        n, more = figures.copies[name, other] + figures.copies[other, name], figures.rows_of(other).total()
        if n >= COPY * rows and (rows, name) < (more, other):
            what = f"{n:,} of its {counted(rows, 'answer')} are in {other!r}, too, with the same time: they add no vote"
            remedy = f"If {other!r} is a newer export of it, leave it out: {add}"
            yield Doubt(f"Data set {name!r}: {what}.", remedy, ["skip: true"])


def _off_tokens(dataset: DataSet, figures: Figures, corpus: Path) -> Iterator[Doubt]:
    """Yield the doubt that the tokens are others than the annotators had."""
    lost = figures.labels(dataset.name, [Reason.NO_BOUNDARY]).total()
    total = lost + figures.labels(dataset.name, USED).total()
    if lost >= MANY and lost >= OFF_TOKENS * total:
        sample = _quotes(figures.samples.get((dataset.name, Reason.NO_BOUNDARY), ()), corpus)
        yield Doubt(
            f"Data set {dataset.name!r}: {lost:,} of {counted(total, 'span')} begin or end inside a token.",
            "To take whole tokens, set in the section merge of project.yml (docs/languages.md has other tokenizers)",
            ["alignment: expand"],
            sample,
        )


def _replaced_labels(dataset: DataSet, figures: Figures) -> Counter[str]:
    """Find the labels without any span left, as the rows that have them are superseded by rows of other labels."""
    rows, disjoint = figures.passes[dataset.name, "rows"], figures.passes[dataset.name, "disjoint"]
    if disjoint < COPY * rows:
        return Counter()
    every = figures.labels(dataset.name, [reason for reason in Reason if reason not in SUPERSEDED])
    return Counter(
        {
            label: n
            for (name, label), n in figures.replaced.items()
            if name == dataset.name and n >= MANY and label in dataset.labels and not every[label]
        }
    )


def _no_labels(spans: Mapping[str, int]) -> str:
    """Explain why the labels of tags are none; empty if they may be.

    spans (Mapping): their spans.
    """
    total = sum(spans.values())
    odd = {label: n for label, n in spans.items() if label in BARE or re.search(r"[=|]", label)}
    signs = [label for label in spans if label and not re.search(r"\w", label)]
    once = [label for label, n in spans.items() if n == 1]
    if total and 2 * sum(odd.values()) >= total:
        return f"its tags have no labels, but {', '.join(map(repr, sorted(odd)[:NAMED]))}"
    if signs:
        return f"its labels seem to be words, such as {', '.join(map(repr, sorted(signs)[:NAMED]))}"
    if len(spans) >= MANY and 2 * len(once) > len(spans):
        named = ", ".join(map(repr, once[:NAMED]))
        return f"{len(once):,} of {counted(len(spans), 'label')} are used once: {named}"
    return ""


def _adding(dataset: DataSet) -> str:
    """Name the place where a line is to be added."""
    if is_conversion(Path(dataset.declared).parent):
        return "add to the section brat of project.yml"
    return f"add to the entry {dataset.name!r} in {os.path.relpath(dataset.declared)}"


def _tell(counts: Counter[Reason]) -> str:
    return ", ".join(f"{reason} ({n:,})" for reason, n in counts.most_common(NAMED))


def _place(one: Mapping[str, Any]) -> str:
    return f"{one['file']}:{one['line']}  {queries.describe(one)}"


def _quotes(places: Iterable[Mapping[str, Any]], corpus: Path) -> list[str]:
    return [_quote(one, corpus) for one in places]


def _quote(one: Mapping[str, Any], corpus: Path) -> str:
    """Write where a span is, and quote it."""
    start, end = one["start"], one["end"]
    doc = find_doc(corpus, one["split"], one["text"]) if start is not None and one["split"] else None
    if doc is None:
        return _place(one)
    return f"{one['file']}:{one['line']}  {one['label']}  {quote(doc.text, start, end)}"
