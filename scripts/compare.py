"""Compare the results of git revisions, label by label: is one better, and could it be chance?"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.base.console import msg, print_table, run, user_errors
from labelwise.base.text import counted, encode_json
from labelwise.compare.asked import describe_asked
from labelwise.compare.changed_spans import changed_spans
from labelwise.compare.comparison import compare
from labelwise.compare.print_comparison import find_spans, notes, tabulate
from labelwise.compare.revisions import WORKSPACE, read_revision
from labelwise.evaluate.undertrained import train_longer

Option = typer.Option


def compare_cli(
    revisions: Annotated[
        list[str] | None,
        typer.Argument(
            help="Git revisions, or DVC experiments; the first is the baseline. main:small names a pipeline, too"
        ),
    ] = None,
    pipeline: Annotated[str, Option(help="Which pipeline's results to compare")] = "cpu",
    spans: Annotated[bool, Option("--spans", help="List the errors that only one of two revisions makes")] = False,
    find: Annotated[
        str, Option(help="Like --spans, only errors with these words: fixed, new, a label, or words of the text")
    ] = "",
    format: Annotated[Literal["table", "json"], Option(help="A table, or JSON")] = "table",
) -> None:
    """Compare the results of git revisions; a single one, HEAD by default, is compared with the workspace."""
    names = revisions or ["HEAD"]
    if len(names) == 1:
        names = [*names, WORKSPACE]
    spans = spans or bool(find)
    with user_errors("Nothing was compared"), TemporaryDirectory() as folder:
        read = []
        for number, name in enumerate(names):
            revision, own_pipeline = split_pipeline(name, pipeline)
            read.append(read_revision(revision, own_pipeline, Path(folder, str(number)))._replace(name=name))
        short = {one.name: why for one in read if (why := train_longer(one.metrics.to_learn[1], one.curve))}
        comparison = compare(read, short)
        every = changed_spans(read[0], read[-1], dev=bool(comparison.dev)) if spans else []
        changed = find_spans(every, find)
    if format == "json":
        content = msgspec.to_builtins(comparison) | ({"spans": [one._asdict() for one in changed]} if spans else {})
        print(encode_json(content).decode(), end="")
    else:
        for on in ("dev", "test"):
            if table := tabulate(comparison, on):
                print_table(table[0], table[1:])
        if spans:
            print_table(["Change", "Mistake", "Label", "Words", "Text"], [span[:5] for span in changed], whole="Text")
            some = f"{len(changed):,} of " if find else ""
            some += f"{counted(len(every), 'error')} that only one of {names[0]} and {names[-1]} makes"
            msg.info(some)
        for note in filter(None, (*notes(comparison), describe_asked(read[-1].metrics))):
            msg.info(note)


def split_pipeline(name: str, pipeline: str) -> tuple[str, str]:
    """Split a revision that names its pipeline, such as workspace:small; others have the one given."""
    revision, _, own_pipeline = name.rpartition(":")
    return (revision, own_pipeline) if Path("configs", f"{own_pipeline}.cfg").is_file() else (name, pipeline)


if __name__ == "__main__":
    run(compare_cli)
