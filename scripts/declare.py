"""Have a folder of data sets declared, for the commands that depend on it."""

from pathlib import Path

from labelwise.corpus.tasks import DATASETS
from scripts.console import msg, print_table


def declare(folder: Path) -> None:
    """Have a folder of data sets declared, if it isn't, and print what was found."""
    if (folder / DATASETS).is_file():
        return
    from labelwise.sources.infer import declare_folder  # imports spaCy, which takes seconds

    found = declare_folder(folder)
    rows = [
        [one.name, ", ".join(one.labels), ", ".join(one.kinds), one.split, f"{one.texts:,}", f"{one.spans:,}"]
        for one in found
        if one.texts
    ]
    print_table([f"Found in {folder}", "labels", "kind", "split", "texts", "spans"], rows)
    if any(one.labels for one in found):
        msg.warn(f"{folder / DATASETS} was written: check it", "A label that was never used can't be seen in the data")
    for one in found:
        if not one.labels:
            because = f" ({one.problem})" if one.problem else ""
            msg.warn(f"{folder / one.file}: {one.name} isn't declared", f"It has no span with a label{because}")
