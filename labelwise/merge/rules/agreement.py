"""Agreement on texts that were annotated twice: no model can be expected to agree with its gold more than people do.

1. A *version* of a text for a label is one annotator's latest accepted answer that is complete for the label. It is the
   annotator's own work alone: an earlier answer, a rejected one, and a judgement of single spans aren't versions, nor
   is an answer that doesn't count in the merge (see `answers.why_not`; another split).
2. An annotator is who `prodigy.annotator_of` says, whatever the data set. Answers that don't say who gave them count as
   one annotator's in each data set. Names are compared as they are: Prodigy names an unnamed session after its time,
   and session `ann` of data set `person` is `person-ann`, so one person may have several.
3. "Latest" is as in the merge (`answers.Answer.order`); where that is equal, in two data sets, the last given. The
   policy `duplicates` doesn't matter here: what another annotator's answer superseded was annotated all the same.
4. Where a label has several versions, each pair is compared: `both` counts the spans with equal offsets in both,
   `spans` those of the one plus those of the other. A span that a version has twice counts once.

F between annotators, `pairwise_f`, is computed from the sums over all pairs and texts.
"""

from collections import Counter
from collections.abc import Sequence

from labelwise.common.spans import trim_usable
from labelwise.merge.rules.answers import Answer
from labelwise.sources.prodigy import annotator_of


def count_agreement(text: str, answers: Sequence[Answer]) -> dict[str, Counter[str]]:
    """Compare the versions of one text.

    answers (Sequence[Answer]): those to complete tasks, accepted or not, that count in the merge.
    RETURNS (dict): by label, for those with several versions, "texts" (1), "both" and "spans" of all pairs.
    """
    versions = find_versions(answers)
    chosen = {id(answer): answer for group in versions.values() for answer in group}
    marked = {key: accepted_offsets(text, answer) for key, answer in chosen.items()}
    agreement = {}
    for label, group in versions.items():
        times = Counter(offsets for answer in group for offsets in marked[id(answer)].get(label, ()))
        # Of n versions, each is in n - 1 pairs, and a span that k have is in k * (k - 1) / 2 pairs on both sides.
        both = sum(k * (k - 1) // 2 for k in times.values())
        agreement[label] = Counter(texts=1, both=both, spans=(len(group) - 1) * times.total())
    return agreement


def find_versions(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """Find the versions for each label that has several, one per annotator."""
    covering: dict[str, list[Answer]] = {}
    for answer in answers if len(answers) > 1 else ():
        if answer.task.answer == "accept":
            uncovered = answer.task.uncovered or ()
            for label in answer.dataset.labels:
                if label not in uncovered:
                    covering.setdefault(label, []).append(answer)
    versions = {}
    for label, group in covering.items():
        if len(group) > 1:
            latest = {_who(answer): answer for answer in sorted(group, key=lambda answer: answer.order)}
            if len(latest) > 1:
                versions[label] = list(latest.values())
    return versions


def _who(answer: Answer) -> tuple[str, str]:
    """Tell annotators apart: by name, or else by data set."""
    name = annotator_of(answer.task)
    return (name, "") if name else ("", answer.dataset.name)


def accepted_offsets(text: str, answer: Answer) -> dict[str, set[tuple[int, int]]]:
    """List the spans that a complete answer accepts, by label: those that the merge can use, trimmed as there."""
    found: dict[str, set[tuple[int, int]]] = {}
    for span in answer.task.spans or ():
        if span.answer in (None, "accept") and isinstance(span.label, str):
            start, end = trim_usable(text, span.start, span.end)
            if start != end:
                found.setdefault(span.label, set()).add((start, end))
    return found


def pairwise_f(both: int, spans: int) -> float | None:
    """Compute F between two annotators, whichever of them is taken as gold; None if neither marked anything.

    both (int): spans that both marked.
    spans (int): those of the one plus those of the other.
    The formula: Hripcsak and Rothschild (2005), "Agreement, the F-measure, and reliability in information retrieval".
    """
    return 2 * both / spans if spans else None
