"""Have a folder of data sets declared, for the commands that depend on it."""

from pathlib import Path

from labelwise.commands.console import msg, print_table
from labelwise.common.wording import counted
from labelwise.corpus.tasks import DATASETS


def declare(folder: Path) -> None:
    """Have the files of a folder declared that aren't, and print what was found."""
    from labelwise.sources.declarations import write_entries  # these import spaCy, which takes seconds
    from labelwise.sources.undeclared import declare_folder

    found = declare_folder(folder)
    new = [one for one in found if one.entry.labels]
    rows = [[one.entry.name, ", ".join(one.entry.labels), f"{one.texts:,}", f"{len(one.spans):,}"] for one in new]
    print_table([f"Added to {folder / DATASETS}", "labels", "texts", "spans"], rows)
    if new:
        msg.warn(
            f"Check the {counted(len(new), 'data set')} added to {folder / DATASETS}",
            "The labels are those that were used: labels nobody used can't be inferred",
        )
    for one in new:
        if one.paste:
            msg.warn(
                f"{one.entry.path} may be a later export of {one.like!r}: most spans are in both",
                f"Now these are two data sets. To make them one, in which the file listed last counts, put this in "
                f"place of the entries {one.like!r} and {one.entry.name!r} in {folder / DATASETS}:",
            )
            print(write_entries([one.paste]))
    for one in found:
        if not one.entry.labels:
            file = folder / str(one.entry.path or one.entry.db)
            msg.warn(f"{file}: {one.entry.name!r} isn't declared", one.problem)
            if one.paste:
                msg.info(f"If {one.paste.text!r} is its text, add to {folder / DATASETS}:")
                print(write_entries([one.paste]))
