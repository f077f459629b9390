"""Warnings after a merge, before anything is trained, and the labels whose counts have changed."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.wording import counted
from labelwise.corpus.doubts import NAMED, Doubt, doubts_about_merge, doubts_about_split
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.merge_counts import MergeCounts
from labelwise.merge.commit import metrics_of
from labelwise.merge.rules.decisions import SUPERSEDED
from labelwise.merge.rules.ledger import Ledger
from labelwise.merge.rules.settings import Settings

MANY = 0.1  # of a data set's rows, from which on it is worth a warning that they aren't used
MISSED = 0.05  # the probability that is accepted of a label missing in a split


class Before(msgspec.Struct):
    """The counts of an earlier merge, for `changes`."""

    texts: dict[str, int] = {}
    labels: dict[str, dict[str, int]] = {}


class Change(msgspec.Struct):
    """A label whose counts aren't those of the merge before: texts that are complete for it, and spans."""

    label: str
    complete: tuple[int, int]
    gold: tuple[int, int]


def read_before(metrics: Path) -> Before | None:
    """Read the counts of the merge before; None if there was none, or its file is something else."""
    try:
        return msgspec.json.decode(metrics.read_bytes(), type=Before)
    except (OSError, *DECODE_ERRORS):
        return None


def changes(before: Before, ledger: Ledger) -> list[Change]:
    """List the labels whose counts have changed, those that are gone at the end."""
    found = []
    now = ledger.labels
    for label in dict.fromkeys([*ledger.labels, *before.labels]):
        old: Mapping[str, int] = before.labels.get(label, {})
        new: Mapping[str, int] = now.get(label, {})
        complete, gold = ((old.get(name, 0), new.get(name, 0)) for name in ("complete", "gold"))
        if complete[0] != complete[1] or gold[0] != gold[1]:
            found.append(Change(label, complete, gold))
    return found


def warnings(ledger: Ledger, settings: Settings) -> Iterator[Doubt]:
    """Yield the warnings, each with a remedy."""
    compared = settings.near_duplicates != "off"
    yield from doubts_about_merge(msgspec.convert(metrics_of(ledger, compared=compared), MergeCounts))
    for names, rows in ledger.other_split.items():
        one, other = msgspec.json.decode(names)
        if rows < MANY * ledger.datasets[one]:
            continue
        yield Doubt(
            f"Data set {one!r}: {counted(rows, 'answer')} left out; {other!r} declares another split for their texts.",
            "A text is in one split: test before dev before train. Take these texts out of one of the two data sets.",
        )
    if replaced := ledger.replaced:
        names = ", ".join(f"{name} ({n:,})" for name, n in replaced.most_common(NAMED))
        yield Doubt(
            f"{counted(replaced.total(), 'answer')} replaced by the same person's later one in another data set: "
            f"{names}.",
            "If two people have one name, give an entry `annotator: {NAME: ANOTHER}` in datasets.yml.",
        )
    if spans := ledger["spans", "outvoted"]:
        yield Doubt(
            f"{counted(spans, 'span')} outvoted: several annotators marked these texts, and too few of them agree.",
            "corpus/disagreements.jsonl has the texts to settle; annotators in project.yml says how many must agree.",
        )
    if rows := ledger["rows", SUPERSEDED]:
        yield Doubt(
            f"{counted(rows, 'decision')} superseded: the answers that they were made from have changed since.",
            "corpus/problems.jsonl has them; load them into the page of a new report, and decide again.",
        )
    for name, rows in ledger.datasets.items():
        if not rows:
            yield Doubt(f"Data set {name!r} has no rows.", "Check what its path names.")
    yield from _small_splits(ledger, settings)
    partly, train = ledger["partly", "train"], ledger["texts", "train"]
    if partly and settings.coverage == "by-label":
        yield Doubt(f"Not complete for all labels: {partly:,} of {counted(train, 'text')} in train.", _fewest(ledger))
    if texts := ledger.without_split_by:
        yield Doubt(
            f"{counted(texts, 'text')} without {settings.split_by!r} in the meta.",
            "They were split by text.",
        )


def _fewest(ledger: Ledger) -> str:
    """Name the labels that are known on the fewest texts, and the consequence for training."""
    complete = sorted((counts["complete"], label) for label, counts in ledger.labels.items())
    fewest = ", ".join(f"{label} {texts:,}" for texts, label in complete[:NAMED] if texts)
    return (
        f"Each label is learned from the texts that are complete for it; the fewest are {fewest}. If unmarked means no "
        "entity there, declare absent labels, or set coverage: outside."
    )


def _small_splits(ledger: Ledger, settings: Settings) -> Iterator[Doubt]:
    """Yield the splits that are empty, or too small to say much, and how many texts would be enough."""
    found = []
    for split in SPLITS:
        if not ledger["texts", split]:
            remedy = "Lower both ratios" if split == "train" else f"Raise {split}_ratio"
            found.append(Doubt(f"No text is in {split}.", f"{remedy}, or declare a data set with split: {split}."))
        elif split != "train":
            gold: Mapping[str, int] = ledger.gold.get(split, {})
            missing = [label for label in ledger.labels if not gold.get(label)]
            found += doubts_about_split(split, ledger["texts", split], missing)
    yield from found
    if found and (enough := enough_texts(ledger, min(settings.dev_ratio, settings.test_ratio))):
        yield Doubt(
            f"There are {counted(sum(ledger['texts', split] for split in SPLITS), 'text')}.",
            f"With {enough:,} texts, every label is likely to be in every split.",
        )


def enough_texts(ledger: Ledger, ratio: float) -> int | None:
    """Compute how many texts it takes for the rarest label to be in a split, but for a probability of MISSED.

    A text is in the split with the probability `ratio`, and has the label with that share of all texts that have it:
    none of n texts is and has with (1 - ratio * share) ** n.

    RETURNS (int | None): None if there is no such number, or there are as many texts already.
    """
    texts = sum(ledger["texts", split] for split in SPLITS)
    shares = [n / texts for n in ledger.marked.values() if n]
    if not shares or not 0 < ratio < 1:
        return None
    enough = math.ceil(math.log(MISSED) / math.log1p(-ratio * min(shares)))
    return enough if enough > texts else None
