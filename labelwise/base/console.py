"""Command lines: entry, progress bars, tables, and errors without a traceback."""

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import partialmethod, wraps
from io import TextIOWrapper
from pathlib import Path
from threading import RLock
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from labelwise.base.errors import InputError
from labelwise.base.refusals import describe_refusal
from labelwise.base.text import describe_seconds

MAX_INLINE_COUNTS = 4
MIN_BAR_SECONDS = 5.0  # seconds before a bar is shown
WRAPPED: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
MAX_TABLE_ROWS = 8


class Messages:
    """Messages on standard output, in color on terminals only: a title, and a remedy or a reason, if any."""

    def _say(self, sign: str, color: str, title: str, text: str = "") -> None:
        console = Console(highlight=False)
        for line, style in ((f"{sign} {title}", color), (text, "")):
            if line:
                wrapped = textwrap.fill(line, console.width, **WRAPPED)
                console.print(Text(wrapped, style), soft_wrap=True)

    good = partialmethod(_say, "✔", "green")
    info = partialmethod(_say, "ℹ", "blue")
    warn = partialmethod(_say, "⚠", "yellow")
    fail = partialmethod(_say, "✘", "red")

    def more(self, text: str) -> None:
        """Print more of the message before."""
        print(textwrap.fill(text, Console().width, initial_indent="  ", subsequent_indent="  ", **WRAPPED))


msg = Messages()


def run(command: Callable[..., None]) -> None:
    """Run a command line, and exit with its status; escape what standard output can't encode."""
    if isinstance(sys.stdout, TextIOWrapper):  # a notebook's is none, and takes all characters
        sys.stdout.reconfigure(errors="backslashreplace")
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

    @wraps(command)
    def whole(**options: Any) -> None:
        with user_errors("Stopped"):
            command(**options)
            sys.stdout.flush()

    app.command()(whole)
    app()


class Bar(tqdm):
    """Progress bar with the time left, on terminals, for work of more than MIN_BAR_SECONDS seconds."""

    monitor_interval = 0  # no thread draws it, as processes are forked meanwhile

    def __init__(self, name: str, total: float | None) -> None:
        shown = sys.stderr is not None and sys.stderr.isatty()
        form = "{desc} {bar} {n_fmt}/{total_fmt}, {left} left" if total else None
        super().__init__(
            desc=name, total=total, bar_format=form, delay=MIN_BAR_SECONDS, miniters=1, leave=False, disable=not shown
        )

    @property
    def format_dict(self) -> dict[str, Any]:
        """Return tqdm's format values, with the time left in words."""
        known = super().format_dict
        seconds = (self.total - self.n) / known["rate"] if self.total and known["rate"] else None
        return known | {"left": "?" if seconds is None else describe_seconds(seconds)}


Bar.set_lock(RLock())  # tqdm's own is a semaphore, too, which a read-only /dev/shm refuses


def progress(
    items: Iterable[Any], name: str, total: int | None = None, size: Callable[[Any], int] = lambda item: 1
) -> Iterator[Any]:
    """Show a bar while items are consumed; see `Bar`.

    total (int | None): number of items, if they have no len.
    size (Callable): an item's count, such as the texts of a part.
    """
    with Bar(name, len(items) if total is None and isinstance(items, Sized) else total) as bar:
        for item in items:
            yield item
            bar.update(size(item))


@contextmanager
def user_errors(title: str) -> Iterator[None]:
    """Print an InputError without traceback, its first line wrapped, and exit with status 1."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        message = str(error) if isinstance(error, InputError) else describe_refusal(error)
        if not message:  # a fault of the program
            raise
        what, _, lines = message.partition("\n")
        try:
            msg.fail(title, what)
            if lines:
                typer.echo(lines)
            sys.stdout.flush()
        except OSError as unprinted:
            print(f"✘ {title}\n{message}\nstandard output: {describe_refusal(unprinted)}", file=sys.stderr)
            sys.stdout = Path(os.devnull).open("w", encoding="utf8")  # noqa: SIM115  it can't be flushed at exit
        raise typer.Exit(1) from error
    except KeyboardInterrupt as interrupt:
        msg.fail(title, "Interrupted; existing outputs are unchanged")
        raise typer.Exit(130) from interrupt


def print_counts(title: str, counts: Mapping[str, int]) -> None:
    """Print nonzero counts, the largest first: as a table, or in one line if they are few."""
    rows = [(name, f"{n:,}") for name, n in sorted(counts.items(), key=lambda item: -item[1]) if n]
    if len(rows) > MAX_INLINE_COUNTS:
        print_table([title, ""], rows)
    elif rows:
        line = ", ".join(f"{n} {_in_line(name)}" for name, n in rows)
        Console().print(Text(f"{title}: {line}"))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]], more: str = "", whole: str = "") -> None:
    """Print a table, first column left, others right; wrap it to the terminal's width.

    more (str): place of all rows; then only the first are printed. Empty prints all.
    whole (str): column not to wrap, such as documents, for copying.
    """
    if not rows:
        return
    shown = rows[:MAX_TABLE_ROWS] if more else rows
    table, console = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=0), Console()
    longest = [max(len(str(row[at])) for row in (header, *shown)) for at in range(len(header))]
    for least in (9, 16):  # numbers aren't wrapped; where the table is too wide anyway, nor are most words
        widths = [n if name == whole else min(n, least) for name, n in zip(header, longest, strict=True)]
        if sum(widths) + len(widths) - 1 <= console.width:
            break
    for at, (name, width) in enumerate(zip(header, widths, strict=True)):
        unwrapped = name == whole
        table.add_column(
            Text(name), justify="right" if at else "left", overflow="fold", min_width=width, no_wrap=unwrapped
        )
    console.width = max(console.width, sum(widths) + len(widths) - 1)  # nothing is cut off
    for row in shown:
        table.add_row(*(Text(_in_line(cell)) for cell in row))
    console.print("", table, sep="\n")
    if len(rows) > len(shown):
        console.print(Text(f"and {len(rows) - len(shown):,} more: see {more}"))


def print_warnings(warnings: Iterable[tuple[str, str]]) -> None:
    """Print warnings and remedies as one table."""
    table = Table("Warning", "What to do", box=box.SIMPLE, pad_edge=False, show_lines=True)
    for what, remedy in warnings:
        table.add_row(Text(what), Text(remedy))
    if table.rows:
        Console().print(table)


def _in_line(cell: Any) -> str:
    return str(cell).replace("\n", "\\n").replace("\t", "\\t")
