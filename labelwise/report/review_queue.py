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
MAX_CASES = 400  # on a page, except for the last group

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
        """Count the cases by label and kind."""
        counts: dict[str, Counter[str]] = {}
        for case in self.cases:
            counts.setdefault(case["label"], Counter())[case["kind"]] += 1
        return counts

    def choose(self, costs: Mapping[str, int]) -> list[Case]:
        """Choose whole groups of cases, most worthwhile first, up to MAX_CASES, and the sample.

        costs (Mapping): errors by label to improve; of two labels, the larger number counts.
        RETURNS (list): cases, group by group, with `listed` (in a whole group) and `sample`.
        """
        groups: dict[str, list[Case]] = {}
        for case in self.cases:
            groups.setdefault(case["group"], []).append(case)
        sample = {id(case) for case in self.sample()}
        chosen: list[Case] = []
        for group in sorted(groups.values(), key=lambda cases: _worth(cases, costs), reverse=True):
            listed = len(chosen) < MAX_CASES
            cases = (case | {"sample": id(case) in sample, "listed": listed} for case in group)
            chosen += [case for case in cases if listed or case["sample"]]
        return chosen

    def shuffle(self) -> list[Any]:
        """List decisions and decidable cases in a random order, the same in each report."""
        cases = ((case, case["current"] or case["proposed"]) for case in self.cases if case["answers"])
        numbers = {draw(case["key"], label, (start, end)): case for case, (start, end, label) in cases}
        decided = [(draw(one.text, one.label, one.removed or one.added), one) for one in self.decided]
        return [item for _, item in sorted([*numbers.items(), *decided], key=itemgetter(0))]

    def sample(self) -> list[Case]:
        """List the undecided ones of the first CASES shuffled findings; none if there are fewer."""
        first = self.shuffle()[:CASES]
        return [item for item in first if not isinstance(item, Decision)] if len(first) == CASES else []

    def estimate(self) -> "Estimate | None":
        """Estimate the precision of the findings; None until the sample is decided."""
        drawn = list(takewhile(lambda item: isinstance(item, Decision), self.shuffle()))
        if len(drawn) < CASES:
            return None
        verdicts = [(bool(one.removed and one.added), one.verdict == "gold is wrong") for one in drawn]
        every, wrong = len(self.cases) + len(self.decided), sum(is_wrong for _, is_wrong in verdicts)
        low, high = (round(share * every) for share in wilson_share(wrong, len(verdicts)))
        asked = sum(one.verdict == "policy" for one in drawn)
        return Estimate(every, len(verdicts), wrong, asked, low, high, estimate_shares(verdicts))


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


def estimate_shares(decided: Sequence[tuple[bool, bool]]) -> Shares:
    """Estimate precision by kind; the precision of all is a prior worth one finding.

    decided (Sequence): by decision, whether it is about boundaries, and whether gold was wrong.
    """
    share = sum(wrong for _, wrong in decided) / len(decided)
    sides = ([wrong for boundaries, wrong in decided if boundaries == kind] for kind in (True, False))
    return Shares(*((sum(wrong) + share) / (len(wrong) + 1) for wrong in sides))


def _worth(group: Sequence[Case], costs: Mapping[str, int]) -> tuple[float, float]:
    """Score a group: expected errors minus false alarms, times the label's mistakes; ties by certainty."""
    cost = max(costs.get(span[2], 0) for span in (group[0]["current"], group[0]["proposed"]) if span)
    return cost * sum(tanh(case["score"] / 2) for case in group), group[0]["score"]  # a score is in log-odds


def draw(text: str, label: str, span: Sequence[int] | None) -> bytes:
    """Return a case's random number, the same in each report."""
    return hashlib.blake2b(repr((text, label, *(span or ()))).encode("utf8"), digest_size=8).digest()


def read_review_queue(root: Path) -> ReviewQueue:
    """Read a project's undecided findings of the current corpus; refuse malformed files, and findings of another
    corpus.
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
                return ReviewQueue([finding for finding in findings if spans.isdisjoint(spans_of(finding))], decided)
        except (*DECODE_ERRORS, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{file}: not the findings of a check ({error}); run it again") from error
    if files:
        raise InputError(f"{files[-1]}: its findings are of another corpus; run `weasel run check`")
    return ReviewQueue([], decided)


def read_decision_rows(root: Path) -> list[DecisionRow]:
    """Read the rows of a project's decisions; refuse an unreadable file."""
    folder = root / DECISIONS
    return [*find_decisions(folder)] if folder.is_dir() else []


def count_decided(root: Path, before: bytes) -> int:
    """Count the cases decided since an earlier content of the decisions."""
    then = {row.decision for row in decode_decisions(before)}
    return sum(decision not in then for decision in list_cases(read_decision_rows(root)))


def decided_spans(rows: Sequence[DecisionRow], corpus: Path | None) -> DecidedSpans:
    """Collect the spans of decisions whose answer is unchanged in the corpus, if any."""
    decisions = [row.decision for row in rows if row.decision]
    if decisions and corpus:
        answers = dict(read_answers(corpus, {decision.text for decision in decisions}))
        decisions = [decision for decision in decisions if _is_valid(decision, answers.get(decision.text, ()))]
    return {(decision.text, *span, decision.label) for decision in decisions for span in decision.spans}


def _is_valid(decision: Decision, answers: Sequence[AnswerPlace]) -> bool:
    return decision.answer in {place.digest(decision.label) for place in answers if place.dataset == decision.dataset}


def spans_of(finding: Case) -> DecidedSpans:
    """Return a finding's annotated and proposed spans."""
    return {(finding["key"], *span) for span in (finding["current"], finding["proposed"]) if span}
