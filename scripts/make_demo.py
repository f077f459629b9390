"""Write a demo corpus, to try everything without your own data."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, progress, run, user_errors
from labelwise.demo.grammar import LABELS
from labelwise.demo.write import DemoFormat, make_demo


def make_demo_cli(
    out: Annotated[Path, typer.Argument(help="Folder to write to; an earlier demo corpus there is replaced.")],
    format: Annotated[
        DemoFormat,
        typer.Option(help="brat (OUT/DOMAIN/*.txt, *.ann), prodigy (OUT/LABEL.jsonl), or half of the labels in each."),
    ] = "brat",
    docs: Annotated[int, typer.Option(min=1, help="Number of documents.")] = 400,
    labels: Annotated[int, typer.Option(min=1, max=len(LABELS), help="Number of labels.")] = len(LABELS),
    words: Annotated[
        int | None,
        typer.Option(min=1, help="Approximate words and punctuation marks of a document; default: 100 to 300."),
    ] = None,
    noise: Annotated[float, typer.Option(min=0, max=1, help="Share of wrong tags.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Random seed; document N depends on it and N alone.")] = 0,
) -> None:
    """Write a demo corpus of texts from six domains, annotated with up to twenty labels."""
    with user_errors("No demo corpus was made"):
        counts = make_demo(
            out, format=format, docs=docs, labels=labels, words=words, seed=seed, noise=noise, progress=progress
        )
    msg.good(f"Wrote {out}", ", ".join(f"{count:,} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    run(make_demo_cli)
