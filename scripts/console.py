"""What the command lines share: progress bars, tables, and errors without a traceback."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from tqdm import tqdm
from wasabi import msg

from labelwise.errors import InputError


def progress(items: Iterable[Any], name: str, total: int | None = None) -> Iterable[Any]:
    """Show a bar while items are consumed; nothing when the output isn't a terminal."""
    return tqdm(items, desc=name, total=total, disable=None, dynamic_ncols=True)


@contextmanager
def user_errors(title: str) -> Iterator[None]:
    """Print an error that the user can do something about, without its traceback, and exit with status 1."""
    try:
        yield
    except (InputError, OSError) as error:
        msg.fail(title, str(error))
        raise typer.Exit(1) from error


def print_counts(title: str, counts: Mapping[str, int]) -> None:
    """Print the counts that aren't zero, the largest first."""
    print_table([title, ""], [(name, f"{n:,}") for name, n in sorted(counts.items(), key=lambda item: -item[1]) if n])


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: first column left, the others right."""
    if rows:
        msg.table(rows, header=header, divider=True, aligns=("l", *"r" * (len(header) - 1)))
