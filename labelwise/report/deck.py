"""The cases that a report asks somebody to decide: findings of a check, the surest first, without those decided."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.annotations import answer_digest
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.corpus.answers import AnswerPlace, read_answers
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import is_corpus, read_split
from labelwise.datasets.decisions import Decision, DecisionRow, decode_decisions, find_decisions, list_cases
from labelwise.report.advice import CASES

FILES = ("training/check-folds/findings.jsonl", "training/check/findings.jsonl")  # the first of this corpus counts
DECISIONS = "assets/decisions"
MOST = 400  # cases on a page
NOTHING = answer_digest(())

DecidedSpans = set[tuple[str, int, int, str]]  # key of the text, start, end, label


class Deck(NamedTuple):
    """Findings that nobody has decided, the surest first, as a page shows them.

    counts (Mapping): of all of them, by label and kind.
    decided (Sequence[Decision]): one of each case that was decided.
    """

    cases: list[dict[str, Any]]
    counts: Mapping[str, Counter[str]] = {}
    decided: Sequence[Decision] = ()

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
    """Read the findings of a project that nobody has decided; those of another corpus than there is now don't count.

    RAISES (InputError): a file isn't what a check or a merge writes, or all findings are of another corpus.
    """
    corpus, rows = root / "corpus", read_decision_rows(root)
    digest = read_split(corpus / "train").digest if is_corpus(corpus) else ""
    cases, decided = list_cases(rows), decided_spans(rows, corpus if digest else None)
    files = [root / name for name in FILES if (root / name).is_file()]
    for file in files:
        try:
            with file.open("rb") as lines:
                head, *findings = map(msgspec.json.decode, lines)
            if digest in ("", head["digest"]):
                findings = [one for one in findings if not decided & spans_of(one)]
                counts: dict[str, Counter[str]] = {}
                for one in findings:
                    counts.setdefault(one["label"], Counter())[one["kind"]] += 1
                return Deck(findings[:MOST], counts, cases)
        except (*DECODE_ERRORS, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{file}: not the findings of a check ({error}); run it again") from error
    if files:
        raise InputError(f"{files[-1]}: its findings are of another corpus; run `weasel run check`")
    return Deck([], decided=cases)


def read_decision_rows(root: Path) -> list[DecisionRow]:
    """Read the rows of a project's decisions.

    RAISES (InputError): a file can't be read.
    """
    folder = root / DECISIONS
    return [*find_decisions(folder)] if folder.is_dir() else []


def count_decided(root: Path, before: bytes) -> int:
    """Count the cases that were decided since there were other rows of decisions."""
    then = {row.decision for row in decode_decisions(before)}
    return sum(one not in then for one in list_cases(read_decision_rows(root)))


def decided_spans(rows: Sequence[DecisionRow], corpus: Path | None) -> DecidedSpans:
    """Collect the spans that decisions name, of those whose answer hasn't changed.

    corpus (Path | None): None if there is none: then all count.
    """
    made: dict[str, list[Decision]] = {}
    for one in (row.decision for row in rows if row.decision):
        made.setdefault(one.text, []).append(one)
    if made and corpus:
        answers = read_answers(corpus, made)
        made = {text: [one for one in made[text] if _is_valid(one, found)] for text, found in answers}
    return {(one.text, *span, one.label) for decisions in made.values() for one in decisions for span in one.spans}


def _is_valid(decision: Decision, answers: Sequence[AnswerPlace]) -> bool:
    digests = (one.digests.get(decision.label, NOTHING) for one in answers if one.dataset == decision.dataset)
    return decision.answer in digests


def spans_of(finding: Mapping[str, Any]) -> DecidedSpans:
    """List the spans that a finding is about."""
    return {(finding["key"], *span) for span in (finding["current"], finding["proposed"]) if span}


def estimate_wrong(deck: Deck, merge: Ledger | None) -> Decided | None:
    """Estimate the share of gold that is wrong, from what was decided in train and dev; None with few decisions.

    Cases in which gold was wrong are right by now; of those that are left, as many are wrong as of those decided.
    """
    gold = sum(counts.total() for split, counts in merge.gold.items() if split != "test") if merge else 0
    cases = len(deck.decided)
    if not gold or cases < CASES:
        return None
    wrong = sum(one.verdict == "gold is wrong" for one in deck.decided)
    return Decided(cases, wrong, min(1.0, (wrong + deck.total * wrong / cases) / gold))
