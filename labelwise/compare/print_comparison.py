"""Format a comparison: a table, and explanations of its figures."""

from collections.abc import Sequence

from labelwise.base.text import counted, figure
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.compare.comparison import Change, ComparedSplit, Comparison
from labelwise.corpus.warnings import name_labels


def tabulate(comparison: Comparison, on: str = "test") -> list[list[str]]:
    """Return a split's header and rows: labels that differ, then averages; a star marks significance.

    Three revisions or more have a row each, because they don't fit beside each other. The column "Test" is for stars.
    """
    split = comparison.dev if on == "dev" else comparison
    if not split:
        return []
    head = f"F1 on {on}" if comparison.dev else "F1"
    extra = any(change.on_test for row in split.rows().values() for change in row.changes.values())
    baseline, *others = comparison.revisions
    wide = len(others) > 1
    names = ["Label", "Revision", head] if wide else [head, baseline, *others]
    lines = [[*names, "Difference", "95%", "Support", *["Test"] * extra]]
    unchanged = {*list_unchanged(split)}
    for name, row in split.rows().items():
        if name in unchanged:
            continue
        support = "" if row.support is None else f"{row.support:,}"
        if wide:
            lines.append([name, baseline, figure(row.f[baseline]), "", "", support, *[""] * extra])
        for other in others:
            change, f = row.changes[other], figure(row.f[other])
            cells = ["", other, f] if wide else [name, figure(row.f[baseline]), f]
            lines.append([*cells, *_change(change), "" if wide else support, *[change.on_test] * extra])
    return lines


def list_unchanged(split: ComparedSplit) -> list[str]:
    """List the labels whose F1 is the same in all revisions."""
    return [name for name, row in split.labels.items() if len({*row.f.values()}) == 1]


def find_spans(spans: Sequence[ChangedSpan], words: str) -> list[ChangedSpan]:
    """Choose the spans with all of some words, or parts of words, in their fields, ignoring case."""
    return [span for span in spans if all(word in " ".join(span).lower() for word in words.lower().split())]


def notes(comparison: Comparison) -> list[str]:
    """Explain the figures."""
    lines = []
    for on, split in (("dev", comparison.dev), ("test", comparison)):
        if not split:
            continue
        where = f"{on}: " if comparison.dev else ""
        units = f" of {counted(split.units, split.unit)}" if split.unit != "text" else ""
        lines.append(f"{where}{counted(split.texts, 'text')}{units}, gold of {comparison.revisions[-1]}")
        if unchanged := list_unchanged(split):
            lines.append(f"{where}Equal F1, not shown: {name_labels(unchanged)}")
        if split.gold_differs:
            lines.append(f"{where}Gold differs between the revisions in {counted(split.gold_differs, 'text')}")
        for name, n in split.left_out.items():
            missing = f"{counted(n, 'text')} of {name} left out, because other revisions lack them"
            lines.append(f"{where}The {on} sets differ: {missing}")
        if max(split.trainings.values()) > 1:
            meaning = "the mean over seeds" if split.means else "of the first, by this gold or with the same weights"
            numbers = ", ".join(f"{name} {n}" for name, n in split.trainings.items())
            single = "; both use the variance between seeds" if min(split.trainings.values()) == 1 else ""
            lines.append(f"{where}Trainings: {numbers}. F1 is {meaning}{single}")
    for name, labels in comparison.only.items():
        lines.append(f"Not compared, because other revisions lack these labels of {name}: {', '.join(labels)}")
    lines += [f"{name}: {warning}" for name, warning in comparison.seen.items()]
    lines += [f"{name}: other seeds don't count: {why}" for name, why in comparison.unused.items()]
    lines += [f"{name} has no star: {why}" for name, why in comparison.unsure.items()]
    if comparison.no_dev:
        lines.append(f"Test decides: {comparison.no_dev}")
    tested = "" if comparison.no_dev else ". Test confirms a star or contradicts it by its own interval"
    lines.append(f"* significant: the 95% interval (simultaneous for labels) excludes 0{tested}")
    return [*lines, *(describe_verdict(comparison, name) for name in comparison.revisions[1:])]


def describe_verdict(comparison: Comparison, name: str) -> str:
    """Say in a sentence whether a revision is better than the baseline, and on which labels."""
    split, baseline = comparison.dev or comparison, comparison.revisions[0]
    every, on = split.micro.changes[name], "dev" if comparison.dev else "test"
    verdict = "better" if every.has_star(1) else "worse" if every.has_star(-1) else "no significant difference"
    if every.on_test == "contradicted":
        verdict = f"{verdict} on dev, but {'worse' if verdict == 'better' else 'better'} on test"
    if name in comparison.unsure:
        verdict = "not decided" if round(every.difference or 0, 3) else "no difference"
    f = " to ".join(figure(split.micro.f[revision]) for revision in (baseline, name))
    parts = [f"{name}: {verdict}. F1 on {on} went from {f} ({', '.join(filter(None, _change(every)))})"]
    parts += [f"test: {every.on_test}"] if every.on_test else []
    for word, sign in (("better", 1), ("worse", -1)):
        starred = [label for label, row in split.labels.items() if row.changes[name].has_star(sign)]
        if labels := [label for label in starred if split.labels[label].changes[name].on_test != "contradicted"]:
            parts.append(f"{word} on {name_labels(labels)}")
    return "; ".join(parts)


def _change(change: Change) -> list[str]:
    between = "" if change.low is None or change.high is None else f"{change.low:+.3f} to {change.high:+.3f}"
    return [figure(change.difference, "+.3f"), f"{between}{'*' if change.significant else ''}"]
