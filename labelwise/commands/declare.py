"""Have a folder of data sets declared, for the commands that depend on it."""

from pathlib import Path

from labelwise.commands.console import msg, print_table
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.own_data import declarations_in, find_undeclared


def declare(folder: Path) -> None:
    """Have the files of a folder declared that aren't, and print what was found."""
    there = (folder / DATASETS).is_file()
    if there and not find_undeclared(folder, declarations_in(folder)):
        return
    from labelwise.sources.infer import declare_folder  # imports spaCy, which takes seconds

    found, lines, written = declare_folder(folder)
    rows = [
        [one.name, ", ".join(one.labels), ", ".join(one.kinds), one.split, f"{one.texts:,}", f"{one.spans:,}"]
        for one in found
        if one.texts
    ]
    print_table([f"Found in {folder}", "labels", "kind", "split", "texts", "spans"], rows)
    if any(one.labels for one in found):
        file = folder / DATASETS
        if written:
            what = "has new data sets" if there else "was written"
            msg.warn(f"{file} {what}: check it", "A label that was never used can't be seen in the data")
        else:
            msg.warn(f"{file} doesn't declare all files, and was edited by hand: add, if they are to be merged", "")
            print(lines)
    for one in found:
        if one.labels and one.later_than:
            msg.info(f"{one.file} is a later export of {one.later_than}: where both have an answer, the later counts")
        elif not one.labels:
            because = f" ({one.problem})" if one.problem else ""
            msg.warn(f"{folder / one.file}: {one.name} isn't declared", f"It has no span with a label{because}")
