"""A comparison for people to read: a table, and what its figures mean."""

from collections.abc import Sequence

from labelwise.base.console import figure
from labelwise.base.text import counted
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.compare.comparison import Change, Comparison


def tabulate(comparison: Comparison) -> list[list[str]]:
    """Make the header and the rows: labels, then the averages; a star marks what is significant."""
    if len(comparison.revisions) > 2:
        return _tabulate_rows(comparison)
    base, other = comparison.revisions
    lines = [["F1", base, other, "Difference", "95%", "Support"]]
    for name, row in {**comparison.labels, "all (micro)": comparison.micro, "mean (macro)": comparison.macro}.items():
        support = "" if row.support is None else f"{row.support:,}"
        lines.append([name, figure(row.f[base]), figure(row.f[other]), *_change(row.changes[other]), support])
    return lines


def _tabulate_rows(comparison: Comparison) -> list[list[str]]:
    """Make a row for each revision of each label, as three have no room beside each other."""
    lines = [["Label", "Revision", "F1", "Difference", "95%", "Support"]]
    for name, row in {**comparison.labels, "all (micro)": comparison.micro, "mean (macro)": comparison.macro}.items():
        for number, revision in enumerate(comparison.revisions):
            change = _change(row.changes[revision]) if number else ["", ""]
            support = "" if row.support is None or number else f"{row.support:,}"
            lines.append(["" if number else name, revision, figure(row.f[revision]), *change, support])
    return lines


def find_spans(spans: Sequence[ChangedSpan], words: str) -> list[ChangedSpan]:
    """Choose the spans that have all of some words, or parts of words, in their fields, whatever their case."""
    return [one for one in spans if all(word in " ".join(one).lower() for word in words.lower().split())]


def tabulate_spans(spans: Sequence[ChangedSpan]) -> list[list[str]]:
    """Make the header and the rows of spans that were won and lost."""
    return [["Change", "Mistake", "Label", "Words", "Text"], *([*map(str, one[:4]), one.text] for one in spans)]


def notes(comparison: Comparison) -> list[str]:
    """Explain what the figures mean."""
    of = f" of {counted(comparison.units, comparison.unit)}" if comparison.unit != "text" else ""
    lines = [f"{counted(comparison.texts, 'text')}{of}, gold of {comparison.revisions[-1]}"]
    if comparison.gold_differs:
        lines.append(f"Without the same gold at all revisions: {counted(comparison.gold_differs, 'text')}")
    for name, n in comparison.left_out.items():
        lines.append(f"The test sets differ: {counted(n, 'text')} of {name} left out, as not all revisions have them")
    for name, labels in comparison.only.items():
        lines.append(f"Labels of {name} that not all revisions have, not compared: {', '.join(labels)}")
    lines += [f"{name}: {said}" for name, said in comparison.seen.items()]
    lines += [f"{name} has no star: {why}" for name, why in comparison.unsure.items()]
    return [*lines, "* hardly chance: the 95% interval doesn't include 0; for a label, that for all labels together"]


def _change(change: Change) -> list[str]:
    between = "" if change.low is None or change.high is None else f"{change.low:+.3f} to {change.high:+.3f}"
    return [figure(change.difference, "+.3f"), f"{between}{'*' if change.significant else ''}"]
