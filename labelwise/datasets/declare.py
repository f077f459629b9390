"""Have a folder of data sets declared, for the commands that depend on it, and print what isn't."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from labelwise.base.console import msg, print_table
from labelwise.base.text import counted
from labelwise.corpus.tasks import DATASETS
from labelwise.datasets.declarations import write_entries
from labelwise.datasets.undeclared import Undeclared, declare_folder
from labelwise.sources.formats import SUFFIXES


def declare(folder: Path) -> list[Undeclared]:
    """Have the files of a folder declared that aren't, and print the entries that were added; return the others."""
    found = declare_folder(folder)
    new = [one for one in found if not one.problem]
    rows = [[one.entry.name, ", ".join(one.entry.labels), f"{one.texts:,}"] for one in new]
    print_table([f"Added to {folder / DATASETS}", "labels", "texts"], rows)
    if new:
        msg.warn(
            f"Check the {counted(len(new), 'data set')} added to {folder / DATASETS}",
            "The entries list the labels that occur: add labels that annotators saw, and never used",
        )
    return [one for one in found if one.problem]


def print_undeclared(folder: Path, left: Iterable[Undeclared]) -> None:
    """Print the files of a folder that aren't declared, each with the entry to add."""
    for one in left:
        file = folder / one.entry.paths[0]
        msg.warn(f"{file}: {one.entry.name!r} isn't declared", one.problem)
        if file.name.endswith(SUFFIXES):
            msg.info(f"To leave it out for good, add an entry with `skip: true` to {folder / DATASETS}.")
            msg.info(f"To merge it, add to {folder / DATASETS}, with all labels that annotators were shown:")
            print(write_entries([msgspec.structs.replace(one.entry, labels=one.entry.labels or ("LABEL",))]))
