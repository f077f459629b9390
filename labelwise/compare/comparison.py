"""Compare revisions on the same texts: is one better, on which label, and is it significant?

The first revision is the baseline of all others.

1. Predictions are scored against the gold of the last revision: corrected annotations favor neither side. Texts whose
   gold differs are counted.
2. Only texts and labels that all revisions have are compared; the averages are over those labels.
3. The interval of a difference has two variances: of texts, by a jackknife over the units of the last revision, and of
   trainings with other seeds, pooled over both revisions; see `resampling`. A difference is significant if its interval
   doesn't include 0; that of a label is then one for all labels together (Bonferroni). Without trainings with other
   seeds, nothing is significant.
4. dev decides, and test confirms or contradicts. Where a revision lacks scores on dev, or dev is small, test decides.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import numpy as np

from labelwise.base.counts import count_spans
from labelwise.base.errors import InputError
from labelwise.compare.revisions import Revision
from labelwise.compare.seeds import read_counts
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.resampling import BLOCK, Jackknife, f_scores, sum_by_unit
from labelwise.evaluate.scores import MIN_DEV_TEXTS, describe_seen

DEV = "dev"


class Change(msgspec.Struct):
    """Change in F1 from the baseline; None if it can't be computed.

    low, high (float | None): 95% interval of the difference; simultaneous for all labels where the split decides.
    significant (bool): the interval excludes 0 and includes trainings with other seeds.
    on_test (str): how test relates to a significant difference on dev.
    """

    difference: float | None = None
    low: float | None = None
    high: float | None = None
    significant: bool = False
    on_test: Literal["", "confirmed", "not contradicted", "contradicted"] = ""

    def has_star(self, sign: int) -> bool:
        """Return whether the difference is significant and has a sign."""
        return self.significant and sign * (self.difference or 0) > 0


class ComparedScores(msgspec.Struct):
    """A label, or an average.

    f (dict): mean F1 of the trainings, by revision.
    """

    f: dict[str, float | None]
    changes: dict[str, Change]
    support: int | None = None


class ComparedSplit(msgspec.Struct, kw_only=True):
    """The comparison on a split.

    unit (str): see `scores.SplitMetrics`.
    gold_differs (int): texts whose gold differs between revisions, for the compared labels.
    left_out (dict): texts that other revisions lack, by revision.
    trainings (dict): trainings that differ by seed, by revision.
    means (bool): F1 is the trainings' mean, not the first's.
    """

    texts: int
    units: int
    unit: str
    gold_differs: int = 0
    left_out: dict[str, int] = {}
    trainings: dict[str, int]
    means: bool
    labels: dict[str, ComparedScores]
    micro: ComparedScores
    macro: ComparedScores

    def rows(self) -> dict[str, ComparedScores]:
        """Name the labels, then the averages."""
        return {**self.labels, "all (micro)": self.micro, "mean (macro)": self.macro}


class Comparison(ComparedSplit, kw_only=True):
    """Comparison on test and dev.

    dev (ComparedSplit | None): None if test decides.
    no_dev (str): why test decides.
    only (dict): labels that other revisions lack, by revision.
    seen (dict): warning per revision if test texts were, or may have been, in its training data.
    unsure (dict): why a revision's differences aren't significant.
    unused (dict): why trainings with other seeds don't count, by revision.
    """

    revisions: list[str]
    dev: ComparedSplit | None = None
    no_dev: str = ""
    only: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    unsure: dict[str, str] = {}
    unused: dict[str, str] = {}


def compare(revisions: Sequence[Revision], undertrained: Mapping[str, str] = MappingProxyType({})) -> Comparison:
    """Compare revisions with the first, by the gold of the last.

    undertrained (Mapping): by revision, why its training stopped too early.
    RAISES (InputError): if they have nothing in common.
    """
    names = [revision.name for revision in revisions]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InputError(f"{', '.join(names)}: give two revisions or more, each once")
    of_each = {revision.name: set(revision.metrics.all_gold.labels) for revision in revisions}
    labels = sorted(set.intersection(*of_each.values()))
    if not labels:
        raise InputError(f"{', '.join(names)}: they have no label in common")
    have_dev = all(revision.metrics.dev for revision in revisions)
    dev, no_dev = _compare_split(revisions, labels, [DEV] * len(revisions)) if have_dev else None, ""
    if not dev or dev.texts < MIN_DEV_TEXTS:
        texts = dev.texts if dev else 0
        no_dev = f"the revisions share {texts} scored texts of dev; {MIN_DEV_TEXTS} are needed"
        dev = None
    test = _compare_split(revisions, labels, [revision.metrics.split for revision in revisions], decides=not dev)
    if not test:
        raise InputError(f"{', '.join(names)}: they have no text in common")
    unsure = dict(_unsure(revisions, undertrained))
    for compared in filter(None, (test, dev)):
        for name in unsure:
            for row in compared.rows().values():
                row.changes[name].significant = False
    if dev:
        for row, tested in zip(dev.rows().values(), test.rows().values(), strict=True):
            for name, change in row.changes.items():
                tested.changes[name].significant = False
                if change.significant:
                    change.on_test = _confirm(change, tested.changes[name])
    return Comparison(
        revisions=names,
        dev=dev,
        no_dev=no_dev,
        only={name: sorted(only) for name, all_own in of_each.items() if (only := all_own - set(labels))},
        seen={revision.name: warning for revision in revisions if (warning := describe_seen(revision.metrics))},
        unsure=unsure,
        unused={revision.name: revision.unused for revision in revisions if revision.unused},
        **msgspec.structs.asdict(test),
    )


def _compare_split(
    revisions: Sequence[Revision], labels: Sequence[str], splits: Sequence[str], *, decides: bool = True
) -> ComparedSplit | None:
    """Compare the revisions on a split; None if they share no text of it.

    splits (Sequence[str]): the split's name in each revision's tables.
    decides (bool): test all labels; or else confirm single differences.

    Trainings with other seeds were scored against their revision's gold. If it isn't that of the last revision, or if
    two revisions have the same weights, only the first trainings are compared.
    """
    names = [revision.name for revision in revisions]
    tables = [one.tables._replace(split=split) for one, split in zip(revisions, splits, strict=True)]
    docs = [{doc.key: doc for group in one.docs() for doc in group} for one in tables]
    keys = sorted(set.intersection(*map(set, docs)))
    if not keys:
        return None
    truth = docs[-1]
    first = np.array([[[count_against(truth[key], texts[key], labels)] for texts in docs] for key in keys])
    gold_differs = sum(
        any(gold_of(texts[key], labels) != gold_of(truth[key], labels) for texts in docs) for key in keys
    )
    every = [revision.seeds and read_counts(revision.seeds, "key", keys, labels) for revision in revisions]
    same = [revision.has_weights_of(revisions[0]) for revision in revisions]
    means = not gold_differs and not any(same[1:])
    counts = [first[:, n] if seeds is None or not means else seeds for n, seeds in enumerate(every)]
    f = [f_scores((first[:, n] if seeds is None else seeds).sum(0)) for n, seeds in enumerate(every)]
    runs = pool_runs(f, [table.shape[1] for table in counts], same)
    last = tables[-1].read_units()
    unit_of = dict(zip(last["key"].to_pylist(), last["unit"].to_pylist(), strict=True))
    units = np.unique([unit_of[key] for key in keys], return_inverse=True)[1]
    counts = [sum_by_unit(table, units) for table in counts]
    return ComparedSplit(
        texts=len(keys),
        units=len(counts[0]),
        unit=revisions[-1].metrics.unit if len(counts[0]) < len(keys) else "text",
        gold_differs=gold_differs,
        left_out={name: n for name, texts in zip(names, docs, strict=True) if (n := len(texts) - len(keys))},
        trainings={name: len(scores) for name, scores in zip(names, f, strict=True)},
        means=means,
        **score_counts(names, labels, counts, runs, tests=0 if decides else 1),
    )


def pool_runs(f: Sequence[np.ndarray], means_of: Sequence[int], same: Sequence[bool]) -> list[np.ndarray]:
    """Compute the variance between trainings of each difference to the first revision, s² (1/m + 1/n), and its degrees
    of freedom.

    f (Sequence): by revision, F1 of trainings that differ by their seed, shape (trainings, labels + 2).
    means_of (Sequence): number of trainings in each revision's mean.
    same (Sequence): whether a revision has the weights of the first, so the variance is 0.
    """
    freedom = [0 if equal else len(f[0]) + len(scores) - 2 for scores, equal in zip(f, same, strict=True)]
    degrees = np.array(freedom)[1:, None]
    squares = np.array([((scores - scores.mean(0)) ** 2).sum(0) for scores in f])
    shares = 1 / np.array(means_of)[:, None]
    variance = np.nan_to_num(squares[0] + squares[1:]) / np.maximum(degrees, 1) * (shares[0] + shares[1:])
    return [variance * (degrees > 0), degrees]


def _confirm(dev: Change, test: Change) -> Literal["confirmed", "not contradicted", "contradicted"]:
    """Return how test relates to a significant difference on dev."""
    if test.low is None or test.high is None or test.low <= 0 <= test.high:
        return "not contradicted"
    return "confirmed" if (test.low > 0) == ((dev.low or 0) > 0) else "contradicted"


def _unsure(revisions: Sequence[Revision], undertrained: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the revisions whose differences to the baseline are not tested."""
    baseline = revisions[0]
    for revision in revisions[1:]:
        if short := next((name for name in (baseline.name, revision.name) if name in undertrained), None):
            yield revision.name, f"the training of {short} stopped too early: {undertrained[short]}"
        elif not baseline.seeds and not revision.seeds and not revision.has_weights_of(baseline):
            reason = "its interval is for these two trainings; other seeds may differ as much"
            yield revision.name, f"{reason}: {revision.remedy}"


def count_against(truth: PredictedDoc, doc: PredictedDoc, labels: Sequence[str]) -> np.ndarray:
    """Count the spans of a text by the gold and coverage of `truth`; see `counts.count_spans`."""
    return count_spans(truth.scored(truth.gold), truth.scored(doc.predicted), labels)


def gold_of(doc: PredictedDoc, labels: Collection[str]) -> tuple[Any, ...]:
    """List annotators' verdicts on a text for some labels."""
    uncovered = {label: state for label, state in doc.uncovered.items() if label in labels}
    return *({span for span in spans if span[2] in labels} for spans in (doc.gold, doc.rejected)), uncovered


def score_counts(
    names: Sequence[str],
    labels: Sequence[str],
    counts: Sequence[np.ndarray],
    runs: Sequence[np.ndarray] | None = None,
    tests: int = 0,
) -> dict[str, Any]:
    """Compute F1 of labels and averages, and differences to the baseline.

    counts (Sequence[np.ndarray]): by revision, right, predicted and gold spans, shape (units, trainings, labels, 3).
    runs (Sequence | None): see `Jackknife.interval`; None for intervals over texts alone.
    tests (int): number of simultaneous intervals (Bonferroni); 0 for all labels.
    """
    sizes = np.cumsum([0, *(table.shape[1] for table in counts)])

    def means(counts: np.ndarray) -> np.ndarray:
        f = f_scores(counts)
        return np.stack([f[..., start:end, :].mean(-2) for start, end in pairwise(sizes)], -2)

    def differences(counts: np.ndarray) -> np.ndarray:
        f = means(counts)
        return f[..., 1:, :] - f[..., :1, :]

    every = np.concatenate(counts, 1)
    totals = every.sum(0)
    jackknife = Jackknife(totals, differences)
    for start in range(0, len(every), BLOCK):
        jackknife.add(every[start : start + BLOCK])
    support = totals[-1, :, 2].tolist()
    rows = [
        ComparedScores(dict(zip(names, map(_number, f), strict=True)), {}, spans)  # the macro average has no support
        for f, spans in zip(means(totals).T.tolist(), (*support, sum(support), None), strict=True)
    ]
    of_averages, (low, high) = jackknife.interval(runs=runs), jackknife.interval(runs=runs, tests=tests or len(labels))
    low[:, -2:], high[:, -2:] = (bounds[:, -2:] for bounds in of_averages)
    for number, name in enumerate(names[1:]):
        for row, *bounds in zip(rows, jackknife.value[number], low[number], high[number], strict=True):
            difference, lower, upper = map(_number, bounds)
            row.changes[name] = Change(difference, lower, upper, bool(bounds[1] > 0 or bounds[2] < 0))
    return {"labels": dict(zip(labels, rows, strict=False)), "micro": rows[-2], "macro": rows[-1]}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
