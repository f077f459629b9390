"""Add undeclared files of a folder to its `datasets.yml`, each with its name, path and used labels.

A file that is named after a split is declared for it: `dev.spacy`, `food_eval.jsonl`. `train` counts only beside both
of the others, and these count only if something is left to learn from.
"""

import errno
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from labelwise.base.console import msg, print_table
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.settings import DATASETS
from labelwise.base.text import counted
from labelwise.corpus.manifest import Split
from labelwise.datasets.brat_folders import SPLIT_FOLDERS
from labelwise.datasets.entries import Entry, decode_entries, read_entries, write_entries
from labelwise.datasets.undeclared import Undeclared, find_undeclared
from labelwise.sources.files import read_file

COMMENT = """\
# Found in this folder. Check it: list all labels that annotators were shown, because unused labels can't be inferred,
# and write `split: test` for a test set. docs/formats.md has all keys.
"""


# The words in names that stand for splits. Evaluation sets are for tests: training chooses nothing by them.
SPLIT_WORDS: Mapping[str, Split] = {
    **SPLIT_FOLDERS,
    "training": "train",
    **{"testa": "dev", "testb": "test"},  # CoNLL-2003's
    **dict.fromkeys(("eval", "evaluation", "testing"), "test"),
}


def declare(folder: Path) -> list[Undeclared]:
    """Declare the files of a folder, and print the new entries; return undeclarable files."""
    undeclared = declare_folder(folder)
    new = [candidate for candidate in undeclared if not candidate.problem]
    splits = ["split"] if any(candidate.entry.split != "auto" for candidate in new) else []
    rows = [
        [
            candidate.entry.name,
            ", ".join(candidate.entry.labels),
            f"{candidate.texts:,}",
            *(candidate.entry.split for _ in splits),
        ]
        for candidate in new
    ]
    added = f"Added to {folder / DATASETS}"
    print_table([added, "labels", "texts", *splits], rows, whole=added)
    if new:
        msg.warn(
            f"Check the {counted(len(new), 'dataset') if len(new) > 1 else 'dataset'} added to {folder / DATASETS}",
            f"{'They list' if len(new) > 1 else 'It lists'} the labels that occur: "
            "add each label that annotators were shown but never used"
            + ("; a `split` is what the file is named after" if splits else ""),
        )
    return [candidate for candidate in undeclared if candidate.problem]


def declare_folder(folder: Path) -> list[Undeclared]:
    """Add an entry to a folder's `datasets.yml` for each undeclared file: name, path and used labels.

    RETURNS (list[Undeclared]): all files without an entry. Files without labels and unreadable files aren't added, nor
        any if the `datasets.yml` can't be extended or written.
    RAISES (InputError): if an entry's sources can't be found; see `declarations.find_sources`.
    """
    file = folder / DATASETS
    content = read_file(file).decode() if file.is_file() else ""
    entries = read_entries(file) if content else []
    undeclared = name_splits([*find_undeclared(folder, entries)], entries)
    new = [candidate.entry for candidate in undeclared if not candidate.problem]
    if not new:
        return undeclared

    def refused(why: str) -> list[Undeclared]:
        return [candidate if candidate.problem else candidate._replace(problem=why) for candidate in undeclared]

    content += "" if content[-1:] in ("", "\n") else "\n"
    content += ("" if COMMENT in content else COMMENT) + write_entries(new)
    try:
        fits = decode_entries(content.encode(), file) == [*entries, *new]
    except InputError:
        fits = False
    if not fits:
        return refused("its entry can't be added at the end")
    try:
        with atomic(file) as [path]:
            path.write_text(content, encoding="utf8")
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return refused(f"its entry can't be added ({error.strerror}: {folder})")
    return undeclared


def name_splits(undeclared: Sequence[Undeclared], entries: Sequence[Entry]) -> list[Undeclared]:
    """Give entries the splits that their files are named after."""
    named_splits = [split_in(candidate.entry.paths[0]) if not candidate.entry.db else None for candidate in undeclared]
    usable = [split for candidate, split in zip(undeclared, named_splits, strict=True) if not candidate.problem]
    splits = {*usable, *(entry.split for entry in entries if not entry.skip)}
    if not {"dev", "test"} <= splits:
        named_splits = [None if split == "train" else split for split in named_splits]
    if splits <= {"dev", "test"}:
        return [*undeclared]
    return [
        candidate._replace(entry=msgspec.structs.replace(candidate.entry, split=split)) if split else candidate
        for candidate, split in zip(undeclared, named_splits, strict=True)
    ]


def split_in(name: str) -> Split | None:
    """Return the split that a file is named after, by a whole word; None without one, or with two.

    >>> split_in("food_eval.jsonl"), split_in("Train.conll"), split_in("contest.jsonl"), split_in("train-test.jsonl")
    ('test', 'train', None, None)
    """
    words = re.split(r"[^a-z]+", name.lower())
    splits = {SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS}
    return splits.pop() if len(splits) == 1 else None
