"""From how many entities of dev is what is fitted there better than nothing: a shift of "outside", and calibration?

    python -m benchmarks.fitted

Draws devs of several sizes from the texts that `benchmarks.defaults` has held out, fits on each, and measures on the
held-out texts that weren't drawn. It trains nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import typer

from benchmarks.defaults import KEEP, Run
from benchmarks.measure import Cell, write_result
from labelwise.evaluate.resampling import f_scores
from spacy_per_label.calibrate import _logistic, calibration_error, fit_settings
from spacy_per_label.decode import calibrated, log_odds

SPANS = (10, 20, 50, 100, 200, 500, 1000)  # gold spans, or found ones, of dev
DRAWS = 50
SURE = 0.9


class Draw(NamedTuple):
    """A dev, and the texts that are left.

    dev, rest (np.ndarray): numbers of texts, from 0.
    """

    dev: np.ndarray
    rest: np.ndarray


def draw_devs(spans: np.ndarray, wanted: int, seed: int) -> Iterator[Draw]:
    """Yield devs of as many texts as have so many spans, where as many are left.

    spans (np.ndarray): shape (texts,).
    """
    rng = np.random.default_rng((seed, wanted))
    for _ in range(DRAWS):
        order = rng.permutation(len(spans))
        texts = int(np.searchsorted(np.cumsum(spans[order]), wanted)) + 1
        if spans[order[texts:]].sum() >= max(wanted, 50):
            yield Draw(order[:texts], order[texts:])


def gains_of_shift(run: Run, wanted: int) -> Iterator[np.ndarray]:
    """Yield the gains in F1 and macro F1 by the shift that each dev chooses, shape (2,)."""
    for dev, rest in draw_devs(run.counts[0, ..., 2].sum(1), wanted, 0):
        chosen = int(f_scores(run.counts[:, dev].sum(1))[:, -2:].mean(1).argmax())  # by (shifts, labels, 3)
        yield np.diff(f_scores(run.counts[[0, chosen]][:, rest].sum(1))[:, -2:], axis=0)[0]


def errors_of(run: Run, wanted: int) -> Iterator[list[float]]:
    """Yield calibration errors and shares of right spans at p >= SURE: before, with one slope, and by label."""
    names = [*np.unique(run.labels)]
    odds, right = log_odds(run.p), run.right.astype(bool)
    spans = np.bincount(run.numbers - 1, minlength=run.counts.shape[1])
    for dev, rest in draw_devs(spans, wanted, 1):
        own, other = np.isin(run.numbers - 1, dev), np.isin(run.numbers - 1, rest)
        slope = _logistic(odds[own, None], right[own], np.array([1.0]), 1.0)
        fitted = fit_settings(run.labels[own], odds[own], right[own], names)
        slopes, intercepts = (np.array([kind[name] for name in run.labels[other]]) for kind in fitted.values())
        p = [run.p[other], calibrated(run.p[other], slope, 0 * slope), calibrated(run.p[other], slopes, intercepts)]
        errors = [calibration_error(one, right[other]) or 0.0 for one in p]
        yield [*errors, *(right[other][one >= SURE].mean() if (one >= SURE).any() else np.nan for one in p)]


def collect(runs: dict[str, Run], measure: Callable[[Run, int], Iterator[Sequence[float]]]) -> Iterator[tuple]:
    """Yield the corpus, spans of dev, trainings, and all draws, shape (draws, measures)."""
    corpora = dict.fromkeys(name.split("-")[2] for name in runs)
    for corpus, wanted in product([*corpora, ""], SPANS):
        own = [list(measure(run, wanted)) for name, run in runs.items() if not corpus or name.split("-")[2] == corpus]
        if drawn := [draws for draws in own if draws]:
            yield corpus or "all", wanted, len(drawn), np.concatenate(drawn)


def main(few_words: int = 10_000) -> None:
    """Draw, and write both tables."""
    runs = {}
    for file in sorted(KEEP.glob("cpu-choice-*.npz")):
        with np.load(file) as kept:
            runs[file.stem] = Run(*(kept[name] for name in Run._fields))
    rows: list[list[Cell]] = []
    for few, setting in product((True, False), ("before", "rule")):
        chosen = {
            name: run for name, run in runs.items() if (run.words < few_words) is few and name.split("-")[4] == setting
        }
        for corpus, wanted, trainings, gains in collect(chosen, gains_of_shift):
            worse = float((gains.sum(1) < 0).mean())
            words = f"{'fewer than' if few else 'at least'} {few_words:,}"
            rows.append([words, setting, corpus, wanted, trainings, *gains.mean(0).tolist(), worse])
    columns = {"words of train": "", "setting": "", "corpus": "", "entities of dev": ",", "trainings": ","}
    columns |= {"gain, F1": "+.3f", "gain, macro F1": "+.3f", "draws that lose": ".0%"}
    write_result("shift", columns, rows)
    found = [[c, wanted, n, *np.nanmean(each, 0).tolist()] for c, wanted, n, each in collect(runs, errors_of)]
    methods = ("before", "one slope", "by label")
    columns = {"corpus": "", "spans found in dev": ",", "trainings": ","}
    columns |= {f"error, {one}": ".3f" for one in methods} | {f"right at p >= {SURE}, {one}": ".2f" for one in methods}
    write_result("calibration", columns, found)


if __name__ == "__main__":
    typer.run(main)
