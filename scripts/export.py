"""Hand spans back to where people annotate: to brat, Prodigy, Label Studio or doccano."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.console import msg, run, user_errors
from labelwise.export.run import ExportFormat, export
from labelwise.merge.rules.settings import read_settings
from labelwise.text import counted


def export_cli(
    source: Annotated[
        Path, typer.Argument(help="Merged corpus, folder of tasks of convert-brat, or JSONL file of predictions")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write; an earlier export there is replaced")],
    format: Annotated[ExportFormat, typer.Option(help="The tool's form; `texts` has no spans")] = "brat",
    splits: Annotated[str, typer.Option(help="Splits of the corpus, separated by commas")] = "train,dev,test",
    project: Annotated[Path | None, typer.Option(help="YAML file with sections `merge` and `tokenizer`")] = None,
) -> None:
    """Hand spans back to where people annotate: to brat, Prodigy, Label Studio or doccano."""
    with user_errors("Nothing was exported"):
        done = export(source, out, format, splits.split(","), settings=read_settings(project))
    msg.good(f"{counted(done.texts, 'text')} with {counted(done.spans, 'span')}: {out}")
    if done.ordered_by:
        msg.info(f"Order: {done.ordered_by}")


if __name__ == "__main__":
    run(export_cli)
