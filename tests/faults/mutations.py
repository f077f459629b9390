"""Changes of the code by which outputs could be lost or mixed: disturbing the commands has to show each of them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import labelwise.commands.evaluate
import labelwise.merge.run
import labelwise.train.run
from labelwise.common import outputs
from labelwise.common.outputs import Output


def move_away() -> None:
    """What was there is moved away for as long as the command takes."""
    building = outputs._building

    @contextmanager
    def moved_away(given: Sequence[Output]) -> Iterator[list[Output]]:
        with building(given) as real:
            for output in real:
                if output.kind == "folder" and os.path.lexists(output.path):
                    output.path.rename(output.aside)
            try:
                yield real
            finally:
                for output in real:
                    if output.aside.exists() and not output.path.exists():
                        output.aside.rename(output.path)

    outputs._building = moved_away


def write_no_journal() -> None:
    """Several outputs are moved, one after the other, and nothing says so."""

    @contextmanager
    def unsaid(command: str, *given: Output | Path | None) -> Iterator[list[Any]]:
        named = [Output(output) if isinstance(output, Path) else output for output in given if output]
        with outputs._building(named) as real:
            sources = iter(real)
            yield [output and next(sources).source for output in given]
            for output in real:
                outputs._move(output)

    for module in (labelwise.merge.run, labelwise.train.run, labelwise.commands.evaluate):
        module.staged_together = unsaid


def leave_out_the_second_rename() -> None:
    """A folder is put aside, and the new one isn't moved to its place."""
    replace = outputs._replace

    def half(source: Path, target: Path, aside: Path) -> None:
        target.rename(aside) if target.is_dir() else replace(source, target, aside)

    outputs._replace = half


MUTATIONS = {
    "move-away": move_away,
    "no-journal": write_no_journal,
    "no-second-rename": leave_out_the_second_rename,
}
