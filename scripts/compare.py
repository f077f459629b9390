"""Compare the results of git revisions, label by label: is one better, and could it be chance?"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import msgspec
import typer

from labelwise.base.console import msg, print_table, run, user_errors
from labelwise.compare.comparison import compare
from labelwise.compare.revisions import WORKSPACE, read_revision
from labelwise.compare.summary import notes, tabulate

Option = typer.Option


def compare_cli(
    revisions: Annotated[
        list[str] | None, typer.Argument(help="Git revisions, or DVC experiments; the first is the base")
    ] = None,
    pipeline: Annotated[Literal["cpu", "gpu"], Option(help="Which pipeline's results to compare")] = "cpu",
    format: Annotated[Literal["table", "json"], Option(help="A table, or JSON")] = "table",
) -> None:
    """Compare the results of git revisions; a single one, HEAD by default, is compared with the workspace."""
    names = revisions or ["HEAD"]
    names += [WORKSPACE] * (len(names) == 1)
    with user_errors("Nothing was compared"), TemporaryDirectory() as folder:
        comparison = compare([read_revision(one, pipeline, Path(folder, str(n))) for n, one in enumerate(names)])
    if format == "json":
        print(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode())
    else:
        header, *rows = tabulate(comparison)
        print_table(header, rows)
        for note in notes(comparison):
            msg.info(note)


if __name__ == "__main__":
    run(compare_cli)
