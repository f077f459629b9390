"""The cases that a report asks somebody to decide: findings of a check, without those decided.

Those that ask one question are a group, which one answer decides. How many findings are right is estimated from a
random sample of all.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.annotations import answer_digest
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.corpus.answers import AnswerPlace, read_answers
from labelwise.corpus.manifest import is_corpus, read_split
from labelwise.datasets.decisions import Decision, DecisionRow, decode_decisions, find_decisions, list_cases
from labelwise.evaluate.resampling import wilson_share
from labelwise.report.advice import CASES, Shares

FILES = ("training/check-folds/findings.jsonl", "training/check/findings.jsonl")  # the first of this corpus counts
DECISIONS = "assets/decisions"
MOST = 800  # cases on a page, from which no group is added
NOTHING = answer_digest(())

DecidedSpans = set[tuple[str, int, int, str]]  # key of the text, start, end, label


class Deck(NamedTuple):
    """Findings that nobody has decided, the surest first.

    counts (Mapping): of all of them, by label and kind.
    decided (Sequence[Decision]): one of each case that was decided.
    """

    cases: list[dict[str, Any]]
    counts: Mapping[str, Counter[str]] = {}
    decided: Sequence[Decision] = ()

    @property
    def total(self) -> int:
        """The number of all findings."""
        return len(self.cases)

    def choose(self, costs: Mapping[str, int]) -> list[dict[str, Any]]:
        """Choose the cases of a page: whole groups, the best first, until there are MOST; and what the sample lacks.

        costs (Mapping): how much worth it is to see to a label; a label that isn't named comes last. Of two labels, a
            case counts for the one that is worth more.
        RETURNS (list): cases, those of a group one after the other; `sample` is true of those in the sample, `listed`
            of those in a group.
        """
        groups: dict[str, list[dict[str, Any]]] = {}
        for one in self.cases:
            groups.setdefault(one["group"] or str(len(groups)), []).append(one)
        sample = {id(one) for one in self.sample()}
        chosen: list[dict[str, Any]] = []
        for group in sorted(groups.values(), key=lambda cases: _worth(cases, costs), reverse=True):
            listed = len(chosen) < MOST
            chosen += (
                one | {"sample": id(one) in sample, "listed": listed} for one in group if listed or id(one) in sample
            )
        return chosen

    def sample(self) -> list[dict[str, Any]]:
        """Choose the cases that are in a random sample of CASES of all findings, and that nobody has decided.

        RETURNS (list): none if there are fewer than CASES.
        """
        decided = [draw(one.text, one.label, one.removed or one.added) for one in self.decided]
        undecided = {draw(one["key"], *_about(one)): one for one in self.cases if one["answers"]}
        first = sorted([*decided, *undecided])[:CASES]
        if len(first) < CASES:
            return []
        return [undecided[number] for number in first if number in undecided]

    def estimate(self) -> "Estimate | None":
        """Estimate how many findings are right from those decided of a random sample; None until CASES are decided."""
        undecided = min((draw(one["key"], *_about(one)) for one in self.cases if one["answers"]), default=b"\xff")
        drawn = [one for one in self.decided if draw(one.text, one.label, one.removed or one.added) < undecided]
        told = [
            (bool(one.removed and one.added), one.verdict == "gold is wrong")
            for one in drawn
            if one.verdict != "policy"
        ]
        if len(drawn) < CASES or not told:
            return None
        sure = [wrong for _, wrong in told]
        every = self.total + len(self.decided)
        low, high = (round(share * every) for share in wilson_share(sum(sure), len(sure)))
        return Estimate(every, len(sure), sum(sure), low, high, estimate_shares(told))


class Estimate(NamedTuple):
    """How many findings are right.

    findings (int): all that there were, decided or not.
    sample, wrong (int): those that were drawn and decided; and in how many of them gold was wrong.
    low, high (int): the ends of Wilson's interval of how many of all are right.
    shares (Shares): by kind.
    """

    findings: int
    sample: int
    wrong: int
    low: int
    high: int
    shares: Shares


def estimate_shares(told: Sequence[tuple[bool, bool]]) -> Shares:
    """Estimate the shares of findings that are right, from decided ones; all together are a prior, worth one of a kind.

    told (Sequence): of each, whether it is about boundaries, and whether gold was wrong.
    """
    share = sum(wrong for _, wrong in told) / len(told)
    own = ([wrong for boundaries, wrong in told if boundaries == kind] for kind in (True, False))
    return Shares(*((sum(wrong) + share) / (len(wrong) + 1) for wrong in own))


def _worth(group: Sequence[Mapping[str, Any]], costs: Mapping[str, int]) -> tuple[float, float]:
    """Add up the probabilities that cases are right, times the label's cost; where it is 0, the surest come first."""
    cost = max(costs.get(span[2], 0) for span in (group[0]["current"], group[0]["proposed"]) if span)
    return cost * sum(1 / (1 + exp(-one["score"])) for one in group), group[0]["score"]


def _about(case: Mapping[str, Any]) -> tuple[str, Sequence[int]]:
    start, end, label = case["current"] or case["proposed"]
    return label, (start, end)


def draw(text: str, label: str, span: Sequence[int] | None) -> bytes:
    """Give a case a random number, the same in each report."""
    return hashlib.blake2b(repr((text, label, *(span or ()))).encode("utf8"), digest_size=8).digest()


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
                return Deck(findings, counts, cases)
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
