"""Compare the results of branches on the same texts: is one better, on which label, and could it be chance?

The first revision is the base, to which each other is compared.

1. Predictions are scored against one gold, by default that of the last revision: a branch that corrects annotations is
   judged by them, and so is its base. Texts whose gold differs are counted.
2. Only labels that all revisions have are compared; the averages are over those.
3. The interval of a difference is from a jackknife over docs, p from a paired approximate randomization test over docs,
   two-sided; see `resampling`. p of the labels is corrected for their number (Holm).
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from labelwise.compare.revisions import Revision
from labelwise.compare.spans import count_spans, read_spans
from labelwise.errors import InputError
from labelwise.evaluate.resampling import BLOCK, Jackknife, Swaps, f_scores, holm
from labelwise.evaluate.scores import tell_seen
from labelwise.text import counted

GoldOf = Literal["last", "own"]


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
    gold_differs (int): texts whose gold, for the labels compared, isn't the same at all revisions.
    left_out (dict): texts that not all revisions have, by revision.
    only (dict): labels that not all revisions have, by revision, each with its F there.
    behind (list): stages that would run again, as the workspace's results aren't those of its files.
    seen (dict): what is said of a pipeline that was trained on texts of its test set, or may have been, by revision.
    micro (ComparedScores): all entities.
    macro (ComparedScores): the mean of the labels.
    all_spans (ComparedScores | None): all spans, which may overlap, where gold overlaps.
    """

    revisions: list[str]
    gold: str
    texts: int
    gold_differs: int = 0
    left_out: dict[str, int] = {}
    only: dict[str, dict[str, float | None]] = {}
    behind: list[str] = []
    seen: dict[str, str] = {}
    labels: dict[str, ComparedScores]
    micro: ComparedScores
    macro: ComparedScores
    all_spans: ComparedScores | None = None


def compare(revisions: Sequence[Revision], *, gold: GoldOf = "last", common: bool = False) -> Comparison:
    """Compare revisions with the first of them.

    gold (str): the gold that counts: that of the "last" revision, or each revision's "own".
    common (bool): leave out texts that not all revisions have.
    RAISES (InputError): the texts differ, and `common` isn't given; there is nothing in common.
    """
    names = [revision.name for revision in revisions]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InputError(f"{', '.join(names)}: give two revisions or more, each once")
    if len({revision.metrics.texts_digest for revision in revisions}) > 1 and not common:
        sizes = ", ".join(f"{revision.name} has {counted(revision.metrics.texts, 'text')}" for revision in revisions)
        raise InputError(f"The test sets differ: {sizes}. Compare on the texts that all have, with --common")
    of_each = {revision.name: set(revision.metrics.all_gold.labels) for revision in revisions}
    labels = sorted(set.intersection(*of_each.values()))
    if not labels:
        raise InputError(f"{', '.join(names)}: there is no label that all of them have")
    spans = [read_spans(revision.tables, labels) for revision in revisions]
    keys = sorted(set.intersection(*(one.keys for one in spans)))
    if not keys:
        raise InputError(f"{', '.join(names)}: there is no text that all of them have")
    truths = spans if gold == "own" else [spans[-1]] * len(spans)

    def score(*, all_spans: bool) -> dict[str, Any]:
        """Compare entities, or all spans, which may overlap."""
        found = [one.found if all_spans else one.entities for one in spans]
        pairs = zip(found, truths, strict=True)
        return _score(names, labels, np.stack([count_spans(*pair, keys, labels) for pair in pairs], axis=1))

    overlap = any(revision.metrics.all_spans for revision in revisions)
    return Comparison(
        revisions=names,
        gold=names[-1] if gold == "last" else "own",
        texts=len(keys),
        gold_differs=len({key for one in spans for key in one.differing(spans[-1])}.intersection(keys)),
        left_out={name: n for name, one in zip(names, spans, strict=True) if (n := len(one.keys) - len(keys))},
        only={
            revision.name: {label: scores.shown().f for label, scores in sorted(own.items()) if label not in labels}
            for revision in revisions
            if (own := revision.metrics.all_gold.labels).keys() - set(labels)
        },
        behind=[stage for revision in revisions for stage in revision.behind],
        seen={one.name: said for one in revisions if (said := tell_seen(one.metrics))},
        all_spans=score(all_spans=True)["micro"] if overlap else None,
        **score(all_spans=False),
    )


def _score(names: Sequence[str], labels: Sequence[str], counts: np.ndarray) -> dict[str, Any]:
    """Compute F of each label and the averages, and how far each revision's is from the base's, with its chance.

    counts (np.ndarray): right, predicted and gold spans, of the shape (texts, revisions, labels, 3).
    """
    totals = counts.sum(0)
    jackknife = Jackknife(totals, _differences)
    swaps = [Swaps(totals.shape[1:]) for _ in names[1:]]
    for start in range(0, len(counts), BLOCK):
        block = counts[start : start + BLOCK]
        jackknife.add(block)
        for number, swap in enumerate(swaps, 1):
            swap.add(block[:, 0], block[:, number])
    support = totals[-1, :, 2].tolist()
    rows = [
        ComparedScores(dict(zip(names, map(_number, f), strict=True)), {}, spans)  # the macro average has no support
        for f, spans in zip(f_scores(totals).T.tolist(), (*support, sum(support), None), strict=True)
    ]
    low, high = jackknife.interval()
    for number, (name, swap) in enumerate(zip(names[1:], swaps, strict=True)):
        p_values = swap.p_values().tolist()
        corrected = [*holm(p_values[:-2]), *p_values[-2:]]
        figures = zip(jackknife.value[number], low[number], high[number], corrected, p_values, strict=True)
        for row, figures_of_row in zip(rows, figures, strict=True):
            row.changes[name] = Change(*map(_number, figures_of_row))
    return {"labels": dict(zip(labels, rows, strict=False)), "micro": rows[-2], "macro": rows[-1]}


def _differences(counts: np.ndarray) -> np.ndarray:
    """Compute how far F of each revision is from that of the base."""
    f = f_scores(counts)
    return f[..., 1:, :] - f[..., :1, :]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
