"""How F grows with the texts, label by label, and what annotating more of them is likely to give.

Pipelines are trained on the first 25, 50, 75 and 100 % of train, a random sample, as texts are sorted by a digest,
and evaluated on the same test texts. F is drawn as a line over the logarithm of the number of texts (Figueroa et al.,
"Predicting sample size required for classification performance", BMC Medical Informatics and Decision Making 12, 2012,
compare such curves). The line is fitted by least squares, each point weighted by its own uncertainty.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from math import log, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.common.memory import check_workers, plan_workers
from labelwise.common.parallel import open_workers
from labelwise.common.wording import counted
from labelwise.corpus.manifest import pinned, read_manifest, read_split
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import AllScores, LearningCurve, Line, Scores
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from labelwise.train.section import PLAIN
from labelwise.train.side_by_side import PER_TRAINING, unseen

SHARES = (0.25, 0.5, 0.75, 1.0)
MORE = 100  # texts whose gain is estimated
NORMAL = 1.96  # standard deviations on either side of a 95% interval
UNSURE = 0.1  # the standard deviation of an F that has no interval


def measure_curve(
    recipe: Recipe,
    out: Path,
    *,
    shares: Sequence[float] = SHARES,
    workers: int = 1,
    memory: str = "",
    address: str = "",
    tell: Callable[[str], Any] = lambda message: None,
) -> LearningCurve:
    """Train on growing shares of train, evaluate each pipeline on test, and write what that shows as JSON.

    workers (int): trainings side by side, at most; each is one process, so that all are the same whatever their number.
    memory (str): that all processes may take, such as "2GB"; empty for no limit.
    address (str): see `parallel.open_workers`.
    RAISES (InputError): there are too few texts for the shares, or what training and evaluation raise.
    """
    check_workers(workers, recipe.gpu_id)
    workers = plan_workers(memory, workers, PER_TRAINING, PER_TRAINING)
    recipe, out = recipe.absolute(), out.absolute()  # a cluster's workers are elsewhere
    corpus = recipe.corpus
    whole = read_split(corpus / "train")
    total = whole["texts"]
    counts = [round(share * total) for share in shares]
    if len(set(counts)) < len(counts) or min(counts) < 1:
        raise InputError(f"{corpus}: {counted(total, 'text')} in train, too few for a learning curve")
    labels = read_manifest(corpus)["labels"]
    tell(f"Training {len(counts)} pipelines, on {counts[0]:,} to {counts[-1]:,} texts; the table is that of the last")
    with (
        pinned(corpus),
        staged(out) as path,
        open_workers(min(workers, len(counts)), address, out) as map_jobs,
    ):
        scores = []
        for count, found in zip(counts, map_jobs(partial(score_share, recipe, total), counts), strict=True):
            tell(f"Trained on {count:,} of {total:,} texts")
            scores.append(found)
        lines = {label: fit_line(counts, [one.labels[label] for one in scores]) for label in labels}
        curve = LearningCurve(counts, MORE, fit_line(counts, scores), lines, whole["digest"])
        path.write_bytes(msgspec.json.format(msgspec.json.encode(curve), indent=1) + b"\n")
    return curve


def score_share(recipe: Recipe, total: int, count: int) -> AllScores:
    """Train on some of all texts, and evaluate that on test."""
    limited = {**recipe.overrides, **PLAIN, "corpora.train.limit": 0 if count == total else count}
    with TemporaryDirectory() as folder, nullcontext() if count == total else unseen():
        model = Path(folder) / "model"
        train_pipeline(replace(recipe, overrides=limited), model, Path(folder) / "curve.tsv")
        return evaluate_pipeline(model, recipe.corpus / "test").metrics.all_gold


def fit_line(texts: Sequence[int], scores: Sequence[Scores]) -> Line:
    """Fit a line to F over the logarithm of the number of texts.

    scores (Sequence[Scores]): those of a pipeline for each number of texts.
    """
    line = Line([one.f for one in scores], support=scores[-1].support or 0)
    known = [(log(n), one) for n, one in zip(texts, scores, strict=True) if one.f is not None and line.support]
    if len(known) < 3:
        return line
    x = np.array([at for at, _ in known])
    f = np.array([one.f for _, one in known])
    weights = np.array([1 / _deviation(one) ** 2 for _, one in known])
    centre = (weights * x).sum() / weights.sum()
    spread = (weights * (x - centre) ** 2).sum()
    slope = (weights * (x - centre) * f).sum() / spread
    step = log((texts[-1] + MORE) / texts[-1])
    gain, deviation = slope * step, sqrt(1 / spread) * step
    line.gain = round(float(gain), 4)
    line.low, line.high = (round(float(gain + sign * NORMAL * deviation), 4) for sign in (-1, 1))
    return line


def _deviation(scores: Scores) -> float:
    """Compute the standard deviation of an F from its interval; at least a hundredth, which is what seeds differ by."""
    if scores.f_low is None or scores.f_high is None:
        return UNSURE
    return max(0.01, (scores.f_high - scores.f_low) / (2 * NORMAL))
