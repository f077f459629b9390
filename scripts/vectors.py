"""Make a table of vectors of a transformer's wordpieces, or of a spaCy pipeline's words, to train with."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.train.vectors import make_vectors


def vectors_cli(
    name: Annotated[
        str, typer.Argument(help="Package or folder of a transformer, or of a spaCy pipeline; '' for none")
    ],
    out: Annotated[Path, typer.Argument(help="File for the table, such as training/vectors.npz")],
    width: Annotated[int, typer.Option(help="Length of a vector, after PCA", min=1)] = 96,
) -> None:
    """Make a table of vectors of a transformer's wordpieces, or of a spaCy pipeline's words, to train with."""
    with user_errors("No vectors were made"):
        count = make_vectors(name, out, width)
    if not name:
        msg.info("No vectors are used; to use some, set `vectors` in project.yml")
        return
    size = out.stat().st_size / 2**20
    msg.good(f"{out} has {count:,} words and pieces of words; it makes a pipeline {size:,.1f} MB larger")


if __name__ == "__main__":
    run(vectors_cli)
