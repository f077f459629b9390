"""A pipeline's errors, counted and in words, by kind, reason and pair of labels."""

from collections import Counter
from typing import NamedTuple

from labelwise.base.text import counted
from labelwise.evaluate.ranking import rank_labels
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import MISALIGNED, MISSED


class Kind(NamedTuple):
    """A kind of error in words: in a legend, singular, and plural."""

    name: str
    one: str
    more: str


class Reason(NamedTuple):
    """A reason for missed spans, and its remedy."""

    name: str
    do: str


KINDS = {
    "missed": Kind("missed", "a missed span", "missed spans"),
    "boundaries": Kind("wrong boundaries", "a span with wrong boundaries", "wrong boundaries"),
    "label": Kind("wrong label", "a wrong label", "wrong labels"),
    "spurious": Kind("spurious", "a spurious span", "spurious spans"),
    "no_test_gold": Kind(
        "of labels without gold",
        "a prediction of a label without gold",
        "predictions of labels without gold",
    ),
}
REASONS = {
    "overlapped": Reason("overlapped by another prediction", "annotate more texts"),
    "seen": Reason("annotated in train", "annotate more texts"),
    "inconsistent": Reason("annotated in train less often than not", "review annotations, or annotate more texts"),
    "unseen": Reason("rare or absent in train", "annotate more texts"),
    "unannotated": Reason("left unannotated in train", "review annotations"),
    "other_label": Reason("annotated in train with another label", "review annotations"),
    "misaligned": Reason("not at token boundaries", "adjust tokenization"),
}


def divide(metrics: Metrics) -> dict[str, int]:
    """Count pairs of gold and predicted spans to learn from: correct ones, and each error once, by kind."""
    total: Counter[str] = Counter()
    for mistakes in metrics.to_learn[1].mistakes.values():
        # `taken` is another's `label`.
        total.update({"found": mistakes.right, **mistakes.kinds, "label": mistakes.label})
    return {kind: total[kind] for kind in ("found", *KINDS)}


def describe_mistakes(metrics: Metrics) -> str:
    """Count the errors in words, with the most frequent kind and the most confused pair of labels."""
    kinds = divide(metrics)
    total, (most, n) = sum(kinds.values()) - kinds.pop("found"), max(kinds.items(), key=lambda item: item[1])
    if not n:
        return f"no errors on {metrics.to_learn[0]}"
    between = ""
    if most == "label":
        pair, pair_n = _rank_pairs(metrics)[0]
        between = f"{f', {pair_n:,} of them' if pair_n < n else ''} between {' and '.join(pair)}"
    kind = KINDS[most]
    errors = f"{counted(total, 'error')} on {metrics.to_learn[0]}"
    return f"of {errors}, {n:,} {f'is {kind.one}' if n == 1 else f'are {kind.more}'}{between}"


def confused_pairs(metrics: Metrics) -> Counter[tuple[str, ...]]:
    """Count wrong labels by pair, in both directions; the label with more errors comes first."""
    place = {row.label: number for number, row in enumerate(rank_labels(metrics))}
    pairs = Counter[tuple[str, ...]]()
    for label, mistakes in metrics.to_learn[1].mistakes.items():
        for other, n in mistakes.confused.items():
            pairs[tuple(sorted((label, other), key=place.__getitem__))] += n
    return pairs


def _rank_pairs(metrics: Metrics) -> list[tuple[tuple[str, ...], int]]:
    return sorted(confused_pairs(metrics).items(), key=lambda item: (-item[1], item[0]))


def describe_pairs(metrics: Metrics) -> list[str]:
    """List pairs of confused labels, most wrong labels first."""
    return [f"{' and '.join(pair)} ({n:,})" for pair, n in _rank_pairs(metrics)]


def divide_missed(metrics: Metrics) -> dict[str, int]:
    """Count missed spans by reason."""
    total = sum((Counter(mistakes.causes) for mistakes in metrics.to_learn[1].mistakes.values()), Counter[str]())
    counts = {reason: total[reason] for reason in MISSED if reason != MISALIGNED}
    return counts | {MISALIGNED: divide(metrics)["missed"] - sum(counts.values())}
