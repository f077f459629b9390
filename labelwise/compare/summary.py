"""A comparison for people to read: a table, and what its figures mean."""

from collections.abc import Sequence

from labelwise.base.console import figure
from labelwise.base.text import counted
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.compare.comparison import Change, Comparison


def tabulate(comparison: Comparison, on: str = "test") -> list[list[str]]:
    """Make the header and the rows of a split: labels, then the averages; a star marks what is significant.

    Three revisions have a row each, as there is no room beside each other.
    """
    split = comparison.dev if on == "dev" else comparison
    if not split:
        return []
    head, extra = (f"F1 on {on}" if comparison.dev else "F1"), on == "dev"
    base, *others = comparison.revisions
    wide = len(others) > 1
    names = ["Label", "Revision", head] if wide else [head, base, *others]
    lines = [[*names, "Difference", "95%", "Support", *["Test"] * extra]]
    for name, row in split.rows().items():
        support = "" if row.support is None else f"{row.support:,}"
        if wide:
            lines.append([name, base, figure(row.f[base]), "", "", support, *[""] * extra])
        for other in others:
            change, f = row.changes[other], figure(row.f[other])
            cells = ["", other, f] if wide else [name, figure(row.f[base]), f]
            lines.append([*cells, *_change(change), "" if wide else support, *[change.on_test] * extra])
    return lines


def find_spans(spans: Sequence[ChangedSpan], words: str) -> list[ChangedSpan]:
    """Choose the spans that have all of some words, or parts of words, in their fields, whatever their case."""
    return [one for one in spans if all(word in " ".join(one).lower() for word in words.lower().split())]


def tabulate_spans(spans: Sequence[ChangedSpan]) -> list[list[str]]:
    """Make the header and the rows of spans that were won and lost."""
    return [["Change", "Mistake", "Label", "Words", "Text"], *([*map(str, one[:4]), one.text] for one in spans)]


def notes(comparison: Comparison) -> list[str]:
    """Explain what the figures mean."""
    lines = []
    for on, split in (("dev", comparison.dev), ("test", comparison)):
        if not split:
            continue
        where = f"{on}: " if comparison.dev else ""
        of = f" of {counted(split.units, split.unit)}" if split.unit != "text" else ""
        lines.append(f"{where}{counted(split.texts, 'text')}{of}, gold of {comparison.revisions[-1]}")
        if split.gold_differs:
            lines.append(f"{where}Gold differs between the revisions in {counted(split.gold_differs, 'text')}")
        for name, n in split.left_out.items():
            left = f"{counted(n, 'text')} of {name} left out, because other revisions lack them"
            lines.append(f"{where}The {on} sets differ: {left}")
        if max(split.trainings.values()) > 1:
            which = "the mean over seeds" if split.means else "of the first, by this gold or with the same weights"
            numbers = ", ".join(f"{name} {n}" for name, n in split.trainings.items())
            single = "; the variance between seeds serves both" if min(split.trainings.values()) == 1 else ""
            lines.append(f"{where}Trainings: {numbers}. F1 is {which}{single}")
    for name, labels in comparison.only.items():
        lines.append(f"Not compared, because other revisions lack these labels of {name}: {', '.join(labels)}")
    lines += [f"{name}: {said}" for name, said in comparison.seen.items()]
    lines += [f"{name}: other seeds don't count: {why}" for name, why in comparison.unused.items()]
    lines += [f"{name} has no star: {why}" for name, why in comparison.unsure.items()]
    star = "* significant: the 95% interval doesn't include 0 (labels: corrected for their number, by Bonferroni)"
    if not comparison.dev:
        return [*lines, f"Test decides: {comparison.no_dev}", star]
    return [*lines, f"{star}. Test confirms or contradicts by its own interval"]


def _change(change: Change) -> list[str]:
    between = "" if change.low is None or change.high is None else f"{change.low:+.3f} to {change.high:+.3f}"
    return [figure(change.difference, "+.3f"), f"{between}{'*' if change.significant else ''}"]
