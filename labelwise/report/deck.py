"""The cases that a report asks somebody to decide: the findings of a check, the surest first."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.errors import InputError
from labelwise.corpus.manifest import is_corpus, read_split

FILES = ("training/check-folds/findings.jsonl", "training/check/findings.jsonl")  # the first of this corpus counts
MOST = 400  # cases on a page


class Deck(NamedTuple):
    """Findings, the surest first, as a page shows them, and how many there are in all."""

    cases: list[dict[str, Any]]
    total: int = 0

    def missing(self) -> Mapping[str, int]:
        """Count the spans that may be missing, by label."""
        labels = [case["label"] for case in self.cases if case["kind"] == "missing"]
        return {label: labels.count(label) for label in labels}


def read_deck(root: Path) -> Deck:
    """Read the findings of a project; those of another corpus than there is now don't count.

    RAISES (InputError): a file isn't what a check writes.
    """
    corpus = root / "corpus"
    digest = read_split(corpus / "train").digest if is_corpus(corpus) else ""
    for file in (root / name for name in FILES):
        if not file.is_file():
            continue
        try:
            with file.open("rb") as lines:
                head, *rows = map(msgspec.json.decode, lines)
            if digest in ("", head["digest"]):
                return Deck(rows[:MOST], len(rows))
        except (*DECODE_ERRORS, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{file}: not the findings of a check ({error}); run it again") from error
    return Deck([])
