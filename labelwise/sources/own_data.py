"""Data of one's own, beside which the demo corpus isn't needed; looked for without spaCy, in a fraction of a second."""

from pathlib import Path

from labelwise.corpus.tasks import DATASETS
from labelwise.sources.brat import find_documents

NOT_DATA = (".md", ".example", DATASETS)  # of names that are ignored without a message


def find_own_data(brat_dir: Path | None, prodigy: Path | None) -> Path | None:
    """Find a folder with data of one's own: brat documents, or data sets.

    RAISES (InputError): there is no such brat folder, or one in it can't be read.
    """
    if brat_dir and find_documents(brat_dir):
        return brat_dir
    return prodigy if prodigy and has_data(prodigy) else None


def has_data(folder: Path) -> bool:
    """Tell whether there is anything in a folder that may be a data set, or that declares some elsewhere."""
    return folder.is_dir() and any(file.name == DATASETS or is_data(file) for file in folder.iterdir())


def is_data(file: Path) -> bool:
    """Tell whether something in a folder is, or may be meant to be, a data set."""
    return not file.name.startswith(".") and not file.name.endswith(NOT_DATA)
