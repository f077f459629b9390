"""Compare the results of git revisions, label by label: is one better, and could it be chance?"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.compare.comparison import Change, Comparison, GoldOf, compare
from labelwise.compare.revisions import WORKSPACE, read_revision
from labelwise.console import figure, msg, print_table, run, user_errors
from labelwise.errors import InputError
from labelwise.text import counted

Option = typer.Option
Pipeline = Literal["cpu", "gpu"]
SIGNIFICANT = 0.05


def compare_cli(
    revisions: Annotated[
        list[str] | None, typer.Argument(help="Git revisions, or DVC experiments; the first is the base")
    ] = None,
    pipeline: Annotated[Pipeline, Option(help="Which pipeline's results to compare")] = "cpu",
    gold: Annotated[GoldOf, Option(help="Whose gold counts, if it differs")] = "last",
    common: Annotated[bool, Option("--common", help="Compare on the texts that all have")] = False,
    md: Annotated[bool, Option("--md", help="Print Markdown")] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON")] = False,
) -> None:
    """Compare the results of git revisions; a single one, HEAD by default, is compared with the workspace."""
    with user_errors("Nothing was compared"):
        if md and as_json:
            raise InputError("--md --json: give only one of them")
        revisions = revisions or ["HEAD"]
        if not all(name.strip() for name in revisions):
            raise InputError(
                "a revision is empty, perhaps as a variable of the shell isn't set; name it, such as main, or leave it "
                "out to compare HEAD with the workspace"
            )
        names = revisions if len(revisions) > 1 else [*revisions, WORKSPACE]
        with TemporaryDirectory() as folder:
            results = [read_revision(name, pipeline, Path(folder) / str(at)) for at, name in enumerate(names)]
            comparison = compare(results, gold=gold, common=common)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode())
    elif md:
        print(to_markdown(comparison, pipeline))
    else:
        print_table(header(comparison), table(comparison))
        for note in notes(comparison):
            msg.info(note)


def header(comparison: Comparison) -> list[str]:
    """Return the names of the columns."""
    base, *others = comparison.revisions
    columns = [[name, "Difference", "95%", "p"] for name in others]
    return ["F1", base, *(name for column in columns for name in column), "Support"]


def table(comparison: Comparison) -> list[list[str]]:
    """Make the rows: labels, then the averages; a star marks what is significant."""
    rows = [*comparison.labels.items(), ("all (micro)", comparison.micro), ("mean (macro)", comparison.macro)]
    if comparison.all_spans:
        rows.append(("all spans (micro)", comparison.all_spans))
    lines = []
    for name, row in rows:
        base, *others = comparison.revisions
        cells = [name, figure(row.f[base])]
        for other in others:
            cells += [figure(row.f[other]), *_change(row.changes[other])]
        lines.append([*cells, "" if row.support is None else f"{row.support:,}"])
    return lines


def notes(comparison: Comparison) -> list[str]:
    """Say what the figures mean."""
    lines = [f"{counted(comparison.texts, 'text')}, gold of {comparison.gold}"]
    if comparison.gold == "own":
        lines = [f"{counted(comparison.texts, 'text')}, each revision against its own gold"]
    if comparison.gold_differs:
        lines.append(f"Without the same gold at all revisions: {counted(comparison.gold_differs, 'text')}")
    for name, n in comparison.left_out.items():
        lines.append(f"Left out, as not all revisions have them: {counted(n, 'text')} of {name}")
    for name, labels in comparison.only.items():
        listed = ", ".join(label if f is None else f"{label} (F1 {f:.3f})" for label, f in labels.items())
        lines.append(f"Labels of {name} that not all revisions have, not compared: {listed}")
    lines += [f"{name}: {said}" for name, said in comparison.seen.items()]
    if comparison.behind:
        lines.append(f"The workspace's results are out of date: DVC would run {', '.join(comparison.behind)} again")
    return [*lines, f"* p below {SIGNIFICANT}; for labels, corrected for their number (Holm)"]


def to_markdown(comparison: Comparison, pipeline: str) -> str:
    """Make a table and notes in Markdown, for a pull request."""
    columns = header(comparison)
    rows = [columns, ["---", *["---:"] * (len(columns) - 1)], *table(comparison)]
    lines = ["| " + " | ".join(map(_escape, row)) + " |" for row in rows]
    title = _escape(f"{pipeline}: {' against '.join(reversed(comparison.revisions))}")
    return "\n".join([f"### {title}", "", *lines, "", *(f"- {_escape(note)}" for note in notes(comparison))])


def _change(change: Change) -> list[str]:
    between = "" if change.low is None or change.high is None else f"{change.low:+.3f} to {change.high:+.3f}"
    p = "" if change.p is None else f"{change.p:.4f}{'*' * (change.p < SIGNIFICANT)}"
    return [figure(change.difference, "+.3f"), between, p]


def _escape(text: str) -> str:
    """Keep Markdown from reading a label or the name of a branch as anything but text."""
    escaped = re.sub(r"[\\`*\[\]|#~]|\b_|_\b", r"\\\g<0>", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\N{WORD JOINER}")


if __name__ == "__main__":
    run(compare_cli)
