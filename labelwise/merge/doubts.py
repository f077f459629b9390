"""Doubt whether data sets were read as they were meant: a doubt is a query of the tables, with a sample and a remedy.

Some stop: nothing but `why` reads the corpus, until the data set's entry declares its form, or `expect_losses: true`.
The others are warnings. The doubts about all data sets are printed at once.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labelwise.annotations import ROW_PROBLEMS, Reason
from labelwise.base.settings import encode_yaml
from labelwise.base.text import counted, name_counts
from labelwise.corpus import queries
from labelwise.corpus.ledger import Doubt
from labelwise.corpus.texts import find_doc
from labelwise.datasets.convert_brat import read_conversion
from labelwise.datasets.declarations import DataSet
from labelwise.merge.figures import ALONE, SUPERSEDED, UNUSED, Figures
from labelwise.merge.readings import Trials, best_reading
from labelwise.merge.rules.settings import Settings
from labelwise.merge.text_doubts import doubts_about_texts, quote
from labelwise.sources.formats import TABLES

MANY = 10  # spans, or rows, from which chance is no explanation
NAMED = 4  # reasons, or labels, that a doubt names
OFF_TOKENS = 1 / 6  # the share of a data set's spans from which its tokens seem to differ
COPY = 0.9  # the share of a data set's answers from which it is a copy of another one
USED = (
    Reason.ENTITY,
    Reason.SAME_SPAN,
    Reason.NESTED,
    Reason.CROSSING,
    Reason.OUTVOTED,
    Reason.ACCEPT_REJECT,
    Reason.REMOVED,
)
BARE = frozenset("BIOSELU")  # the prefixes of tags
EXPECTED = "expect_losses: true"


class Case(NamedTuple):
    """A data set with everything that its doubts query.

    others (Mapping): the figures of all data sets.
    """

    dataset: DataSet
    figures: Figures
    others: Mapping[str, Figures]
    trials: Trials
    corpus: Path

    def doubt(self, what: str, remedy: str, line: str, sample: Iterable[Mapping[str, Any]] = ()) -> Doubt:
        """Make a doubt about the data set.

        sample (Iterable): rows of the tables.
        """
        quotes = [_quote(one, self.corpus) for one in sample]
        return Doubt(f"Data set {self.dataset.name!r}: {what}.", remedy, [line], quotes)

    @property
    def add(self) -> str:
        """Name the place where a line is to be added."""
        if read_conversion(Path(self.dataset.declared).parent):
            return "add to the section brat of project.yml"
        return f"add to the entry {self.dataset.name!r} in {os.path.relpath(self.dataset.declared)}"

    @property
    def expected(self) -> str:
        """Name the remedy if losses are meant."""
        return f"If that is intended, {self.add}"


def find_doubts(
    corpus: Path, datasets: Sequence[DataSet], settings: Settings, figures: Mapping[str, Figures], trials: Trials
) -> list[Doubt]:
    """List the doubts about all data sets, those that stop first.

    corpus (Path): its tables and partitions; the manifest needn't be there.
    figures (Mapping): those of its tables.
    trials (Trials): how spans fare by other readings of their offsets.
    """
    found: list[Doubt] = []
    for dataset in datasets:
        case = Case(dataset, figures[dataset.name], figures, trials, corpus)
        stopping = [doubt for rule in STOPPING for doubt in rule(case)]
        found += [doubt._replace(stops=not dataset.expect_losses) for doubt in stopping]
        found += [doubt for rule in WARNING if not (stopping and rule is off_tokens) for doubt in rule(case)]
    return sorted([*found, *doubts_about_texts(corpus, settings)], key=lambda doubt: not doubt.stops)


def unusable_rows(case: Case) -> Iterator[Doubt]:
    """Doubt a data set if most rows can't be used."""
    rows, spans = case.figures.rows, case.figures.labels(*USED, *UNUSED)
    bad = Counter({reason: rows[reason] for reason in ROW_PROBLEMS if rows[reason]})
    nothing = bad[Reason.OTHER_FORMAT] and not spans
    if nothing or (bad.total() >= MANY and 2 * bad.total() > rows.total()):
        what = f"{bad.total():,} of {counted(rows.total(), 'row')} can't be used: {name_counts(bad, NAMED)}"
        yield case.doubt(what, case.expected, EXPECTED, case.figures.sample(*bad))


def unusable_spans(case: Case) -> Iterator[Doubt]:
    """Doubt a data set if another reading of its offsets removes the losses, or if most spans can't be used.

    Spans of undeclared labels don't count, unless there are no others.
    """
    used, lost, reasons = _losses(case)
    sample = case.figures.sample(*reasons)
    if best := best_reading(case.trials, case.dataset.name):
        reading, before, after = best
        what = f"{counted(before, 'span')} can't be used because of their offsets; read as {reading}, {after:,} can't"
        yield case.doubt(what, case.add, f"offsets: {reading}", sample)
    elif lost.total() >= MANY and lost.total() > used.total():
        why = Counter({reason: (lost & case.figures.labels(reason)).total() for reason in reasons})
        what = f"{lost.total():,} of {counted((lost + used).total(), 'span')} can't be used: {name_counts(why, NAMED)}"
        offsets = case.dataset.offsets
        correct = f"Correct `offsets: {offsets}`, which its entry says. " if offsets else ""
        yield case.doubt(what, correct + case.expected, EXPECTED, sample)


def tags_without_labels(case: Case) -> Iterator[Doubt]:
    """Doubt a data set if its tags have no labels."""
    used, lost, reasons = _losses(case)
    if any(file.path.name.endswith(TABLES) for file in case.dataset.files) and (said := _no_labels(used + lost)):
        remedy = f"Correct the column of the tags, or `labels`. {case.expected}"
        yield case.doubt(said, remedy, EXPECTED, case.figures.sample(*reasons))


def label_after_label(case: Case) -> Iterator[Doubt]:
    """Doubt a data set if all spans of a label are superseded by rows of other labels."""
    if gone := _replaced_labels(case):
        what = (
            f"all spans of {name_counts(gone, NAMED)} are superseded by later answers to the same texts, which have "
            "spans of other labels only: the texts seem to have been annotated label after label"
        )
        left = [label for label in case.dataset.labels if label not in gone]
        remedy = (
            f"{case.add}, so that all answers count; or `labels: [{', '.join(left)}]`, so that nothing is learnt of "
            "others"
        )
        yield case.doubt(what, remedy, "duplicates: union", case.figures.sample(ALONE))


def off_tokens(case: Case) -> Iterator[Doubt]:
    """Doubt the tokens if many spans begin or end inside them."""
    lost = case.figures.labels(Reason.NO_BOUNDARY).total()
    total = lost + case.figures.labels(*USED).total()
    if lost >= MANY and lost >= OFF_TOKENS * total:
        what = f"{lost:,} of {counted(total, 'span')} begin or end inside a token"
        remedy = (
            "To take whole tokens, set in the section merge of project.yml (docs/languages.md has other tokenizers)"
        )
        yield case.doubt(what, remedy, "alignment: expand", case.figures.sample(Reason.NO_BOUNDARY))


def superseded_rows(case: Case) -> Iterator[Doubt]:
    """Doubt a data set if superseded rows have spans of labels that the row that counts lacks."""
    rows = case.figures.passes[ALONE]
    if rows >= MANY and not _replaced_labels(case):
        what = (
            f"{counted(rows, 'row')} superseded by a later row of the same text that has no span of some labels: "
            f"{counted(case.figures.passes['spans'], 'span')} lost"
        )
        yield case.doubt(what, f"If both rows count, {case.add}", "duplicates: union", case.figures.sample(ALONE))


def earlier_export(case: Case) -> Iterator[Doubt]:
    """Doubt a data set if another one has nearly all of its answers, too."""
    name, rows = case.dataset.name, case.figures.rows.total()
    for other, figures in case.others.items():
        n, more = case.figures.copies[other] + figures.copies[name], figures.rows.total()
        if n and n >= COPY * rows and (rows, name) < (more, other):
            what = f"{n:,} of its {counted(rows, 'answer')} are in {other!r}, too, with the same time: they add no vote"
            yield case.doubt(what, f"If {other!r} is a newer export of it, leave it out: {case.add}", "skip: true")


def unnamed_answers(case: Case) -> Iterator[Doubt]:
    """Doubt that answers without a name are another person's than those with one, about the same texts."""
    for name, texts in sorted(case.figures.unnamed.items()):
        if texts >= MANY:
            what = f"{counted(texts, 'text')} have an answer of {name!r} and one that names nobody: two people's"
            line = encode_yaml({"annotator": name}).strip()[1:-1]
            yield case.doubt(what, f"If {name!r} gave both, {case.add}", line)


STOPPING = (unusable_rows, unusable_spans, tags_without_labels, label_after_label)
WARNING = (off_tokens, superseded_rows, earlier_export, unnamed_answers)


def _losses(case: Case) -> tuple[Counter[str], Counter[str], list[Reason]]:
    """Count the used and the unusable spans, by label; and list the reasons of the latter."""
    used, unused = case.figures.labels(*USED), case.figures.labels(*UNUSED)
    undeclared = case.figures.labels(Reason.UNDECLARED)
    lost = unused if undeclared == unused and not used else unused - undeclared
    return used, lost, [reason for reason in UNUSED if lost & case.figures.labels(reason)]


def _replaced_labels(case: Case) -> Counter[str]:
    """Count the superseded spans of labels without any span left, if rows of other labels superseded them."""
    if case.figures.passes["disjoint"] < COPY * case.figures.passes["rows"]:
        return Counter()
    left = case.figures.labels(*(reason for reason in Reason if reason not in SUPERSEDED))
    gone = {*case.dataset.labels} - left.keys()
    return Counter({label: n for label, n in case.figures.replaced.items() if n >= MANY and label in gone})


def _no_labels(spans: Mapping[str, int]) -> str:
    """Explain why the labels of tags aren't labels; empty if they may be.

    spans (Mapping): the number of spans by label.
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


def _quote(one: Mapping[str, Any], corpus: Path) -> str:
    """Write the place of a row or a span, and quote a span whose text is in the corpus."""
    place = f"{one['file']}:{one['line']}"
    quotable = one.get("start") is not None and one["split"]
    doc = find_doc(corpus, one["split"], one["text"]) if quotable else None
    if doc is None:
        return f"{place}  {queries.describe(one)}"
    return f"{place}  {one['label']}  {quote(doc.text, one['start'], one['end'])}"
