"""Compare the results of branches on the same texts: is one better, on which label, and could it be chance?

The first revision is the base, to which each other is compared.

1. Predictions are scored against one gold, that of the last revision: a branch that corrects annotations is judged by
   them, and so is its base. Texts whose gold differs are counted.
2. Only texts and labels that all revisions have are compared; the averages are over those labels.
3. The interval of a difference is from a jackknife over the units of the last revision, texts if its tables have none;
   see `resampling`. A difference is significant if its
   interval doesn't include 0; that of a label is then one for all labels together (Bonferroni).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from labelwise.base.counts import count_spans
from labelwise.base.errors import InputError
from labelwise.compare.revisions import Revision
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.resampling import BLOCK, Jackknife, f_scores, sum_by_unit
from labelwise.evaluate.scores import describe_seen


class Change(msgspec.Struct):
    """How far a revision's F is from the base's; None where there is no F, or nothing to compute it from.

    low, high (float | None): the bounds of the 95% interval of the difference.
    significant (bool): it is hardly chance.
    """

    difference: float | None = None
    low: float | None = None
    high: float | None = None
    significant: bool = False


class ComparedScores(msgspec.Struct):
    """A label, or an average.

    f (dict): by revision.
    changes (dict): by revision, except for the base.
    support (int | None): gold spans.
    """

    f: dict[str, float | None]
    changes: dict[str, Change]
    support: int | None = None


class Comparison(msgspec.Struct, kw_only=True):
    """What was found.

    texts (int): those compared.
    units (int): the units that these texts belong to.
    unit (str): see `scores.Metrics`.
    gold_differs (int): texts whose gold, for the labels compared, isn't the same at all revisions.
    left_out (dict): texts that not all revisions have, by revision.
    only (dict): labels that not all revisions have, by revision.
    seen (dict): what is said of a pipeline that was trained on texts of its test set, or may have been, by revision.
    unsure (dict): why no difference of a revision is said to be hardly chance, by revision.
    micro (ComparedScores): all entities.
    macro (ComparedScores): the mean of the labels.
    """

    revisions: list[str]
    texts: int
    units: int = 0
    unit: str = "text"
    gold_differs: int = 0
    left_out: dict[str, int] = {}
    only: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    unsure: dict[str, str] = {}
    labels: dict[str, ComparedScores]
    micro: ComparedScores
    macro: ComparedScores


def compare(revisions: Sequence[Revision], undertrained: Mapping[str, str] = MappingProxyType({})) -> Comparison:
    """Compare revisions with the first of them, by the gold of the last.

    undertrained (Mapping): by revision, why its training stopped too early, if it did.
    RAISES (InputError): there is nothing in common.
    """
    names = [revision.name for revision in revisions]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InputError(f"{', '.join(names)}: give two revisions or more, each once")
    of_each = {revision.name: set(revision.metrics.all_gold.labels) for revision in revisions}
    labels = sorted(set.intersection(*of_each.values()))
    if not labels:
        raise InputError(f"{', '.join(names)}: there is no label that all of them have")
    docs = [{doc.key: doc for docs in one.tables.docs(one.metrics.split) for doc in docs} for one in revisions]
    keys = sorted(set.intersection(*map(set, docs)))
    if not keys:
        raise InputError(f"{', '.join(names)}: there is no text that all of them have")
    counts = np.array([[count_against(docs[-1][key], one[key], labels) for one in docs] for key in keys])
    last = revisions[-1].tables.read_units(revisions[-1].metrics.split)
    unit_of = dict(zip(last["key"].to_pylist(), last["unit"].to_pylist(), strict=True))
    counts = sum_by_unit(counts, np.unique([unit_of[key] for key in keys], return_inverse=True)[1])
    unsure = dict(_unsure(revisions, undertrained))
    scores = score_counts(names, labels, counts)
    for row in (*scores["labels"].values(), scores["micro"], scores["macro"]):
        for name in unsure:
            row.changes[name].significant = False
    return Comparison(
        revisions=names,
        texts=len(keys),
        units=len(counts),
        unit=revisions[-1].metrics.unit if len(counts) < len(keys) else "text",
        gold_differs=sum(
            any(gold_of(one[key], labels) != gold_of(docs[-1][key], labels) for one in docs) for key in keys
        ),
        left_out={name: n for name, one in zip(names, docs, strict=True) if (n := len(one) - len(keys))},
        only={name: sorted(own) for name, all_own in of_each.items() if (own := all_own - set(labels))},
        seen={one.name: said for one in revisions if (said := describe_seen(one.metrics))},
        unsure=unsure,
        **scores,
    )


def _unsure(revisions: Sequence[Revision], undertrained: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the revisions of which no difference to the base means anything but how they were trained."""
    base = revisions[0]
    for one in revisions[1:]:
        if short := next((name for name in (base.name, one.name) if name in undertrained), None):
            yield one.name, f"the training of {short} stopped too early: {undertrained[short]}"
        elif one.differs_by_seed_alone(base):
            yield one.name, f"it differs from {base.name} in its seed alone, so a difference is chance"


def count_against(truth: PredictedDoc, doc: PredictedDoc, labels: Sequence[str]) -> np.ndarray:
    """Count the spans of a text by the gold and the coverage of `truth`; see `counts.count_spans`."""
    return count_spans(truth.scored(truth.gold), truth.scored(doc.predicted), labels)


def gold_of(doc: PredictedDoc, labels: Collection[str]) -> tuple[Any, ...]:
    """List what annotators have said of a text about some labels."""
    uncovered = {label: state for label, state in doc.uncovered.items() if label in labels}
    return *({span for span in spans if span[2] in labels} for spans in (doc.gold, doc.rejected)), uncovered


def score_counts(names: Sequence[str], labels: Sequence[str], counts: np.ndarray) -> dict[str, Any]:
    """Compute F of each label and the averages, and how far each revision's is from the base's.

    counts (np.ndarray): right, predicted and gold spans, of the shape (units, revisions, labels, 3).
    """
    totals = counts.sum(0)
    jackknife = Jackknife(totals, _differences)
    for start in range(0, len(counts), BLOCK):
        jackknife.add(counts[start : start + BLOCK])
    support = totals[-1, :, 2].tolist()
    rows = [
        ComparedScores(dict(zip(names, map(_number, f), strict=True)), {}, spans)  # the macro average has no support
        for f, spans in zip(f_scores(totals).T.tolist(), (*support, sum(support), None), strict=True)
    ]
    low, high = jackknife.interval()
    all_low, all_high = jackknife.interval(tests=len(labels))
    all_low[:, -2:], all_high[:, -2:] = low[:, -2:], high[:, -2:]
    significant = (all_low > 0) | (all_high < 0)
    for number, name in enumerate(names[1:]):
        for row, *bounds, sure in zip(
            rows, jackknife.value[number], low[number], high[number], significant[number], strict=True
        ):
            difference, lower, upper = map(_number, bounds)
            row.changes[name] = Change(difference, lower, upper, bool(sure))
    return {"labels": dict(zip(labels, rows, strict=False)), "micro": rows[-2], "macro": rows[-1]}


def _differences(counts: np.ndarray) -> np.ndarray:
    """Compute how far F of each revision is from that of the base."""
    f = f_scores(counts)
    return f[..., 1:, :] - f[..., :1, :]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
