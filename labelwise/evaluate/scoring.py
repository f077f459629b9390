"""The metrics of an evaluation, as queries of its tables.

Spans are compared in characters: a prediction is right if start, end and label equal a gold span's. Gold is every
accepted span: misaligned spans count as missed, so losing gold can't improve a score.

A label is scored on texts that are complete for it, and elsewhere on spans that annotators accepted or rejected.
spaCy's scorer ignores predictions on missing values, but counts gold there, which makes precision too high.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import isnan

import numpy as np
import pyarrow.compute as pc

from labelwise.base.counts import AllScores, count_spans, prf, score_table
from labelwise.corpus.pipeline import Points
from labelwise.evaluate.resampling import (
    BLOCK,
    MIN_UNITS,
    Jackknife,
    stream_units,
    sum_by_unit,
    wilson_interval,
    wilson_share,
)
from labelwise.evaluate.scores import Aimed, Groups, GroupScores, Metrics, Mistakes, Seen
from labelwise.evaluate.tables import Tables
from spacy_per_label.calibrate import BINS, error_of_bins, sum_bins

GROUPS = 20  # values of a key to score: those with the most texts


def measure(tables: Tables, labels: Sequence[str], *, seen_known: bool = False, unit: str = "document") -> Metrics:
    """Compute the metrics of labels on the tables' split; equal tables have equal metrics.

    seen_known (bool): the pipeline's training texts are known.
    """
    total, seen = (np.zeros((len(labels), 3), int) for _ in range(2))
    texts = seen_texts = 0
    for counts, was_seen in count_texts(tables, labels):
        texts, seen_texts = texts + len(counts), seen_texts + int(was_seen.sum())
        total += counts.sum(0)
        seen += counts[was_seen].sum(0)
    units = number_units(tables)
    texts_counts = (counts for counts, _ in count_texts(tables, labels))
    return Metrics(
        texts=texts,
        all_gold=score_with_intervals(total, texts_counts, units, labels),
        all_spans=score_all_spans(tables, labels, units),
        calibration_error=measure_calibration(tables),
        unscored=sum(
            pc.sum(pc.equal(pairs["kind"], "unscored")).as_py() or 0 for _, pairs in tables.groups((), ["kind"])
        ),
        mistakes=count_mistakes(tables, labels),
        unit=unit if len(np.unique(units)) < texts else "text",
        seen=Seen(seen_texts, prf(*(total - seen).sum(0).tolist()).f) if seen_known else None,
        split=tables.split,
    )


def score_goals(tables: Tables, points: Points) -> dict[str, Aimed]:
    """Compute the results of labels with goals."""
    labels = list(points)
    column = np.array([2 if point["figure"] == "recall" else 1 for point in points.values()])

    def share(counts: np.ndarray) -> np.ndarray:
        of = np.take_along_axis(counts, np.broadcast_to(column[:, None], (*counts.shape[:-1], 1)), -1)[..., 0]
        shares = np.divide(counts[..., 0], of, out=np.full(of.shape, np.nan), where=of > 0)
        return np.concatenate([shares, np.full((*of.shape[:-1], 2), np.nan)], -1)

    counts = np.concatenate([block for block, _ in count_texts(tables, labels)])
    jackknife = Jackknife(counts.sum(0), share)
    jackknife.add(sum_by_unit(counts, number_units(tables)))
    results = {}
    rows = zip(jackknife.value.tolist(), *jackknife.interval(within=True).tolist(), jackknife.docs, strict=True)
    for label, at, (value, *between, docs), row in zip(labels, column, rows, jackknife.total.tolist(), strict=False):
        ends = between
        if isnan(between[0]) and docs >= MIN_UNITS and row[at]:  # all are right, or none
            ends = [*wilson_share(row[0], row[at])]
        figures = (None if isnan(point) else point for point in (value, *ends))
        # spaCy's JSON has 0.7000000000000001.
        goal, bound = (round(points[label][name], 6) for name in ("goal", "bound"))
        results[label] = Aimed(points[label]["figure"], goal, bound, *figures)
    return results


def count_texts(
    tables: Tables, labels: Sequence[str], *, overlapping: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Count each text's spans, for BLOCK texts at once.

    overlapping (bool): see `Tables.docs`.
    YIELDS (tuple): right, predicted and gold spans, shape (texts, labels, 3); which texts were trained on.
    """
    of_texts = tables.groups(("seen",), ())
    for docs, (texts, _) in zip(tables.docs(overlapping=overlapping), of_texts, strict=True):
        spans = ((doc.scored(doc.gold), doc.scored(doc.predicted)) for doc in docs)
        counts = np.stack([count_spans(*both, labels) for both in spans])
        seen = texts["seen"].fill_null(False).to_numpy()
        for start in range(0, len(docs), BLOCK):
            yield counts[start : start + BLOCK], seen[start : start + BLOCK]


def number_units(tables: Tables) -> np.ndarray:
    """Number the units of the texts, by their first texts."""
    return tables.read_units()["unit"].combine_chunks().dictionary_encode().indices.to_numpy()


def score_groups(tables: Tables, labels: Sequence[str]) -> Groups:
    """Compute F1 of all spans, by key and value, for the GROUPS values with the most texts.

    A text may be in several groups of a key, or in none.
    """
    members: dict[tuple[str, str], list[int]] = {}
    texts = 0
    for group, _ in tables.groups(("groups",), ()):
        for text, row in enumerate(group["groups"].to_pylist(), texts):
            for one in row:
                members.setdefault((one["by"], one["value"]), []).append(text)
        texts += len(group)
    if not members:
        return {}
    counts = np.concatenate([block.sum(1, keepdims=True) for block, _ in count_texts(tables, labels)])
    units = number_units(tables)
    groups: Groups = {}
    for (by, value), own in sorted(members.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        if len(groups.setdefault(by, {})) < GROUPS:
            jackknife = Jackknife(counts[own].sum(0))
            jackknife.add(sum_by_unit(counts[own], units[own]))
            row, between = prf(*jackknife.total[0].tolist()), intervals(jackknife)[0]
            groups[by][value] = GroupScores(
                row.p, row.r, row.f, row.support, *between, units=int(jackknife.docs[0]), texts=len(own)
            )
    return groups


def score_with_intervals(
    total: np.ndarray, texts: Iterable[np.ndarray], units: np.ndarray, labels: Sequence[str]
) -> AllScores:
    """Compute scores, with intervals over units.

    total (np.ndarray): right, predicted and gold spans, shape (labels, 3).
    texts (Iterable[np.ndarray]): counts of some texts each, shape (texts, labels, 3).
    units (np.ndarray): shape (texts,); numbers of their units.
    """
    jackknife = Jackknife(total)
    for counts in stream_units(texts, units):
        jackknife.add(counts)
    scores = score_table(total, labels)
    rows = [*(scores.labels[label] for label in labels), scores, scores.macro]
    for row, between, number in zip(rows, intervals(jackknife), jackknife.docs.tolist(), strict=True):
        (row.f_low, row.f_high), row.units = between, int(number) or None
    return scores


def intervals(jackknife: Jackknife) -> list[tuple[float | None, float | None]]:
    """Compute the interval of each F1; Wilson's if all spans are right, or none.

    RETURNS (list): lower and upper ends; None with spans in too few docs.
    """
    bounds: list[tuple[float | None, float | None]] = []
    counts = [*jackknife.total.tolist(), jackknife.total.sum(0).tolist(), [0, 0, 0]]
    low, high = jackknife.interval(within=True).tolist()
    for lower, upper, docs, (right, predicted, gold) in zip(low, high, jackknife.docs, counts, strict=True):
        if not isnan(lower):
            bounds.append((lower, upper))
        elif docs >= MIN_UNITS and predicted + gold:
            bounds.append(wilson_interval(right, predicted, gold))
        else:
            bounds.append((None, None))
    return bounds


def count_mistakes(tables: Tables, labels: Sequence[str]) -> dict[str, Mistakes]:
    """Count each label's pairs, by kind."""
    names = ["kind", "cause", "gold_label", "predicted_label"]
    mistakes = {label: Mistakes() for label in labels}
    counts = (
        row
        for _, pairs in tables.groups((), names)
        for row in pairs.group_by(names, use_threads=False).aggregate([([], "count_all")]).to_pylist()
        if row["kind"] != "nested" or row["gold_label"]
    )
    for row in counts:
        kind, n, other = row["kind"], row["count_all"], row["predicted_label"]
        if gold_label := mistakes.get(row["gold_label"]):
            gold_label.causes[row["cause"]] = gold_label.causes.get(row["cause"], 0) + n
            if kind == "label":
                gold_label.confused[other] = gold_label.confused.get(other, 0) + n
                mistakes[other].taken += n
        if gold_label := gold_label or mistakes.get(other):  # a prediction that can't be scored may have any label
            field = "right" if kind == "nested" else kind
            setattr(gold_label, field, getattr(gold_label, field) + n)
    return mistakes


def score_all_spans(tables: Tables, labels: Sequence[str], units: np.ndarray) -> AllScores | None:
    """Score all spans of a per-label recognizer, which may overlap; None without overlapping gold."""
    if not any(pc.any(texts["overlaps"]).as_py() for texts, _ in tables.groups(("overlaps",), ())):
        return None
    both = ["probability", "gold_probability"]
    if not any(pairs[name].null_count < len(pairs) for _, pairs in tables.groups((), both) for name in both):
        return None
    count = partial(count_texts, tables, labels, overlapping=True)
    total = sum((counts.sum(0) for counts, _ in count()), np.zeros((len(labels), 3), int))
    return score_with_intervals(total, (counts for counts, _ in count()), units, labels)


def measure_calibration(tables: Tables) -> float | None:
    """Compute the calibration error of all predicted spans that can be scored."""
    sums = np.zeros((3, BINS))
    for _, pairs in tables.groups(["key"], ["kind", "probability", "gold_probability"]):
        kinds = pairs["kind"].cast("string")
        right, scored = (np.asarray(mask) for mask in (pc.equal(kinds, "right"), pc.not_equal(kinds, "unscored")))
        probabilities, gold = (np.asarray(pairs[name].cast("float64")) for name in ("probability", "gold_probability"))
        of_found, of_gold = scored & ~np.isnan(probabilities), scored & ~right & ~np.isnan(gold)
        sums += sum_bins(probabilities[of_found], right[of_found]) + sum_bins(gold[of_gold], np.ones(of_gold.sum()))
    return error_of_bins(sums)
