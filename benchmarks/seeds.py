"""How often does `compare` give a star to pipelines that differ by their seeds alone?

    python -m benchmarks.seeds
    python -m benchmarks.seeds CORPUS ... --steps 300

Without a corpus, trainings are simulated: a seed moves F1 of a training on all texts, and on a label's, as real seeds
do. With corpora, eight trainings on each are divided into two pipelines of four in all 35 ways.
"""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from pyarrow import parquet

from benchmarks.measure import Cell, measure, write_result
from labelwise.compare.comparison import pool_runs, score_counts
from labelwise.compare.seeds import read_counts
from labelwise.corpus.manifest import read_manifest
from labelwise.evaluate.resampling import f_scores, wilson_share

LABELS = 10
TEXTS, TRAININGS = (8, 20, 40, 150), ((2, 2), (3, 3), (5, 5), (3, 1), (5, 1))
EFFECT = 0.15  # of a seed, on the log-odds that a span is found: F1 then varies by 0.02 between trainings
SEEDS = 8


def find_stars(counts: Sequence[np.ndarray]) -> tuple[bool, bool, bool]:
    """Compare two pipelines: is there a star for all spans, for macro F1, for any label?

    counts (Sequence): by pipeline, shape (texts, trainings, labels, 3).
    """
    labels = [str(number) for number in range(counts[0].shape[2])]
    f = [f_scores(count.sum(0)) for count in counts]
    runs = pool_runs(f, [len(scores) for scores in f], [False, False])
    compared = score_counts(["one", "other"], labels, counts, runs)
    stars = [
        row.changes["other"].significant for row in (compared["micro"], compared["macro"], *compared["labels"].values())
    ]
    return stars[0], stars[1], any(stars[2:])


def draw(rng: np.random.Generator, texts: int, trainings: Sequence[int]) -> list[np.ndarray]:
    """Draw counts of two pipelines that differ only by seeds, on texts of unequal difficulty."""
    ease = rng.normal(1.5, 1, (texts, 1, LABELS))
    gold = rng.poisson(6, ease.shape)
    drawn = []
    for number in trainings:
        odds = ease + rng.normal(0, EFFECT, (1, number, 1)) + rng.normal(0, EFFECT, (1, number, LABELS))
        p = 1 / (1 + np.exp(-odds))
        right = rng.binomial(gold, p)
        drawn.append(np.stack([right, right + rng.poisson(6 * (1 - p)), np.broadcast_to(gold, right.shape)], -1))
    return drawn


def simulate(texts: int, trainings: Sequence[int], *, samples: int, seed: int) -> list[float]:
    """Return the rates of false stars: for all spans, for macro F1, and for any of LABELS labels."""
    rng = np.random.default_rng((seed, texts, *trainings))
    return np.mean([find_stars(draw(rng, texts, trainings)) for _ in range(samples)], 0).tolist()


def simulate_all(samples: int, seed: int) -> None:
    """Simulate, and store the result."""
    rows: list[list[Cell]] = []
    for texts in TEXTS:
        for trainings in TRAININGS:
            micro, macro, label = simulate(texts, trainings, samples=samples, seed=seed)
            low, high = wilson_share(round(micro * samples), samples)
            rows.append([texts, " and ".join(map(str, trainings)), samples, micro, low, high, macro, label])
    share = dict.fromkeys(("all spans", "low", "high", "mean of the labels", "any of ten labels"), ".1%")
    write_result("seeds", {"test texts": ",", "trainings": "", "samples": ",", **share}, rows)


def train_all(corpora: Sequence[Path], steps: int, keep: Path) -> None:
    """Train SEEDS pipelines on each corpus, compare them in halves, and store the result."""
    rows = []
    for corpus in corpora:
        out = keep / corpus.absolute().parent.name
        table = out / "training/cpu/seeds.parquet"
        if not table.exists():
            (out / "configs").mkdir(parents=True, exist_ok=True)
            (out / "configs/cpu.cfg").write_bytes(Path("configs/cpu.cfg").read_bytes())
            where = ["cpu", "--corpus", str(corpus.absolute())]
            measure("scripts.train", *where, "--max-steps", str(steps), "--resume", cwd=out)
            measure("scripts.seeds", *where, "--seeds", str(SEEDS), cwd=out)
        every, labels = parquet.read_table(table), read_manifest(corpus).labels
        for split in ("dev", "test"):
            own = every.filter(pa.compute.equal(every["split"].cast(pa.string()), split))
            counts = read_counts(own, "key", own["key"].cast(pa.string()).unique().to_pylist(), labels)
            halves = [half for half in combinations(range(SEEDS), SEEDS // 2) if 0 in half]
            stars = [find_stars([counts[:, [*half]], np.delete(counts, half, 1)]) for half in halves]
            pairs = [counts[:, [*pair]] for pair in combinations(range(SEEDS), 2)]
            alone = [score_counts(["one", "other"], labels, np.split(pair, 2, 1))["micro"] for pair in pairs]
            before = sum(star.changes["other"].significant for star in alone)
            f = f_scores(counts.sum(0))[:, -2].tolist()
            texts = len(counts)
            rows.append([out.name, split, texts, (float(np.median(f)), min(f), max(f)), f"{before} of {len(pairs)}"])
            rows[-1] += [f"{n} of {len(halves)}" for n in np.sum(stars, 0)]
    columns = {"corpus": "", "split": "", "texts": ",", "F1 of eight seeds": ".3f", "stars of pairs by texts alone": ""}
    columns |= dict.fromkeys(("all spans", "mean of the labels", "any label"), "")
    write_result("seeds_trained", columns, rows)


def main(
    corpora: Annotated[list[Path] | None, typer.Argument()] = None,
    samples: int = 2000,
    seed: int = 0,
    steps: int = 300,
    keep: Path = Path("build/seeds"),
) -> None:
    """Simulate, or train on corpora."""
    if corpora:
        train_all(corpora, steps, keep)
    else:
        simulate_all(samples, seed)


if __name__ == "__main__":
    typer.run(main)
