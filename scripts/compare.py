"""Compare the results of git revisions, label by label: is one better, and could it be chance?"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.compare.comparison import Change, Comparison, compare
from labelwise.compare.revisions import WORKSPACE, read_revision
from labelwise.console import figure, msg, print_table, run, user_errors
from labelwise.errors import InputError
from labelwise.text import counted

Option = typer.Option


def compare_cli(
    revisions: Annotated[
        list[str] | None, typer.Argument(help="Git revisions, or DVC experiments; the first is the base")
    ] = None,
    pipeline: Annotated[Literal["cpu", "gpu"], Option(help="Which pipeline's results to compare")] = "cpu",
    format: Annotated[Literal["table", "md", "json"], Option(help="A table, Markdown, or JSON")] = "table",
) -> None:
    """Compare the results of git revisions; a single one, HEAD by default, is compared with the workspace."""
    with user_errors("Nothing was compared"):
        revisions = revisions or ["HEAD"]
        if not all(name.strip() for name in revisions):
            raise InputError(
                "a revision is empty, perhaps as a variable of the shell isn't set; name it, such as main, or leave it "
                "out to compare HEAD with the workspace"
            )
        names = revisions if len(revisions) > 1 else [*revisions, WORKSPACE]
        with TemporaryDirectory() as folder:
            comparison = compare([read_revision(one, pipeline, Path(folder, str(n))) for n, one in enumerate(names)])
    header, *rows = tabulate(comparison)
    if format == "json":
        print(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode())
    elif format == "md":
        aligned = ["---", *["---:"] * (len(header) - 1)]
        print(f"### {_escape(f'{pipeline}: ' + ' against '.join(reversed(names)))}\n")
        print(*("| " + " | ".join(map(_escape, row)) + " |" for row in (header, aligned, *rows)), sep="\n", end="\n\n")
        print(*(f"- {_escape(note)}" for note in notes(comparison)), sep="\n")
    else:
        print_table(header, rows)
        for note in notes(comparison):
            msg.info(note)


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


def _escape(text: str) -> str:
    """Keep Markdown from reading a label or the name of a branch as anything but text."""
    escaped = re.sub(r"[\\`*\[\]|#~]|\b_|_\b", r"\\\g<0>", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\N{WORD JOINER}")


if __name__ == "__main__":
    run(compare_cli)
