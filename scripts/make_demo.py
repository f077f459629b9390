"""Write a demo corpus, to try everything without data of one's own."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from labelwise.demo.grammar import LABELS
from labelwise.demo.write import Format, make_demo
from scripts.console import progress, user_errors


def make_demo_cli(
    out: Annotated[Path, typer.Argument(help="Folder to write to; an earlier demo corpus there is replaced.")],
    format: Annotated[
        Format, typer.Option(help="brat (OUT/DOMAIN/*.txt, *.ann) or prodigy (OUT/LABEL.jsonl).")
    ] = "brat",
    docs: Annotated[int, typer.Option(help="Number of documents.")] = 400,
    labels: Annotated[int, typer.Option(help=f"Number of labels, 1 to {len(LABELS)}.")] = len(LABELS),
    words: Annotated[int | None, typer.Option(help="Words and marks in each, about; else 100 to 300.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is random; document N depends on it and on N alone.")] = 0,
) -> None:
    """Write a demo corpus of texts from nine domains, annotated with up to twenty labels."""
    with user_errors("No demo corpus was made"):
        counts = make_demo(out, format=format, docs=docs, labels=labels, words=words, seed=seed, progress=progress)
    msg.good(f"Wrote {out}", ", ".join(f"{count:,} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    typer.run(make_demo_cli)
