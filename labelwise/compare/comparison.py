"""Compare the results of branches on the same texts: is one better, on which label, and could it be chance?

The first revision is the base, to which each other is compared.

1. Predictions are scored against one gold, by default that of the last revision: a branch that corrects annotations is
   judged by them, and so is its base. Texts whose gold differs are counted.
2. Only labels that all revisions have are compared; the averages are over those.
3. The interval of a difference is from a jackknife over docs, p from a paired approximate randomization test over docs,
   two-sided; see `resampling`. p of the labels is corrected for their number (Holm).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec
import numpy as np

from labelwise.compare.revisions import Revision
from labelwise.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.resampling import BLOCK, Jackknife, Swaps, f_scores, holm
from labelwise.evaluate.scores import tell_seen
from labelwise.evaluate.tables import read_docs
from labelwise.text import SpanKey, counted

GoldOf = Literal["last", "first", "own"]


class Change(msgspec.Struct):
    """How far a revision's F is from the base's; None where there is no F, or nothing to compute it from.

    low, high (float | None): the bounds of the 95% interval of the difference.
    p (float | None): the probability that chance alone makes such a difference; corrected for a label.
    uncorrected_p (float | None): the same, as if there were no other label.
    """

    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    uncorrected_p: float | None = None


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

    gold (str): the revision whose gold counts, or "own".
    texts (int): those compared.
    gold_differs (int | None): texts whose gold, for the labels compared, isn't the same at all revisions; None if it
        can't be known.
    left_out (dict): texts that not all revisions have, by revision.
    only (dict): labels that not all revisions have, by revision, each with its F there.
    missing (list): why there are no intervals and no p, for each revision whose predictions aren't available.
    behind (list): stages that would run again, as the workspace's results aren't those of its files.
    seen (dict): what is said of a pipeline that was trained on texts of its test set, or may have been, by revision.
    micro (ComparedScores): all entities.
    macro (ComparedScores): the mean of the labels.
    all_spans (ComparedScores | None): all spans, which may overlap, where gold overlaps.
    """

    revisions: list[str]
    gold: str
    texts: int
    gold_differs: int | None = None
    left_out: dict[str, int] = {}
    only: dict[str, dict[str, float | None]] = {}
    missing: list[str] = []
    behind: list[str] = []
    seen: dict[str, str] = {}
    labels: dict[str, ComparedScores]
    micro: ComparedScores
    macro: ComparedScores
    all_spans: ComparedScores | None = None


def compare(revisions: Sequence[Revision], *, gold: GoldOf | None = None, common: bool = False) -> Comparison:
    """Compare revisions with the first of them.

    gold (str | None): the gold that counts: that of the "last" revision, the "first", or each revision's "own". None is
        "last", or "own" if predictions are missing.
    common (bool): leave out texts that not all revisions have.
    RAISES (InputError): the texts differ, and `common` isn't given; there is nothing in common; predictions are needed
        and missing.
    """
    names = [revision.name for revision in revisions]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InputError(f"{', '.join(names)}: give two revisions or more, each once")
    texts_differ = len({revision.metrics.texts_digest for revision in revisions}) > 1
    if texts_differ and not common:
        sizes = ", ".join(f"{revision.name} has {counted(revision.metrics.texts, 'text')}" for revision in revisions)
        raise InputError(f"The test sets differ: {sizes}. Compare on the texts that all have, with --common")
    of_each = {revision.name: set(revision.metrics.all_gold.labels) for revision in revisions}
    labels = sorted(set.intersection(*of_each.values()))
    if not labels:
        raise InputError(f"{', '.join(names)}: there is no label that all of them have")
    missing = [revision.missing for revision in revisions if not revision.tables]
    if missing and (texts_differ or gold in ("last", "first")):
        raise InputError(f"{'; '.join(missing)}. --common, and --gold last or first, need them")

    def score(*, all_spans: bool = False) -> Comparison:
        """Compare entities, or all spans."""
        if missing:
            return _from_metrics(revisions, labels, all_spans=all_spans)
        return _resample(revisions, labels, gold or "last", all_spans=all_spans)

    made = score()
    if any(revision.metrics.all_spans for revision in revisions):
        made.all_spans = score(all_spans=True).micro
    made.missing = missing
    made.behind = [stage for revision in revisions for stage in revision.behind]
    made.seen = {one.name: said for one in revisions if (said := tell_seen(one.metrics))}
    made.only = {
        revision.name: {label: scores.shown().f for label, scores in sorted(own.items()) if label not in labels}
        for revision in revisions
        if (own := revision.metrics.all_gold.labels).keys() - set(labels)
    }
    return made


def _resample(revisions: Sequence[Revision], labels: list[str], gold: GoldOf, *, all_spans: bool) -> Comparison:
    """Compare span by span."""
    shape = (len(labels), 3)
    swaps = [Swaps(shape) for _ in revisions[1:]]
    totals = np.zeros((len(revisions), *shape), int)
    texts = gold_differs = 0
    aligned = _align(revisions)
    for block in _blocks(aligned, labels):
        texts += len(block)
        gold_differs += sum(any(_truth(doc) != _truth(group[-1]) for doc in group) for group in block)
        counts = np.array([_count(group, gold, labels, all_spans=all_spans) for group in block])
        totals += counts.sum(0)
        for number, swap in enumerate(swaps, 1):
            swap.add(counts[:, 0], counts[:, number])
    jackknife = Jackknife(totals, _differences)
    for block in _blocks(_align(revisions), labels):
        jackknife.add(np.array([_count(group, gold, labels, all_spans=all_spans) for group in block]))
    names = [revision.name for revision in revisions]
    if not texts:
        raise InputError(f"{', '.join(names)}: there is no text that all of them have")
    made = Comparison(
        revisions=names,
        gold={"last": names[-1], "first": names[0], "own": "own"}[gold],
        texts=texts,
        gold_differs=gold_differs,
        left_out={name: n for name, n in zip(names, aligned.left_out, strict=True) if n},
        **_rows(names, labels, f_scores(totals), totals[0 if gold == "first" else -1, :, 2].tolist()),
    )
    _add_chance(made, jackknife, swaps)
    return made


def _align(revisions: Sequence[Revision]) -> "_Aligned":
    return _Aligned([read_docs(revision.tables) for revision in revisions if revision.tables])


def _blocks(aligned: "_Aligned", labels: Sequence[str]) -> Iterator[list[list[PredictedDoc]]]:
    """Yield the docs of some texts at a time, with nothing but what is about some labels."""
    docs = iter(aligned)
    while block := list(islice(docs, BLOCK)):
        yield [[doc.only(labels) for doc in group] for group in block]


def _differences(counts: np.ndarray) -> np.ndarray:
    """Compute how far F of each revision is from that of the base."""
    f = f_scores(counts)
    return f[..., 1:, :] - f[..., :1, :]


class _Aligned:
    """Reads the texts of several revisions side by side, and yields the docs of each text that is in all of them.

    left_out (list[int]): for each revision, the number of its texts that aren't in all.
    """

    def __init__(self, streams: Sequence[Iterable[PredictedDoc]]) -> None:
        """Take docs sorted by key."""
        self.streams = [iter(stream) for stream in streams]
        self.left_out = [0] * len(streams)

    def __iter__(self) -> Iterator[list[PredictedDoc]]:
        """Yield the docs of a text, in the order of the revisions."""
        docs = [next(stream, None) for stream in self.streams]
        while any(docs):
            key = min(doc.key for doc in docs if doc)
            at = [number for number, doc in enumerate(docs) if doc and doc.key == key]
            if len(at) == len(docs):
                yield [doc for doc in docs if doc]
            else:
                for number in at:
                    self.left_out[number] += 1
            for number in at:
                docs[number] = next(self.streams[number], None)


def _truth(doc: PredictedDoc) -> tuple[Any, ...]:
    """Return what scores depend on, except for the predictions."""
    return doc.gold, doc.uncovered, doc.rejected


def _count(docs: list[PredictedDoc], gold: GoldOf, labels: Sequence[str], *, all_spans: bool) -> list[np.ndarray]:
    """Count the spans of one text at each revision."""
    truths = {"last": docs[-1:] * len(docs), "first": docs[:1] * len(docs), "own": docs}[gold]
    return [
        count(truth.scored(doc.all_spans() if all_spans else doc.predicted), truth.scored(truth.gold), labels)
        for doc, truth in zip(docs, truths, strict=True)
    ]


def count(predicted: Collection[SpanKey], gold: Collection[SpanKey], labels: Sequence[str]) -> np.ndarray:
    """Count the spans of a doc: right, predicted and gold ones for each label, of the shape (labels, 3).

    predicted, gold (Collection): spans of these labels alone, each once.
    """
    counts = np.zeros((len(labels), 3), int)
    place = {label: number for number, label in enumerate(labels)}
    for column, spans in enumerate((set(predicted) & set(gold), predicted, gold)):
        for _, _, label in spans:
            counts[place[label], column] += 1
    return counts


def _rows(names: Sequence[str], labels: Sequence[str], f: np.ndarray, support: list[int]) -> dict[str, Any]:
    """Make the rows of F, of the shape (revisions, labels + 2); the macro average has no support."""
    rows = []
    for (base, *others), spans in zip(f.T.tolist(), (*support, sum(support), None), strict=True):
        scores = dict(zip(names, map(_number, (base, *others)), strict=True))
        changes = dict(zip(names[1:], (Change(_number(other - base)) for other in others), strict=True))
        rows.append(ComparedScores(scores, changes, spans))
    return {"labels": dict(zip(labels, rows, strict=False)), "micro": rows[-2], "macro": rows[-1]}


def _add_chance(made: Comparison, jackknife: Jackknife, swaps: Sequence[Swaps]) -> None:
    """Add intervals and p to the changes."""
    intervals = jackknife.interval()
    rows = [*made.labels.values(), made.micro, made.macro]
    for number, (name, swap) in enumerate(zip(made.revisions[1:], swaps, strict=True)):
        bounds = intervals[:, number].T.tolist()
        p_values = swap.p_values().tolist()
        corrected = [*holm(p_values[:-2]), *p_values[-2:]]
        for row, *figures in zip(rows, *zip(*bounds, strict=True), corrected, p_values, strict=True):
            difference = row.changes[name].difference
            if difference is not None:
                row.changes[name] = Change(difference, *map(_number, figures))


def _from_metrics(revisions: Sequence[Revision], labels: list[str], *, all_spans: bool) -> Comparison:
    """Compare by the metrics alone, each revision with its own gold."""
    names = [revision.name for revision in revisions]
    metrics = [revision.metrics for revision in revisions]
    scores = [one.all_spans if all_spans and one.all_spans else one.all_gold for one in metrics]
    f = []
    for score in scores:
        # An average over other labels can't be compared.
        averages = (score.f, score.macro.f) if all(one.labels.keys() == set(labels) for one in scores) else (None, None)
        f.append([*(score.labels[label].shown().f for label in labels), *averages])
    support = [scores[-1].labels[label].support or 0 for label in labels]
    rows = _rows(names, labels, np.array(f, float), support)
    return Comparison(revisions=names, gold="own", texts=revisions[-1].metrics.texts, **rows)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
