"""Coverage of the 95% interval of F1, by the number of test texts, and how often the truth is below it.

    python -m benchmarks.intervals
    python -m benchmarks.intervals --documents

Texts of unequal difficulty, length and number of spans are drawn from a population with known F1. The lower end decides
whether a label is ready, so the rate below it matters most. With `--documents`, texts are sentences of documents.
"""

from typing import NamedTuple

import numpy as np
import typer

from benchmarks.measure import write_result
from labelwise.evaluate.resampling import MIN_UNITS, Jackknife, f_scores, sum_by_unit

SENTENCES = 20  # of a document
SIZES = (MIN_UNITS, 8, 12, 20, 33, 100)
EASE = (0.8, 2.0)  # log-odds of a span to be found, on average
POPULATION = 400_000


class Coverage(NamedTuple):
    """How often the truth is in the interval, and how often below."""

    covered: float
    below: float


def draw(rng: np.random.Generator, texts: int, ease: float | np.ndarray) -> np.ndarray:
    """Draw right, predicted and gold spans of texts, shape (texts, 1, 3).

    ease (float | np.ndarray): log-odds of a span to be found, on average, or for each text.
    """
    size = rng.lognormal(np.log(6), 0.7, texts)
    gold = rng.poisson(size)
    p = 1 / (1 + np.exp(-(ease + rng.normal(size=texts))))
    right = rng.binomial(gold, p)
    return np.stack([right, right + rng.poisson(0.9 * size * (1 - p)), gold], 1)[:, None]


def simulate(texts: int, *, samples: int, seed: int) -> Coverage:
    """Compute the interval of many samples of texts, as an evaluation does; skip those without one."""
    inside = below = used = 0
    for ease in EASE:
        rng = np.random.default_rng((seed, texts))
        true = f_scores(draw(rng, POPULATION, ease).sum(0))[0]
        for _ in range(samples // len(EASE)):
            docs = draw(rng, texts, ease)
            jackknife = Jackknife(docs.sum(0))
            jackknife.add(docs)
            low, high = jackknife.interval(within=True)[:, 0]
            used += not np.isnan(low)
            inside += low <= true <= high
            below += true < low
    return Coverage(float(inside / used), float(below / used))


def simulate_documents(documents: int, *, samples: int, seed: int) -> tuple[Coverage, Coverage]:
    """Compute intervals of many samples of documents, by document and by sentence."""
    held = np.zeros((2, 2))
    for ease in EASE:
        rng = np.random.default_rng((seed, documents))
        population = ease + np.repeat(rng.normal(size=POPULATION // SENTENCES), SENTENCES)
        true = f_scores(draw(rng, POPULATION, population).sum(0))[0]
        units = np.repeat(np.arange(documents), SENTENCES)
        for _ in range(samples // len(EASE)):
            texts = draw(rng, len(units), ease + rng.normal(size=documents)[units])
            for way, docs in enumerate((sum_by_unit(texts, units), texts)):
                jackknife = Jackknife(docs.sum(0))
                jackknife.add(docs)
                low, high = jackknife.interval(within=True)[:, 0]
                held[way] += low <= true <= high, true < low
    by_document, by_sentence = (Coverage(*row) for row in (held / samples).tolist())
    return by_document, by_sentence


def main(samples: int = 4000, seed: int = 0, *, documents: bool = False) -> None:
    """Simulate, and store the result."""
    if documents:
        rows = [[n, samples, *sum(simulate_documents(n, samples=samples, seed=seed), ())] for n in SIZES]
        ways = {
            f"truth {what} by {way}": ".1%"
            for way in ("document", "sentence")
            for what in ("in the interval", "below it")
        }
        write_result("document_intervals", {"documents": ",", "samples": ","} | ways, rows)
        return
    rows = [[texts, samples, *simulate(texts, samples=samples, seed=seed)] for texts in SIZES]
    columns = {"test texts": ",", "samples": ",", "truth in the interval": ".1%", "truth below it": ".1%"}
    write_result("intervals", columns, rows)


if __name__ == "__main__":
    typer.run(main)
