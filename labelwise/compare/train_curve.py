"""Learning curve: F1 on dev after training on a quarter, on half and on all of train.

The expected gain from doubling the texts is the gain of the last doubling, with its jackknife interval over units of
dev; no curve is fitted to three points. It is Prodigy's `train-curve`, label by label.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from labelwise.base.conflicts import check_written
from labelwise.base.text import decode_json
from labelwise.compare.comparison import Change, ComparedScores, count_against, score_counts
from labelwise.evaluate.resampling import sum_by_unit
from labelwise.evaluate.tables import Tables

HALF, ALL = "half", "all"


class TrainCurve(msgspec.Struct, kw_only=True):
    """F1 by share of train, with differences to half of it; `pipeline_digest` is of the pipeline trained on all."""

    pipeline_digest: str
    texts: dict[str, int]
    micro: ComparedScores
    labels: dict[str, ComparedScores]

    def gains(self) -> list[tuple[str, Change]]:
        """List the labels with an interval above 0, the largest gain first."""
        gains = [(label, row.changes[ALL]) for label, row in self.labels.items() if row.changes[ALL].has_star(1)]
        return sorted(gains, key=lambda item: (-(item[1].difference or 0), item[0]))

    def describe(self) -> str:
        """Describe the expected gain from doubling the texts."""
        half, now = (self.micro.f[share] for share in (HALF, ALL))
        gain = self.micro.changes[ALL]
        if half is None or now is None or gain.low is None or gain.high is None:
            return "The gain from doubling the texts isn't known: too few dev texts have spans"
        doubled = f"the last doubling took it from {half:.3f} to {now:.3f}, one training each"
        between = f"({gain.low:+.3f} to {gain.high:+.3f})"
        if gain.low > 0:
            add = f"should add about {gain.difference:.3f} to F1 on dev {between}, or less"
            return f"Twice the training texts {add}: {doubled}"
        return f"Twice the training texts may add nothing to F1 on dev: {doubled}, which isn't significant {between}"


def measure_curve(
    predicted: Mapping[str, Tables], texts: Mapping[str, int], labels: Sequence[str], pipeline_digest: str
) -> TrainCurve:
    """Compare each share's predictions of dev with the predictions after half of train.

    predicted, texts (Mapping): by share, "half" first and "all" last; tables of dev, and numbers of training texts.
    """
    docs = [[doc for group in tables.docs() for doc in group] for tables in predicted.values()]
    counts = [
        np.array([[count_against(*both, labels)] for both in zip(docs[-1], docs_of, strict=True)]) for docs_of in docs
    ]
    units = np.unique([*predicted.values()][-1].read_units()["unit"].to_pylist(), return_inverse=True)[1]
    scores = score_counts([*predicted], labels, [sum_by_unit(table, units) for table in counts])
    return TrainCurve(
        pipeline_digest=pipeline_digest, texts=dict(texts), micro=scores["micro"], labels=scores["labels"]
    )


def read_train_curve(path: Path, pipeline_digest: str) -> TrainCurve | None:
    """Read the result of `train-curve`; None if there is none, or for another pipeline.

    RAISES (InputError): if the file has a git conflict, or another form.
    """
    if not path.is_file():
        return None
    check_written(path.read_bytes(), f"{path}", path.parents[1])
    curve = decode_json(path.read_bytes(), TrainCurve, f"{path}: not a learning curve", "run train-curve again")
    return curve if curve.pipeline_digest == pipeline_digest else None
