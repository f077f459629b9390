"""The metrics of an evaluation, as queries of its tables.

Spans are compared in characters: one is right if start, end and label are. Gold is every accepted span: one that tokens
can't represent counts as missed, so that losing gold can't improve a score.

A label is scored only on texts that are complete for it, and elsewhere on the spans that were judged: what spaCy's
scorer does with missing values (it ignores predictions, but counts gold) would make precision too high there.
"""

from collections.abc import Iterator, Sequence
from math import isnan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.common.reliability import Reliability
from labelwise.evaluate.resampling import BLOCK, FEWEST, Jackknife, wilson_interval
from labelwise.evaluate.scores import AllScores, Errors, Metrics, Scores, Seen, prf, score_table
from labelwise.evaluate.tables import Tables

NOW_AND_THEN = 0.1  # of the times that train marks a form: how often it may leave it unmarked, and marks it alike still


def measure(tables: Tables, labels: Sequence[str], *, whole: bool | None = None) -> Metrics:
    """Compute the metrics, the same for equal tables.

    labels (Sequence[str]): those of the corpus.
    whole (bool | None): all texts that the pipeline was trained on are known; None if none are.
    """
    total, seen = (np.zeros((len(labels), 3), int) for _ in range(2))
    texts = seen_texts = 0
    for counts, was_seen in count_texts(tables, labels):
        texts, seen_texts = texts + len(counts), seen_texts + int(was_seen.sum())
        total += counts.sum(0)
        seen += counts[was_seen].sum(0)
    errors = count_errors(tables, labels)
    without = prf(*(total - seen).sum(0).tolist()).f
    return Metrics(
        texts=texts,
        all_gold=_with_intervals(tables, total, labels),
        with_gold=_with_gold(tables, total, labels),
        all_spans=score_all_spans(tables, labels),
        calibration_error=measure_reliability(tables).error(),
        unscored=len(tables.read_pairs(["kind"], pc.field("kind") == "unjudged")),
        errors=errors,
        alike=count_alike(tables),
        seen=None if whole is None else Seen(seen_texts, without, whole),
    )


def count_texts(tables: Tables, labels: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Count the spans of each text, for BLOCK texts at a time.

    YIELDS (tuple): right, predicted and gold spans, of the shape (texts, labels, 3); and which texts were seen.
    """
    columns = ("key", "kind", "gold_label", "predicted_label")
    for texts, pairs in tables.groups(("key", "seen"), columns):
        kinds = pairs["kind"].cast(pa.string())
        judged = ~pc.is_in(kinds, pa.array(["unjudged", "nested"])).to_numpy()
        text = numbers(pairs["key"], texts["key"].to_pylist())
        gold, predicted = (numbers(pairs[side], labels) for side in ("gold_label", "predicted_label"))
        right = pc.equal(kinds, "right").to_numpy()
        counts = np.zeros((len(texts), len(labels), 3), int)
        for column, (label, counted) in enumerate(
            ((gold, right), (predicted, judged & (predicted >= 0)), (gold, gold >= 0))
        ):
            np.add.at(counts[:, :, column], (text[counted], label[counted]), 1)
        seen = texts["seen"].fill_null(False).to_numpy()
        for start in range(0, len(texts), BLOCK):
            yield counts[start : start + BLOCK], seen[start : start + BLOCK]


def numbers(column: pa.ChunkedArray, names: Sequence[str]) -> np.ndarray:
    """Number the values of a column by their places in a list; -1 for null, and for what isn't in it."""
    found = pc.index_in(column.cast(pa.string()), pa.array(names, pa.string()))
    return found.fill_null(-1).to_numpy()


def count_errors(tables: Tables, labels: Sequence[str]) -> dict[str, Errors]:
    """Count what became of the spans of each label."""
    rows = tables.read_pairs(["kind", "cause", "gold_label", "predicted_label"])
    errors = {label: Errors() for label in labels}
    for row in rows.group_by(rows.column_names).aggregate([([], "count_all")]).to_pylist():
        kind, n, sides = row["kind"], row["count_all"], (row["gold_label"], row["predicted_label"])
        gold, predicted = (errors.get(label) for label in sides)
        if gold:
            gold.causes[row["cause"]] = gold.causes.get(row["cause"], 0) + n
            gold.right += n * (kind == "right")
            gold.boundaries += n * (kind == "boundaries")
            gold.missed += n * (kind in ("missed", "label"))
        if predicted:
            predicted.spurious += n * (kind in ("spurious", "label"))
            predicted.unjudged += n * (kind == "unjudged")
    return errors


def score_all_spans(tables: Tables, labels: Sequence[str]) -> AllScores | None:
    """Score all spans that were found, which may overlap; None where gold doesn't, or if they have no probability."""
    names = (
        "kind",
        "gold_label",
        "predicted_label",
        "gold_probability",
        "probability",
        "key",
        "gold_start",
        "gold_end",
    )
    counts = np.zeros((len(labels), 3), int)
    overlaps = has_found = False
    for texts, pairs in tables.groups(("key",), names):
        kinds = pairs["kind"].cast(pa.string()).to_numpy(zero_copy_only=False)
        gold, predicted = (numbers(pairs[side], labels) for side in ("gold_label", "predicted_label"))
        found = pairs["gold_probability"].is_valid().to_numpy()
        has_found |= bool(found.any()) or bool(pairs["probability"].is_valid().to_numpy().any())
        elsewhere = found & (kinds != "right")  # gold that is found, though no entity
        judged = (predicted >= 0) & (kinds != "unjudged")
        for column, chosen in ((0, [gold[found]]), (1, [predicted[judged], gold[elsewhere]]), (2, [gold[gold >= 0]])):
            counts[:, column] += np.bincount(np.concatenate(chosen), minlength=len(labels))
        marked = gold >= 0
        text = numbers(pairs["key"], texts["key"].to_pylist())[marked].astype(np.int64) << 32
        starts, ends = (text + pairs[name].fill_null(0).to_numpy()[marked] for name in ("gold_start", "gold_end"))
        order = np.argsort(starts, kind="stable")
        overlaps |= bool((starts[order][1:] < np.maximum.accumulate(ends[order])[:-1]).any())
    return score_table(counts, labels) if has_found and overlaps else None


def measure_reliability(tables: Tables) -> Reliability:
    """Count all spans that were found and can be judged by probability: those that are gold are right."""
    rows = tables.read_pairs(["kind", "probability", "gold_probability"], pc.field("kind") != "unjudged").to_pylist()
    found = [(row["probability"], row["kind"] == "right") for row in rows if row["probability"] is not None]
    elsewhere = [row["gold_probability"] for row in rows if row["kind"] != "right"]
    return Reliability([*found, *((p, True) for p in elsewhere if p is not None)])


def count_alike(tables: Tables) -> list[int]:
    """Count the gold spans whose form train marks, with few exceptions, and those of them that were found."""
    rows = tables.read_pairs(["kind", "marked", "free"], pc.field("gold_label").is_valid() & (pc.field("marked") > 0))
    alike = rows.filter(pc.less_equal(rows["free"], pc.multiply(NOW_AND_THEN, rows["marked"])))
    return [len(alike), len(alike.filter(pc.equal(alike["kind"].cast(pa.string()), "right")))]


def _with_intervals(tables: Tables, counts: np.ndarray, labels: Sequence[str]) -> AllScores:
    """Compute scores from counts, with intervals."""
    scores = score_table(counts, labels)
    rows = [*(scores.labels[label] for label in labels), scores, scores.macro]
    bounds = _intervals(tables, counts, labels, np.ones(len(labels), bool))
    for row, total, between in zip(rows, [*counts.tolist(), counts.sum(0).tolist(), None], bounds, strict=True):
        _set_interval(row, total, *between)
    return scores


def _with_gold(tables: Tables, counts: np.ndarray, labels: Sequence[str]) -> Scores:
    """Compute the scores over all labels that have gold."""
    kept = counts[:, 2] > 0
    total = counts[kept].sum(0).tolist()
    scores = prf(*total)
    _set_interval(scores, total, *_intervals(tables, counts, labels, kept)[-2])
    return scores


def _intervals(
    tables: Tables, counts: np.ndarray, labels: Sequence[str], kept: np.ndarray
) -> list[tuple[float, float, int]]:
    """Compute the interval of each F1, of some labels and their averages, and the number of its docs."""
    jackknife = Jackknife(counts[kept])
    for docs, _ in count_texts(tables, labels):
        jackknife.add(docs[:, kept])
    low, high = jackknife.interval(within=True).tolist()
    return list(zip(low, high, map(int, jackknife.docs), strict=True))


def _set_interval(row: Scores, total: list[int] | None, low: float, high: float, docs: int) -> None:
    """Give scores their interval; where all spans are right, or none is, it is Wilson's."""
    if row.f is None or docs < FEWEST:
        return
    if not isnan(low):
        row.f_low, row.f_high = low, high
    elif total:
        row.f_low, row.f_high = wilson_interval(*total)
