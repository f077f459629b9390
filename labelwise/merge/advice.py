"""What to say of a merge before anything is trained: what would be a surprise later, and what is new."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.wording import counted
from labelwise.merge.near_duplicates import NEAR_DUPLICATES
from labelwise.merge.rules.ledger import Ledger
from labelwise.merge.rules.settings import Settings

FEWEST = 5  # labels that are named
FEW_TEXTS = 20  # of test, below which scores say little
MISSED = 0.05  # the probability that is accepted of a label missing in a split


class Before(msgspec.Struct):
    """What an earlier merge counted, of which `changes` tells the difference."""

    texts: dict[str, int] = {}
    labels: dict[str, dict[str, int]] = {}


class Change(msgspec.Struct):
    """A label whose counts aren't those of the merge before: texts that are complete for it, and spans."""

    label: str
    complete: tuple[int, int]
    gold: tuple[int, int]


def read_before(metrics: Path) -> Before | None:
    """Read what the merge before has counted; None if there was none, or its file is something else."""
    try:
        return msgspec.json.decode(metrics.read_bytes(), type=Before)
    except (OSError, *DECODE_ERRORS):
        return None


def changes(before: Before, ledger: Ledger) -> list[Change]:
    """List the labels whose counts have changed, those that are gone at the end."""
    found = []
    for label in dict.fromkeys([*ledger.labels, *before.labels]):
        old: Mapping[str, int] = before.labels.get(label, {})
        new: Mapping[str, int] = ledger.labels.get(label, {})
        complete, gold = ((old.get(name, 0), new.get(name, 0)) for name in ("complete", "gold"))
        if complete[0] != complete[1] or gold[0] != gold[1]:
            found.append(Change(label, complete, gold))
    return found


def warnings(ledger: Ledger, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what would be a surprise later, each with a remedy."""
    for name, spans in ledger.undeclared.items():
        dataset, _, label = name.partition(": ")
        yield (
            f"Data set {dataset!r} has {counted(spans, 'span')} of {label!r}, which isn't among its labels",
            f"They aren't used. If its texts were annotated for it, add {label!r} to its `labels` in datasets.yml",
        )
    for names, rows in ledger.other_split.items():
        one, other = msgspec.json.decode(names)
        yield (
            f"Data set {one!r}: {counted(rows, 'answer')} left out; {other!r} declares another split for their texts",
            f"Give {one!r} `split: auto` in datasets.yml, and they join {other!r} in its split",
        )
    if spans := ledger.spans["outvoted"]:
        yield (
            f"{counted(spans, 'span')} outvoted: several annotators marked these texts, and too few of them agree",
            "corpus/disagreements.jsonl has the texts to settle; annotators in project.yml says how many must agree",
        )
    for name, labels in ledger.inferred.items():
        yield (
            f"Data set {name!r}: the labels are inferred, {counted(labels, 'label')}",
            "One that its annotators were shown and never used isn't among them; list them in datasets.yml",
        )
    for name, rows in ledger.datasets.items():
        if not rows:
            yield f"Data set {name!r} has no rows", "Check what its path names"
    for split, remedy in (("train", "Lower both ratios"), ("dev", "Raise dev_ratio"), ("test", "Raise test_ratio")):
        if not ledger.texts[split]:
            size = _enough(ledger, settings) if split != "train" else ""
            yield f"No text is in {split}", f"{remedy}, or declare a data set with split: {split}{size}"
    yield from _small_splits(ledger, settings)
    partly, train = ledger.partly["train"], ledger.texts["train"]
    if partly and settings.policies.coverage == "by-label":
        yield f"Not complete for all labels: {partly:,} of {counted(train, 'text')} in train", what_follows(ledger)
    if pairs := ledger.near_duplicates.total():
        yield (
            f"{counted(pairs, 'pair')} of nearly equal texts, each in two splits",
            f"{NEAR_DUPLICATES} says how similar and where they are; near_duplicates: group keeps them together",
        )
    if ledger.without_split_by:
        yield (
            f"{counted(ledger.without_split_by, 'text')} without {settings.split_by!r} in the meta",
            "They were split by text",
        )


def what_follows(ledger: Ledger) -> str:
    """Say which labels are known on the fewest texts, and what that means for training."""
    complete = sorted((counts["complete"], label) for label, counts in ledger.labels.items())
    fewest = ", ".join(f"{label} {texts:,}" for texts, label in complete[:FEWEST] if texts)
    follows = f"Each label is learned from the texts that are complete for it; the fewest are {fewest}. "
    if never := [label for texts, label in complete if not texts]:
        follows += (
            f"No text is complete for {', '.join(never)}: of single judged spans, a pipeline learns little; "
            "annotate some texts completely. "
        )
    return follows + "If unmarked means no entity there, declare `absent` labels, or set coverage to outside"


def _small_splits(ledger: Ledger, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what is too small to say much: test as a whole, or the gold of some labels in test or dev."""
    for split, follows in (
        ("test", "Nothing will be known of how well they are found"),
        ("dev", "They have no say in which pipeline is the best"),
    ):
        gold: Mapping[str, int] = ledger.gold.get(split, {})
        missing = [label for label in ledger.labels if not gold.get(label)]
        if missing and ledger.texts[split]:
            more = f" and {len(missing) - FEWEST} more" if len(missing) > FEWEST else ""
            named = ", ".join(missing[:FEWEST]) + more
            yield f"No gold in {split} for {named}", f"{follows}. {_remedy(ledger, settings, split)}"
    texts = ledger.texts["test"]
    if 0 < texts < FEW_TEXTS:
        yield f"Only {counted(texts, 'text')} in test", f"Scores will say little. {_remedy(ledger, settings, 'test')}"


def _remedy(ledger: Ledger, settings: Settings, split: str) -> str:
    """Say what gives every label gold in every split, and how many texts that takes."""
    remedy = f"Annotate more texts, raise {split}_ratio, or declare a data set that has them as split: {split}"
    return remedy + _enough(ledger, settings)


def _enough(ledger: Ledger, settings: Settings) -> str:
    enough = enough_texts(ledger, min(settings.dev_ratio, settings.test_ratio))
    return f"; with {enough:,} texts, every label is likely to be in every split" if enough else ""


def enough_texts(ledger: Ledger, ratio: float) -> int | None:
    """Compute how many texts it takes for the rarest label to be in a split, but for a probability of MISSED.

    A text is in the split with the probability `ratio`, and has the label with that share of all texts that have it:
    none of n texts is and has with (1 - ratio * share) ** n.

    RETURNS (int | None): None if there is no such number, or there are as many texts already.
    """
    texts = sum(ledger.texts[split] for split in ("train", "dev", "test"))
    shares = [ledger.marked[label] / texts for label in ledger.labels if ledger.marked[label]]
    if not shares or not 0 < ratio < 1:
        return None
    enough = math.ceil(math.log(MISSED) / math.log1p(-ratio * min(shares)))
    return enough if enough > texts else None
