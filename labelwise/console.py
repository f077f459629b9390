"""Shared by the command lines: how they are run, progress bars, tables, and errors without a traceback."""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, zip_longest
from textwrap import wrap
from types import FrameType
from typing import Annotated, Any

import typer
from tqdm import tqdm
from wasabi import Printer

from labelwise.environment import quit_quietly
from labelwise.errors import InputError
from labelwise.files import FULL

WIDTH, GAP = 80, 3  # characters of a table, and those between two columns
LEAST = 20  # characters of the first column, if it has as many, where the others leave it no more

AddressOption = Annotated[
    str, typer.Option(envvar="LABELWISE_ADDRESS", help="A Dask scheduler's address, such as tcp://box:8786")
]


msg = Printer()


def run(command: Callable[..., None]) -> None:
    """Run a command line, and exit with its status; what standard output can't encode is printed as escapes.

    A command that is terminated deletes what it has begun to write, as one that is interrupted does.
    """
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is quit_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    typer.run(command)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Exit, by way of all that has something to clean up; another signal of the kind doesn't interrupt that."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def progress_texts(parts: Iterable[Any], total: int) -> Iterator[Any]:
    """Show a bar with texts and the time left while parts of them are consumed; nothing without a terminal."""
    with tqdm(desc="evaluate", total=total, unit=" texts", disable=None, dynamic_ncols=True) as bar:
        for done in parts:
            yield done
            bar.update(done.texts)


def progress(items: Iterable[Any], name: str, total: int | None = None) -> Iterable[Any]:
    """Show a bar with the time left while items are consumed; nothing when the output isn't a terminal.

    total (int | None): the number of items, if they have no len.
    """
    return tqdm(items, desc=name, total=total, disable=None, dynamic_ncols=True)


@contextmanager
def user_errors(title: str) -> Iterator[None]:
    """Print an error that the user can do something about, without its traceback, and exit with status 1.

    Its first line is wrapped; the others, such as a command to paste, are printed as they are.
    """
    try:
        yield
    except (InputError, OSError) as error:
        full = isinstance(error, OSError) and error.errno in FULL
        what, _, lines = str(error).partition("\n")
        msg.fail(title, f"{what}; free some space, there or where TMPDIR is" if full else what)
        if lines:
            typer.echo(lines)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as interrupt:
        msg.fail(title, "Interrupted; what was there before is unchanged")
        raise typer.Exit(130) from interrupt
    except SystemExit as ended:
        if ended.code == 128 + signal.SIGTERM:
            msg.fail(title, "Terminated; what was there before is unchanged")
        raise


def figure(value: float | None, form: str = ".3f") -> str:
    """Write a score; nothing where there is none."""
    return "" if value is None else format(value, form)


def print_counts(title: str, counts: Mapping[str, int]) -> None:
    """Print the counts that aren't zero, the largest first."""
    print_table([title, ""], [(name, f"{n:,}") for name, n in sorted(counts.items(), key=lambda item: -item[1]) if n])


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table that fits a terminal: the first column aligned left, the others right.

    What is too wide is wrapped; columns for which there is no room follow in another table.
    """
    if not rows:
        return
    first, *others = zip(*([_cell(value) for value in row] for row in (header, *rows)), strict=True)
    widths = [_longest(cells) for cells in others]
    if _longest(first) + sum(GAP + width for width in widths) > WIDTH:
        widths = [_longest([*head.split(" "), *cells]) for head, *cells in others]
    least = min(_longest(first), LEAST)
    widths = [min(width, WIDTH - GAP - least) for width in widths]
    while True:
        ends = accumulate((GAP + width for width in widths), initial=least)
        fitting = sum(end <= WIDTH for end in ends) - 1
        room = WIDTH - sum(GAP + width for width in widths[:fitting])
        _print_columns([first, *others[:fitting]], [min(_longest(first), room), *widths[:fitting]])
        others, widths = others[fitting:], widths[fitting:]
        if not others:
            break


def _longest(cells: Iterable[str]) -> int:
    return max(map(len, cells))


def _print_columns(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """Print columns side by side; a row has as many lines as its longest cell needs."""
    head, *body = (
        [
            *zip_longest(
                *(wrap(cell, width, break_on_hyphens=False) for cell, width in zip(row, widths, strict=True)),
                fillvalue="",
            )
        ]
        for row in zip(*columns, strict=True)
    )
    divider = ["-" * width for width in widths]
    lines = [*head, divider, *(line for row in body for line in row)]
    msg.table(lines, widths=widths, spacing=GAP, aligns=("l", *"r" * (len(widths) - 1)))


def _cell(value: Any) -> str:
    return str(value).replace("\n", "\\n").replace("\t", "\\t")
