"""The cases that a report asks somebody to decide: the findings of a check, the surest first, and what was decided."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import is_corpus, read_split
from labelwise.errors import InputError
from labelwise.report.advice import CASES
from labelwise.sources.decisions import read_decisions
from labelwise.text import DECODE_ERRORS

FILES = ("training/check-folds/findings.jsonl", "training/check/findings.jsonl")  # the first of this corpus counts
DECISIONS = "assets/decisions/decisions.jsonl"
MOST = 400  # cases on a page


class Deck(NamedTuple):
    """Findings, the surest first, as a page shows them.

    counts (Mapping): of all findings, by label and kind.
    """

    cases: list[dict[str, Any]]
    counts: Mapping[str, Counter[str]] = {}

    @property
    def total(self) -> int:
        """The number of all findings."""
        return sum(kinds.total() for kinds in self.counts.values())


class Decided(NamedTuple):
    """What was decided: cases, those in which gold was wrong, and the share of gold that is wrong by that."""

    cases: int
    wrong: int
    share: float


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
                counts: dict[str, Counter[str]] = {}
                for row in rows:
                    counts.setdefault(row["label"], Counter())[row["kind"]] += 1
                return Deck(rows[:MOST], counts)
        except (*DECODE_ERRORS, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{file}: not the findings of a check ({error}); run it again") from error
    return Deck([])


def read_decided(root: Path, deck: Deck, merge: Ledger | None) -> Decided | None:
    """Estimate the share of gold that is wrong, from what was decided in train and dev; None with few decisions.

    Cases in which gold was wrong are right by now; of those that are left, as many are wrong as of those decided.
    """
    file = root / DECISIONS
    gold = sum(counts.total() for split, counts in merge.gold.items() if split != "test") if merge else 0
    if not gold or not file.is_file():
        return None
    decisions = [row.decision for row in read_decisions(file) if row.decision]
    verdicts = {(one.text, one.removed or one.added): one.verdict for one in decisions}
    wrong = sum(verdict == "gold is wrong" for verdict in verdicts.values())
    if len(verdicts) < CASES:
        return None
    left = deck.total * wrong / len(verdicts)
    return Decided(len(verdicts), wrong, min(1.0, (wrong + left) / gold))
