"""Write a demo corpus, to try everything without your own data."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, progress, run, user_errors
from labelwise.datasets.declare import declare
from labelwise.datasets.untracked import check_kept
from labelwise.demo.grammar import LABELS
from labelwise.demo.write import DemoFormat, make_demo, write_docs
from labelwise.sources.brat import find_documents
from labelwise.sources.files import has_data


def make_demo_cli(
    out: Annotated[Path, typer.Argument(help="Folder to write to; an earlier demo corpus there is replaced.")],
    format: Annotated[
        DemoFormat,
        typer.Option(help="brat (OUT/DOMAIN/*.txt, *.ann), prodigy (OUT/LABEL.jsonl), or half of the labels in each."),
    ] = "brat",
    docs: Annotated[int, typer.Option(min=1, help="Number of documents.")] = 400,
    labels: Annotated[int, typer.Option(min=1, max=len(LABELS), help="Number of labels.")] = len(LABELS),
    words: Annotated[
        int | None, typer.Option(min=1, help="About how many words and marks in a document; 100 to 300 if not given.")
    ] = None,
    noise: Annotated[float, typer.Option(min=0, max=1, help="Share of the tags that are wrong.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of all that is random; document N depends only on it and on N.")] = 0,
    unless_brat: Annotated[
        Path | None, typer.Option(help="Folder for brat documents; if it has some, OUT is made empty.")
    ] = None,
    unless_prodigy: Annotated[
        Path | None, typer.Option(help="Folder for data sets; likewise. Those that aren't declared are declared.")
    ] = None,
) -> None:
    """Write a demo corpus of texts from six domains, annotated with up to twenty labels."""
    with user_errors("No demo corpus was made"):
        own = []
        if unless_prodigy and has_data(unless_prodigy):
            declare(unless_prodigy)  # here, as this is the first command that depends on the folder
            own.append(unless_prodigy)
        if unless_brat and find_documents(unless_brat):
            own.append(unless_brat)
        if own:
            write_docs([], [], out, format)
            msg.info(f"{own[-1]} has data of your own: {out} is left empty")
            return
        for folder in filter(None, (unless_brat, unless_prodigy)):
            check_kept(folder, Path("dvc.lock"))
        counts = make_demo(
            out, format=format, docs=docs, labels=labels, words=words, seed=seed, noise=noise, progress=progress
        )
    msg.good(f"Wrote {out}", ", ".join(f"{count:,} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    run(make_demo_cli)
