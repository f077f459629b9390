"""Hand spans back to where people annotate: to brat, Prodigy, Label Studio or doccano."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.console import msg, run, user_errors
from labelwise.export.run import FORMATS, ExportFormat, export
from labelwise.text import counted


def export_cli(
    source: Annotated[
        Path, typer.Argument(help="Merged corpus, tasks of convert-brat, or a JSONL file of predictions or tasks")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write; an earlier export there is replaced")],
    format: Annotated[
        ExportFormat, typer.Option(help=" | ".join(f"{name}: {one.files}" for name, one in FORMATS.items()))
    ] = "brat",
    splits: Annotated[str, typer.Option(help="Splits of the corpus, separated by commas")] = "train,dev,test",
    annotated: Annotated[
        Path | None,
        typer.Option(help="Merged corpus: of predictions by label, texts that are complete there are left out"),
    ] = None,
) -> None:
    """Hand spans back to where people annotate: to brat, Prodigy, Label Studio or doccano."""
    with user_errors("Nothing was exported"):
        done = export(source, out, format, splits.split(","), annotated=annotated)
    msg.good(f"{counted(done.texts, 'text')} with {counted(done.spans, 'span')}: {out}")
    if done.ordered_by:
        msg.info(f"Order: {done.ordered_by}")


if __name__ == "__main__":
    run(export_cli)
