"""A comparison for people to read: a table, and what its figures mean."""

from labelwise.base.console import figure
from labelwise.base.text import counted
from labelwise.compare.comparison import Change, Comparison


def tabulate(comparison: Comparison) -> list[list[str]]:
    """Make the header and the rows: labels, then the averages; a star marks what is significant."""
    base, *others = comparison.revisions
    columns = (name for other in others for name in (other, "Difference", "95%"))
    lines = [["F1", base, *columns, "Support"]]
    for name, row in {**comparison.labels, "all (micro)": comparison.micro, "mean (macro)": comparison.macro}.items():
        cells = [cell for other in others for cell in (figure(row.f[other]), *_change(row.changes[other]))]
        lines.append([name, figure(row.f[base]), *cells, "" if row.support is None else f"{row.support:,}"])
    return lines


def notes(comparison: Comparison) -> list[str]:
    """Say what the figures mean."""
    lines = [f"{counted(comparison.texts, 'text')}, gold of {comparison.revisions[-1]}"]
    if comparison.gold_differs:
        lines.append(f"Without the same gold at all revisions: {counted(comparison.gold_differs, 'text')}")
    for name, n in comparison.left_out.items():
        lines.append(f"The test sets differ: {counted(n, 'text')} of {name} left out, as not all revisions have them")
    for name, labels in comparison.only.items():
        lines.append(f"Labels of {name} that not all revisions have, not compared: {', '.join(labels)}")
    lines += [f"{name}: {said}" for name, said in comparison.seen.items()]
    return [*lines, "* hardly chance: the 95% interval doesn't include 0; of labels, that of all of them together"]


def _change(change: Change) -> list[str]:
    between = "" if change.low is None or change.high is None else f"{change.low:+.3f} to {change.high:+.3f}"
    return [figure(change.difference, "+.3f"), f"{between}{'*' * change.significant}"]
