"""Findings of a check, most certain first; the report shows them for review."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from labelwise.base.parallel import Progress, no_progress
from labelwise.base.text import SpanKey, sentence_around, times
from labelwise.check.findings import CheckedDoc, Correction, Kind, Place
from labelwise.corpus.answers import AnswerPlace, read_answers

MIN_SCORE = 0.0  # log-odds of a listed finding: more likely right than wrong
MAX_SLIPS_SHARE = 0.01  # of a label's spans: above this share, findings of one kind count for less
DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


class Answered(msgspec.Struct):
    """A dataset's answer that a finding is about, with its digest for the label (`annotations.answer_digest`)."""

    dataset: str
    file: str
    answer: str
    annotator: str


class Finding(msgspec.Struct):
    """An annotation that contradicts the others; offsets are characters.

    score (float): evidence, in log-odds.
    label, surface (str): of the annotated span (of the proposed span if that is missing).
    current (tuple | None): start, end and label of the annotated span; None if missing.
    proposed (tuple | None): of the correction; None if the span should be removed.
    before, after (str): rest of the sentence.
    group (str): the question; one answer decides all its findings.
    answers (dict): by label, the answer that a decision changes.
    others (list): other spans of the sentence, with offsets from the start of this one.
    """

    score: float
    kind: Kind
    label: str
    surface: str
    current: SpanKey | None
    proposed: SpanKey | None
    better: str
    split: str
    doc: str
    key: str
    before: str
    after: str
    why: str
    group: str = ""
    answers: dict[str, Answered] = {}
    others: list[SpanKey] = []

    @property
    def spans(self) -> list[SpanKey]:
        """The annotated span and the proposed one."""
        return [span for span in (self.current, self.proposed) if span]


def finding_of(doc: CheckedDoc, correction: Correction, labels: Sequence[str], *, why: str = "") -> Finding:
    """Convert a correction from tokens to characters, with its sentence.

    why (str): evidence in words; default: the correction's.
    """
    text = doc.stored.text
    starts, ends = doc.stored.offsets()

    def in_characters(place: Place | None) -> SpanKey | None:
        return (int(starts[place[0]]), int(ends[place[1] - 1]), labels[place[2]]) if place else None

    current, proposed = in_characters(correction.current), in_characters(correction.proposed)
    start, end, label = here = current or proposed or (0, 0, "")
    first, last = sentence_around(text, start, end)
    surface, better = (" ".join(text[span[0] : span[1]].split()) for span in (here, proposed or here))
    return Finding(
        score=round(correction.score, 4),
        kind=correction.kind,
        label=label,
        surface=surface,
        current=current,
        proposed=proposed,
        better=better if proposed else "",
        split=doc.split,
        doc=doc.stored.annotation.doc,
        key=doc.stored.key,
        before=text[first:start],
        after=text[end:last],
        why=why or say_why(correction, surface, label, better, (proposed or here)[2]),
        group=ask(text, current, proposed),
        others=sorted(
            (one - start, other - start, name)
            for one, other, name in doc.stored.annotation.accepted
            if one < last and other > first and (one, other, name) != current
        ),
    )


def ask(text: str, current: SpanKey | None, proposed: SpanKey | None) -> str:
    """Return the question that groups a finding with others.

    >>> ask("the mouse .", (4, 11, "ORG"), (4, 9, "ORG")), ask("the mouse .", (4, 11, "ORG"), (0, 11, "ORG"))
    ("ORG without '.' at the end?", "ORG with 'the' at the start?")
    >>> ask("the mouse .", None, (4, 9, "ORG")), ask("the mouse .", (4, 9, "ORG"), None)
    ("'mouse': ORG?", "'mouse': not ORG?")
    >>> ask("the mouse .", (4, 9, "ORG"), (4, 9, "PER"))
    "'mouse': PER or ORG?"
    """
    start, end, label = current or proposed or (0, 0, "")
    surface = " ".join(text[start:end].split())
    if not current or not proposed:
        return f"{surface!r}: {'' if proposed else 'not '}{label}?"
    if current[:2] == proposed[:2]:
        return f"{surface!r}: {proposed[2]} or {label}?"
    edges = [("start", proposed[0], start, proposed[0] < start), ("end", end, proposed[1], proposed[1] > end)]
    ways = (
        f"{'with' if more else 'without'} {generalize(text[min(one, other) : max(one, other)])!r} at the {side}"
        for side, one, other, more in edges
        if one != other
    )
    return f"{label} {', '.join(ways)}?"


def generalize(words: str) -> str:
    """Normalize words: lower case, single spaces, and 0 for numbers."""
    return DIGITS.sub("0", " ".join(words.lower().split()))


def say_why(correction: Correction, surface: str, label: str, better: str, proposed: str) -> str:
    """Describe a correction and its evidence: annotations elsewhere, and the pipeline's.

    surface, label: of the annotated span (of the proposed span if that is missing).
    better, proposed: of the proposed span (of the annotated span if it should be removed).

    >>> say_why(Correction(None, (0, 1, 0), 1.5, 7, 0, True), "Rome", "CITY", "Rome", "CITY")
    "'Rome' may be CITY: elsewhere it is 7 times; a pipeline trained without this text agrees"
    """
    change, so, not_so = {
        "missing": (f"{surface!r} may be {label}", "it is", "isn't"),
        "spurious": (f"{surface!r} may not be {label}", "it isn't", "is"),
        "wrong label": (f"{surface!r} may be {proposed}", f"it is {proposed}", label),
        "wrong boundaries": (f"{surface!r} may have to be {better!r}", f"{better!r} is {label}", repr(surface)),
    }[correction.kind]
    reasons = [f"elsewhere {so} {times(correction.times)}"] if correction.times else []
    if reasons and correction.against:
        reasons[0] += f" and {not_so} {times(correction.against)}"
    if correction.agrees:
        reasons.append("a pipeline trained without this text agrees")
    return f"{change}: {'; '.join(reasons)}" if reasons else change


def rank(findings: Sequence[Finding], gold: Mapping[str, int]) -> list[Finding]:
    """Sort findings, most certain first; each counts for less if its label has many of a kind.

    A pipeline that can't separate two labels disagrees with gold everywhere, and is mostly wrong: of 30 suspects in 100
    spans, a few are errors; a single suspect probably is one.
    """
    counts = Counter((finding.label, finding.kind) for finding in findings)
    for finding in findings:
        share = counts[finding.label, finding.kind] / max(1, gold.get(finding.label, 0))
        finding.score = round(finding.score - math.log(max(1.0, share / MAX_SLIPS_SHARE)), 4)
    return sorted((finding for finding in findings if finding.score >= MIN_SCORE), key=lambda finding: -finding.score)


def locate(
    findings: Iterable[Finding],
    corpus: Path,
    declared: Mapping[str, Sequence[str]],
    progress: Progress = no_progress,
) -> None:
    """Add to findings the answers that they are about: a complete answer covers its text, a binary one single spans."""
    by_key: dict[str, list[Finding]] = {}
    for finding in findings:
        by_key.setdefault(finding.key, []).append(finding)
    for key, answers in progress(read_answers(corpus, by_key), "look up answers", len(by_key)):
        for finding in by_key[key]:
            for answer in answers:
                for label in sorted({span[2] for span in finding.spans} & {*declared.get(answer.dataset, ())}):
                    if label not in finding.answers and _is_about(answer, finding):
                        file = answer.of(finding.current and finding.current[:2])
                        finding.answers[label] = Answered(answer.dataset, file, answer.digest(label), answer.annotator)


def _is_about(answer: AnswerPlace, finding: Finding) -> bool:
    return answer.judged is None or any(
        start < span[1] and span[0] < end for start, end in answer.judged for span in finding.spans
    )
