"""Compare the results of branches on the same texts: is one better, on which label, and could it be chance?

The first revision is the base, to which each other is compared.

1. Predictions are scored against one gold, by default that of the last revision: a branch that mends annotations is
   judged by them, and so is its base. How many texts have other gold is counted.
2. Only labels that all revisions have are compared; the averages are over those.
3. The interval of a difference is of a bootstrap over docs, p of a paired approximate randomization test over docs,
   two-sided; see `resampling`. p of the labels is corrected for their number (Holm).
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

import msgspec
import numpy as np

from labelwise.errors import InputError
from labelwise.predictions import Aligned, PredictedDoc
from labelwise.resampling import BLOCK, Bootstrap, Swaps, f_scores, holm, interval
from labelwise.revisions import Results
from labelwise.scoring import count, macro

GoldOf = Literal["last", "first", "own"]


class Change(msgspec.Struct):
    """How far a revision's F is from the base's; None where there is no F, or nothing to compute it from.

    low, high (float | None): the bounds of the 95 % interval of the difference.
    p (float | None): that chance alone makes such a difference; of a label, corrected.
    """

    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


class Row(msgspec.Struct):
    """A label, or an average.

    f (dict): by revision.
    changes (dict): by revision, but for the base.
    support (int | None): gold spans.
    """

    f: dict[str, float | None]
    changes: dict[str, Change]
    support: int | None = None


class Comparison(msgspec.Struct):
    """What was found.

    gold (str): the revision whose gold it is, or "own".
    texts (int): those compared.
    gold_differs (int): texts that have other gold, for the labels compared, at one of the revisions.
    left_out (dict): texts that not all revisions have, by revision.
    only (dict): labels that not all revisions have, by revision.
    resampled (bool): whether there are intervals and p; there can't be without predictions.
    """

    revisions: list[str]
    gold: str
    texts: int
    gold_differs: int
    left_out: dict[str, int]
    only: dict[str, list[str]]
    resampled: bool
    labels: dict[str, Row]
    micro: Row
    macro: Row


def compare(results: Sequence[Results], *, gold: GoldOf = "last", common: bool = False) -> Comparison:
    """Compare revisions with the first of them.

    gold (str): the gold that counts: that of the "last" revision, the "first", or each revision's "own".
    common (bool): leave out texts that not all revisions have.
    RAISES (InputError): the texts differ, and `common` isn't given; there is nothing in common.
    """
    names = [result.revision for result in results]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InputError(f"{', '.join(names)}: give two revisions or more, each once")
    if len({result.metrics["texts_digest"] for result in results}) > 1 and not common:
        sizes = ", ".join(f"{result.revision} has {result.metrics['texts']:,} texts" for result in results)
        raise InputError(f"The test sets differ: {sizes}. Compare on the texts that all have, with --common")
    labels = common_labels(results)
    if not labels:
        raise InputError(f"{', '.join(names)}: there is no label that all of them have")
    only = {result.revision: sorted(labels_of(result) - set(labels)) for result in results}
    made = _resample(results, labels, gold) if can_be_resampled(results) else _from_metrics(results, labels)
    made.only = {name: missing for name, missing in only.items() if missing}
    return made


def can_be_resampled(results: Sequence[Results]) -> bool:
    """Tell whether the predictions of all revisions are there."""
    return all(result.predictions for result in results)


def labels_of(result: Results) -> set[str]:
    """Give the labels that were scored."""
    return set(result.metrics["all_gold"]["labels"])


def common_labels(results: Sequence[Results]) -> list[str]:
    """List the labels that all revisions have."""
    return sorted(set.intersection(*map(labels_of, results)))


def _resample(results: Sequence[Results], labels: list[str], gold: GoldOf) -> Comparison:
    """Compare by predictions."""
    aligned = Aligned([result.predictions() for result in results if result.predictions])
    shape = (len(labels), 3)
    bootstrap = Bootstrap((len(results), *shape))
    swaps = [Swaps(shape) for _ in results[1:]]
    totals = np.zeros((len(results), *shape), int)
    texts = gold_differs = 0
    docs = iter(aligned)
    while block := list(islice(docs, BLOCK)):
        texts += len(block)
        chosen = [[doc.only(labels) for doc in group] for group in block]
        gold_differs += sum(any(_truth(doc) != _truth(group[-1]) for doc in group) for group in chosen)
        counts = np.array([_count(group, gold, labels) for group in chosen])
        bootstrap.add(counts)
        totals += counts.sum(0)
        for number, swap in enumerate(swaps, 1):
            swap.add(counts[:, 0], counts[:, number])
    if not texts:
        raise InputError(f"{', '.join(result.revision for result in results)}: there is no text that all of them have")
    names = [result.revision for result in results]
    made = Comparison(
        revisions=names,
        gold={"last": names[-1], "first": names[0], "own": "own"}[gold],
        texts=texts,
        gold_differs=gold_differs,
        left_out={name: n for name, n in zip(names, aligned.left_out, strict=True) if n},
        only={},
        resampled=True,
        **_rows(names, labels, f_scores(totals)),
    )
    _add_support(made, totals[0 if gold == "first" else -1, :, 2].tolist())
    _add_chance(made, bootstrap, swaps)
    return made


def _truth(doc: PredictedDoc) -> tuple[Any, ...]:
    """Give what scores depend on, but for the predictions."""
    return doc.gold, doc.uncovered, doc.rejected


def _count(docs: list[PredictedDoc], gold: GoldOf, labels: Sequence[str]) -> list[np.ndarray]:
    """Count the spans of one text at each revision."""
    truths = {"last": docs[-1:] * len(docs), "first": docs[:1] * len(docs), "own": docs}[gold]
    return [
        count(truth.scored(doc.predicted), truth.scored(truth.gold), labels)
        for doc, truth in zip(docs, truths, strict=True)
    ]


def _rows(names: Sequence[str], labels: Sequence[str], f: np.ndarray) -> dict[str, Any]:
    """Make the rows of F, of the shape (revisions, labels + 2)."""
    rows = []
    for base, *others in f.T.tolist():
        scores = dict(zip(names, map(_number, (base, *others)), strict=True))
        changes = dict(zip(names[1:], (Change(_number(other - base)) for other in others), strict=True))
        rows.append(Row(scores, changes))
    return {"labels": dict(zip(labels, rows, strict=False)), "micro": rows[-2], "macro": rows[-1]}


def _add_support(made: Comparison, support: list[int]) -> None:
    for row, spans in zip(made.labels.values(), support, strict=True):
        row.support = spans
    made.micro.support = sum(support)


def _add_chance(made: Comparison, bootstrap: Bootstrap, swaps: Sequence[Swaps]) -> None:
    """Add intervals and p to the changes."""
    f = f_scores(bootstrap.sums)
    rows = [*made.labels.values(), made.micro, made.macro]
    for number, (name, swap) in enumerate(zip(made.revisions[1:], swaps, strict=True), 1):
        bounds = interval(f[:, number] - f[:, 0]).T.tolist()
        p_values = swap.p_values().tolist()
        corrected = [*holm(p_values[:-2]), *p_values[-2:]]
        for row, (low, high), p in zip(rows, bounds, corrected, strict=True):
            if row.changes[name].difference is not None:
                row.changes[name] = Change(row.changes[name].difference, _number(low), _number(high), _number(p))


def _from_metrics(results: Sequence[Results], labels: list[str]) -> Comparison:
    """Compare by the metrics alone, each revision with its own gold.

    RAISES (InputError): the texts differ.
    """
    names = [result.revision for result in results]
    scores = [result.metrics["all_gold"] for result in results]
    if len({result.metrics["texts_digest"] for result in results}) > 1:
        missing = [result.revision for result in results if not result.predictions]
        raise InputError(f"{', '.join(missing)}: no predictions, without which texts in common can't be compared")
    same_labels = all(labels_of(result) == set(labels) for result in results)
    chosen = [[score["labels"][label] for label in labels] for score in scores]
    micro = [score["f"] if same_labels else None for score in scores]
    f = [[*(row["f"] for row in rows), all_f, macro(rows)["f"]] for rows, all_f in zip(chosen, micro, strict=True)]
    texts = results[-1].metrics["texts"]
    made = Comparison(names, "own", texts, 0, {}, {}, resampled=False, **_rows(names, labels, np.array(f, float)))
    _add_support(made, [scores[-1]["labels"][label]["support"] for label in labels])
    return made


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
