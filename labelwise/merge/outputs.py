"""The files of a merge in the corpus folder, which it may replace."""

import os
from collections.abc import Sequence
from pathlib import Path

from labelwise.base.errors import InputError
from labelwise.corpus.import_checks import IMPORT_CHECKS
from labelwise.corpus.manifest import MANIFEST, SPLITS, TABLES, is_corpus
from labelwise.merge.read import Source

NEAR_DUPLICATES = "near_duplicates.jsonl"
# In the order of their replacement: the tables come first, and identify the files that a killed merge has left.
FOLDERS = (*SPLITS, "labels")
OUTPUTS = (*TABLES, *FOLDERS, "tokenizer.json", NEAR_DUPLICATES, IMPORT_CHECKS, MANIFEST)


def check_out(out: Path, sources: Sequence[Source]) -> None:
    """Refuse a folder with files to replace that no merge has made, or that this one reads."""
    folder = out.resolve()
    for source in sources:
        path = source.file.path.resolve()
        if any(path.is_relative_to(folder / name) for name in OUTPUTS) or folder.is_relative_to(path):
            raise InputError(
                f"dataset {source.dataset.name!r}: {path} is an input, so {out} can't be written there; write "
                "elsewhere, or declare a path or a pattern that leaves it out"
            )
    for name, ours in [*((split, "part-*.spacy") for split in SPLITS), ("labels", "*.json")]:
        other = [file for file in (out / name).glob("*") if not file.match(ours)]
        if other:
            raise InputError(f"{out}: it has {other[0].relative_to(out)}, which no merge made; choose another folder")
    existing = [name for name in OUTPUTS if os.path.lexists(out / name)]
    if existing and not is_corpus(out):
        from labelwise.corpus.tables import has_tables  # it imports pyarrow, 40 MB that workers don't need

        if not has_tables(out):
            raise InputError(f"{out}: it has {existing[0]}, which no merge made; choose another folder")
