"""Undecided findings of a check, for review on the page.

One answer decides a group of cases with the same question. A random sample estimates the precision of the findings.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import tanh
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.check.finding import Finding
from labelwise.corpus.answers import AnswerPlace, read_answers
from labelwise.corpus.manifest import is_corpus, read_split
from labelwise.datasets.decisions import Decision, DecisionRow, decode_decisions, find_decisions, list_cases
from labelwise.evaluate.resampling import wilson_share
from labelwise.report.advice import CASES, Shares

FILES = ("training/check-folds/findings.jsonl", "training/check/findings.jsonl")  # the first of this corpus counts
DECISIONS = "assets/decisions"
MAX_CASES = 400  # cases on a page, after which no group is added

Case = dict[str, Any]  # a row of findings.jsonl, as `check` writes it
DecidedSpans = set[tuple[str, int, int, str]]  # key of the text, start, end, label


class ReviewQueue(NamedTuple):
    """Undecided findings, most certain first.

    decided (Sequence[Decision]): one decision per decided case.
    """

    cases: list[Case]
    decided: Sequence[Decision] = ()

    @property
    def counts(self) -> dict[str, Counter[str]]:
        counts: dict[str, Counter[str]] = {}
        for one in self.cases:
            counts.setdefault(one["label"], Counter())[one["kind"]] += 1
        return counts

    def choose(self, costs: Mapping[str, int]) -> list[Case]:
        """Choose whole groups of cases, most worthwhile first, up to MAX_CASES, and the sample.

        costs (Mapping): mistakes by label to improve; of two labels, the larger number counts.
        RETURNS (list): cases, group by group, with `listed` (in a whole group) and `sample`.
        """
        groups: dict[str, list[Case]] = {}
        for one in self.cases:
            groups.setdefault(one["group"], []).append(one)
        sample = {id(one) for one in self.sample()}
        chosen: list[Case] = []
        for group in sorted(groups.values(), key=lambda cases: _worth(cases, costs), reverse=True):
            listed = len(chosen) < MAX_CASES
            cases = (one | {"sample": id(one) in sample, "listed": listed} for one in group)
            chosen += [one for one in cases if listed or one["sample"]]
        return chosen

    def shuffle(self) -> list[Any]:
        """List decisions and decidable cases in a random order, the same in each report."""
        cases = ((one, one["current"] or one["proposed"]) for one in self.cases if one["answers"])
        numbers = {draw(one["key"], label, (start, end)): one for one, (start, end, label) in cases}
        decided = [(draw(one.text, one.label, one.removed or one.added), one) for one in self.decided]
        return [one for _, one in sorted([*numbers.items(), *decided], key=itemgetter(0))]

    def sample(self) -> list[Case]:
        """List the undecided ones of the first CASES shuffled findings; none if there are fewer."""
        first = self.shuffle()[:CASES]
        return [one for one in first if not isinstance(one, Decision)] if len(first) == CASES else []

    def estimate(self) -> "Estimate | None":
        """Estimate the precision of the findings; None until the sample is decided."""
        drawn = list(takewhile(lambda one: isinstance(one, Decision), self.shuffle()))
        if len(drawn) < CASES:
            return None
        told = [(bool(one.removed and one.added), one.verdict == "gold is wrong") for one in drawn]
        every, wrong = len(self.cases) + len(self.decided), sum(is_wrong for _, is_wrong in told)
        low, high = (round(share * every) for share in wilson_share(wrong, len(told)))
        asked = sum(one.verdict == "policy" for one in drawn)
        return Estimate(every, len(told), wrong, asked, low, high, estimate_shares(told))


class Estimate(NamedTuple):
    """Precision of the findings.

    sample, wrong, asked (int): decided ones of the sample; of these, with wrong gold, and with a policy question.
    low, high (int): Wilson's interval of all correct findings.
    shares (Shares): precision by kind.
    """

    findings: int
    sample: int
    wrong: int
    asked: int
    low: int
    high: int
    shares: Shares


def estimate_shares(told: Sequence[tuple[bool, bool]]) -> Shares:
    """Estimate precision by kind; the precision of all is a prior worth one finding.

    told (Sequence): by decision, whether it is about boundaries, and whether gold was wrong.
    """
    share = sum(wrong for _, wrong in told) / len(told)
    own = ([wrong for boundaries, wrong in told if boundaries == kind] for kind in (True, False))
    return Shares(*((sum(wrong) + share) / (len(wrong) + 1) for wrong in own))


def _worth(group: Sequence[Case], costs: Mapping[str, int]) -> tuple[float, float]:
    """Score a group: expected errors minus false alarms, times the label's mistakes; ties by certainty."""
    cost = max(costs.get(span[2], 0) for span in (group[0]["current"], group[0]["proposed"]) if span)
    return cost * sum(tanh(one["score"] / 2) for one in group), group[0]["score"]  # a score is in log-odds


def draw(text: str, label: str, span: Sequence[int] | None) -> bytes:
    """Return a case's random number, the same in each report."""
    return hashlib.blake2b(repr((text, label, *(span or ()))).encode("utf8"), digest_size=8).digest()


def read_review_queue(root: Path) -> ReviewQueue:
    """Read a project's undecided findings of the current corpus.

    RAISES (InputError): if a file is malformed, or all findings are of another corpus.
    """
    corpus, rows = root / "corpus", read_decision_rows(root)
    digest = read_split(corpus / "train").digest if is_corpus(corpus) else ""
    decided, spans = list_cases(rows), decided_spans(rows, corpus if digest else None)
    files = [root / name for name in FILES if (root / name).is_file()]
    for file in files:
        try:
            with file.open("rb") as lines:
                head, *findings = map(msgspec.json.decode, lines)
            if any("form" in one for one in findings):  # today's name is surface
                raise ValueError("0.3.0 wrote them")
            msgspec.convert(findings, list[Finding])
            if digest in ("", head["digest"]):
                return ReviewQueue([one for one in findings if spans.isdisjoint(spans_of(one))], decided)
        except (*DECODE_ERRORS, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{file}: not the findings of a check ({error}); run it again") from error
    if files:
        raise InputError(f"{files[-1]}: its findings are of another corpus; run `weasel run check`")
    return ReviewQueue([], decided)


def read_decision_rows(root: Path) -> list[DecisionRow]:
    """Read the rows of a project's decisions.

    RAISES (InputError): if a file can't be read.
    """
    folder = root / DECISIONS
    return [*find_decisions(folder)] if folder.is_dir() else []


def count_decided(root: Path, before: bytes) -> int:
    """Count the cases decided since an earlier content of the decisions."""
    then = {row.decision for row in decode_decisions(before)}
    return sum(one not in then for one in list_cases(read_decision_rows(root)))


def decided_spans(rows: Sequence[DecisionRow], corpus: Path | None) -> DecidedSpans:
    """Collect the spans of decisions whose answer is unchanged in the corpus, if there is one."""
    decisions = [row.decision for row in rows if row.decision]
    if decisions and corpus:
        answers = dict(read_answers(corpus, {one.text for one in decisions}))
        decisions = [one for one in decisions if _is_valid(one, answers.get(one.text, ()))]
    return {(one.text, *span, one.label) for one in decisions for span in one.spans}


def _is_valid(decision: Decision, answers: Sequence[AnswerPlace]) -> bool:
    return decision.answer in {one.digest(decision.label) for one in answers if one.dataset == decision.dataset}


def spans_of(finding: Case) -> DecidedSpans:
    return {(finding["key"], *span) for span in (finding["current"], finding["proposed"]) if span}
