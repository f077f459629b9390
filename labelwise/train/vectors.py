"""A table of vectors for the words of a per-label recognizer; `spacy_per_label.vectors` makes it."""

from pathlib import Path

import numpy as np

from labelwise.base.environment import command_line
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from spacy_per_label.hub_files import NoModelError
from spacy_per_label.vectors import write_table


def make_vectors(name: str, out: Path, width: int = 96) -> int:
    """Write a table of vectors, and return the number of its words or pieces; see `write_table`.

    RAISES (InputError): there is no transformer and no pipeline with vectors of that name.
    """
    with atomic(out) as file:
        try:
            return write_table(name, file, width)
        except NoModelError as error:
            raise InputError(str(error)) from error


def has_vectors(table: Path) -> bool:
    """Return whether a table that `make_vectors` has made isn't empty.

    RAISES (InputError): it isn't such a table.
    """
    try:
        with np.load(table) as file:
            return file["vectors"].shape[1] > 0
    except (OSError, ValueError, KeyError) as error:
        made = f"make it: `weasel run vectors`, or `{command_line('vectors')}`"
        raise InputError(f"{table}: no table of vectors ({error}); {made}") from error
