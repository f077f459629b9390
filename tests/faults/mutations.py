"""Changes of the code by which outputs could be lost or mixed: disturbing the commands has to show each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import labelwise.sources.convert_brat
from labelwise import files


def move_away() -> None:
    """What was there is moved away for as long as the command takes."""
    staged = files.staged

    @contextmanager
    def moved_away(path: Path, *, folder: bool = False) -> Iterator[Path]:
        with staged(path, folder=folder) as new:
            if path.is_dir():
                path.rename(new.with_name("away"))
            yield new

    labelwise.sources.convert_brat.staged = moved_away


def leave_out_the_second_rename() -> None:
    """A folder is put aside, and the new one isn't moved to its place."""
    move = files._move

    def half(moves: dict[Path, Path]) -> None:
        for new, path in moves.items():
            if path.name == "train" and path.exists():
                path.rename(new.with_name("old"))
        move({new: path for new, path in moves.items() if path.name != "train"})

    files._move = half


MUTATIONS = {
    "move-away": move_away,
    "no-second-rename": leave_out_the_second_rename,
}
