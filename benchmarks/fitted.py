"""How many entities does dev need before a fit helps (a shift of "outside", calibration)?

    python -m benchmarks.fitted

Draws devs of several sizes from the held-out texts of `benchmarks.defaults`, fits on each, and measures on the
others. It trains nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import typer

from benchmarks.defaults import FEW_WORDS, KEEP, RULE, Run, read_run
from benchmarks.measure import Cell, write_result
from labelwise.evaluate.resampling import f_scores
from spacy_per_label.calibrate import _logistic, calibration_error, fit_settings
from spacy_per_label.decode import calibrated, log_odds

SPANS = (10, 50, 200, 1000)  # gold spans, or found ones, of dev
Group = tuple[str, int, str]  # a corpus, a number of texts, and a setting
DRAWS = 50
MIN_PROBABILITY = 0.9


class Draw(NamedTuple):
    """A dev, and the other texts.

    dev, rest (np.ndarray): numbers of texts, from 0.
    """

    dev: np.ndarray
    rest: np.ndarray


def draw_devs(spans: np.ndarray, size: int, seed: int) -> Iterator[Draw]:
    """Yield devs with this number of spans, if enough texts remain.

    spans (np.ndarray): spans of each text, shape (texts,).
    """
    rng = np.random.default_rng((seed, size))
    for _ in range(DRAWS):
        order = rng.permutation(len(spans))
        texts = int(np.searchsorted(np.cumsum(spans[order]), size)) + 1
        if spans[order[texts:]].sum() >= max(size, 50):
            yield Draw(order[:texts], order[texts:])


def gains_of_shift(run: Run, size: int) -> Iterator[np.ndarray]:
    """Yield each dev's gains in F1 and macro F1 by its shift, shape (2,)."""
    for dev, others in draw_devs(run.counts[0, ..., 2].sum(1), size, 0):
        chosen = int(f_scores(run.counts[:, dev].sum(1))[:, -2:].mean(1).argmax())  # by (shifts, labels, 3)
        yield np.diff(f_scores(run.counts[[0, chosen]][:, others].sum(1))[:, -2:], axis=0)[0]


def errors_of(run: Run, size: int) -> Iterator[list[float]]:
    """Yield errors and shares of right spans at p >= MIN_PROBABILITY: before, with one slope, and by label."""
    names = [*np.unique(run.labels)]
    odds, right = log_odds(run.p), run.right.astype(bool)
    spans = np.bincount(run.numbers - 1, minlength=run.counts.shape[1])
    for dev, others in draw_devs(spans, size, 1):
        own, other = np.isin(run.numbers - 1, dev), np.isin(run.numbers - 1, others)
        slope = _logistic(odds[own, None], right[own], np.array([1.0]), 1.0)
        fitted = fit_settings(run.labels[own], odds[own], right[own], names)
        slopes, intercepts = (np.array([kind[name] for name in run.labels[other]]) for kind in fitted.values())
        p = [run.p[other], calibrated(run.p[other], slope, 0 * slope), calibrated(run.p[other], slopes, intercepts)]
        errors = [calibration_error(probabilities, right[other]) or 0.0 for probabilities in p]
        yield [
            *errors,
            *(
                right[other][probabilities >= MIN_PROBABILITY].mean()
                if (probabilities >= MIN_PROBABILITY).any()
                else np.nan
                for probabilities in p
            ),
        ]


def collect(
    runs: dict[Group, list[Run]], measure: Callable[[Run, int], Iterator[Any]]
) -> Iterator[tuple[list[Cell], np.ndarray]]:
    """Yield the first cells of a row, and its draws, shape (draws, measures)."""
    for (place, texts, setting), group_runs in runs.items():
        for size in SPANS:
            if drawn := [draw for run in group_runs for draw in measure(run, size)]:
                yield [place, texts, int(group_runs[0].words), setting, len(group_runs), size], np.array(drawn)


def main() -> None:
    """Draw, and write both tables."""
    runs: dict[Group, list[Run]] = {}
    for file in sorted(KEEP.glob("cpu-choice-*.npz")):
        place, texts, setting = file.stem.split("-")[2:5]
        run = read_run(file)
        if setting in ("before", RULE[int(run.words >= FEW_WORDS)]):
            runs.setdefault((place, int(texts), setting), []).append(run)
    begin = {"corpus": "", "texts": ",", "words": ",", "setting": "", "seeds": ","}
    columns = {**begin, "entities of dev": ",", "gain, F1": "+.3f", "gain, macro F1": "+.3f", "draws that lose": ".0%"}
    rows = [
        [*row, *draws.mean(0).tolist(), float((draws.sum(1) < 0).mean())]
        for row, draws in collect(runs, gains_of_shift)
    ]
    write_result("shift", columns, rows)
    columns = {**begin, "spans found in dev": ","}
    for measured, form in (("error", ".3f"), (f"right at p >= {MIN_PROBABILITY}", ".2f")):
        columns |= {f"{measured}, {method}": form for method in ("uncalibrated", "one slope", "by label")}
    rows = [[*row, *np.nanmean(draws, 0).tolist()] for row, draws in collect(runs, errors_of) if row[3] != "before"]
    write_result("calibration", columns, rows)


if __name__ == "__main__":
    typer.run(main)
