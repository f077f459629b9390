"""Agreement on texts that were annotated twice: no model can be expected to agree with its gold more than people do.

1. A *version* of a text for a label is one annotator's latest accepted answer that is complete for the label. It is the
   annotator's own work alone: an earlier answer, a rejected one, and a judgement of single spans aren't versions, nor
   is an answer that doesn't count in the merge (see `answers.why_not`; another split).
2. An annotator is who `answers.annotator` says: a named person in all data sets, or a data set, whose answers nobody
   has signed.
3. "Latest" is as in the merge (`answers.by_time`). The
   policy `duplicates` doesn't matter here: what another annotator's answer superseded was annotated all the same.
4. Where a label has several versions, each pair is compared: `both` counts the spans with equal offsets in both,
   `spans` those of the one plus those of the other. A span that a version has twice counts once.

F1 between annotators, `pairwise_f`, is computed from the sums over all pairs and texts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from labelwise.merge.rules.answers import Answer, Offsets, accepted_offsets, by_time
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


def count_pairs(versions: Mapping[str, Sequence[Version]]) -> Iterator[tuple[tuple[str, str, str], Counter[str]]]:
    """Compare the versions of one text, annotator by annotator.

    YIELDS (tuple): label and both annotators, and the counts for `AnnotatorPair`.
    """
    for label, group in versions.items():
        for one, other in combinations(group, 2):
            both, spans = len(one.marked & other.marked), len(one.marked) + len(other.marked)
            yield (label, one.who, other.who), Counter(texts=1, both=both, spans=spans)


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
    given: dict[str, dict[tuple[str, str], list[Answer]]] = {}
    for answer in answers if len(answers) > 1 else ():
        for label in answer.dataset.labels if answer.task.answer == "accept" else ():
            if label not in (answer.task.uncovered or ()):
                given.setdefault(label, {}).setdefault(answer.who, []).append(answer)
    return {label: [by_time(group)[-1] for group in by.values()] for label, by in given.items() if len(by) > 1}


def _name(answer: Answer) -> str:
    """Name who answered, or the data set, if no person is named; a number is one of the data set's."""
    name, dataset = answer.who
    return f"{dataset} {name}" if name and dataset else name or dataset
