"""Agreement on texts that were annotated twice: no model can be expected to agree with its gold more than people do.

1. A *version* of a text for a label is one annotator's latest accepted answer that is complete for the label. It is the
   annotator's own work alone: an earlier answer, a rejected one, and a judgement of single spans aren't versions, nor
   is an answer that doesn't count in the merge (see `answers.why_not`; another split).
2. An annotator is who `answers.annotator` says: a named person in all data sets, or a data set, whose answers nobody
   has signed.
3. "Latest" is as in the merge (`answers.Answer.order`). The
   policy `duplicates` doesn't matter here: what another annotator's answer superseded was annotated all the same.
4. Where a label has several versions, each pair is compared: `both` counts the spans with equal offsets in both,
   `spans` those of the one plus those of the other. A span that a version has twice counts once.

F between annotators, `pairwise_f`, is computed from the sums over all pairs and texts. For two people, there is also
Cohen's kappa over tokens (`kappa`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt

from labelwise.merge.rules.answers import Answer, Offsets, accepted_offsets
from labelwise.merge.rules.lost_spans import review_task


class Version(msgspec.Struct):
    """The spans that an annotator marked with a label in a text.

    who (str): the annotator, or the data set, if nobody is named.
    """

    who: str
    marked: set[Offsets]


def find_versions(answers: Sequence[Answer]) -> dict[str, list[Version]]:
    """Find the versions of one text, by label, for those that have several.

    answers (Sequence[Answer]): those to complete tasks, accepted or not, that count in the merge.
    RETURNS (dict): by label, sorted by annotator; the second of the same name, such as a data set's, has a number.
    """
    groups = _latest_answers(answers)
    chosen = {id(answer): answer for group in groups.values() for answer in group}
    marked = {key: accepted_offsets(answer) for key, answer in chosen.items()}
    versions: dict[str, list[Version]] = {}
    for label, group in groups.items():
        names: Counter[str] = Counter()
        versions[label] = []
        for name, answer in sorted(((_name(answer), answer) for answer in group), key=lambda item: item[0]):
            names[name] += 1
            who = name if names[name] == 1 else f"{name} ({names[name]})"
            versions[label].append(Version(who, marked[id(answer)].get(label, set())))
    return versions


def count_pairs(
    versions: Mapping[str, Sequence[Version]], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> Iterator[tuple[tuple[str, str, str], Counter[str]]]:
    """Compare the versions of one text, annotator by annotator.

    starts, ends (np.ndarray): of the text's tokens, in characters.
    YIELDS (tuple): label and both annotators, and the counts for `AnnotatorPair`.
    """
    for label, group in versions.items():
        tokens = []
        for version in group:
            inside = np.zeros(len(starts), bool)
            for start, end in version.marked:
                inside |= (starts < end) & (ends > start)
            tokens.append(inside)
        for one, other in combinations(range(len(group)), 2):
            here, there = group[one].marked, group[other].marked
            yield (
                (label, group[one].who, group[other].who),
                Counter(
                    texts=1,
                    both=len(here & there),
                    spans=len(here) + len(there),
                    tokens=len(starts),
                    one=int(tokens[one].sum()),
                    other=int(tokens[other].sum()),
                    same=int((tokens[one] == tokens[other]).sum()),
                ),
            )


def disagreement_tasks(
    text: str, versions: Mapping[str, Sequence[Version]], places: Sequence[tuple[str, str, int]] = (), name: str = ""
) -> Iterator[bytes]:
    """Yield lines of JSON, tasks that Prodigy can show: spans that several people marked differently, label by label.

    places, name: see `one_text.Merged`.
    """
    for label, group in versions.items():
        if all(version.marked == group[0].marked for version in group):
            continue
        marked = sorted({offsets for version in group for offsets in version.marked})
        spans = [
            {"start": start, "end": end, "label": label}
            | {"annotators": sorted(version.who for version in group if (start, end) in version.marked)}
            for start, end in marked
        ]
        who = ", ".join(sorted(version.who for version in group))
        yield review_task(text, spans, {"label": label, "annotators": who, "doc": name}, places)


def _latest_answers(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """Find the latest answer of each annotator, for each label that has several annotators."""
    latest: dict[str, dict[tuple[str, str], Answer]] = {}
    if len(answers) > 1:
        for answer in sorted(answers, key=lambda answer: answer.order):
            for label in answer.dataset.labels if answer.task.answer == "accept" else ():
                if label not in (answer.task.uncovered or ()):
                    latest.setdefault(label, {})[answer.who] = answer
    return {label: list(group.values()) for label, group in latest.items() if len(group) > 1}


def _name(answer: Answer) -> str:
    """Name who answered, or the data set, if no person is named; a number is one of the data set's."""
    name, dataset = answer.who
    return f"{dataset} {name}" if name and dataset else name or dataset


def kappa(tokens: int, one: int, other: int, same: int) -> float | None:
    """Compute Cohen's kappa: agreement beyond that by chance, of two people who mark as many tokens each.

    tokens (int): all of them.
    one, other (int): those that the one and the other have in a span.
    same (int): those that both, or neither, have in a span.
    RETURNS (float | None): at most 1; None if chance alone would have them agree everywhere.
    The formula: Cohen (1960), "A coefficient of agreement for nominal scales".
    """
    if not tokens:
        return None
    chance = (one * other + (tokens - one) * (tokens - other)) / tokens**2
    return None if chance == 1 else (same / tokens - chance) / (1 - chance)
