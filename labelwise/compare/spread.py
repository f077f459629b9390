"""How far apart results of one experiment are that differ only in the seed: what a better one has to exceed."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import NamedTuple

from labelwise.common.errors import InputError
from labelwise.compare.revisions import Revision


class Spread(NamedTuple):
    """F of several revisions: their mean, their sample standard deviation, the least and the greatest."""

    mean: float
    deviation: float
    least: float
    greatest: float


def spread(revisions: Sequence[Revision]) -> dict[str, Spread | None]:
    """Compute the spread of F, by label and for the averages, each revision against its own gold.

    RETURNS (dict): the labels that all revisions have, sorted, then "all (micro)" and "mean (macro)"; None where a
        revision has no F.
    RAISES (InputError): there are fewer than two revisions, or their test sets differ.
    """
    names = [revision.name for revision in revisions]
    if len(set(names)) < max(2, len(names)):
        raise InputError(f"{', '.join(names)}: give two revisions or more, each once")
    if len({revision.metrics.texts_digest for revision in revisions}) > 1:
        raise InputError(f"{', '.join(names)}: the test sets differ, so their scores can't be averaged")
    scores = [revision.metrics.all_gold for revision in revisions]
    labels = sorted(set.intersection(*(set(score.labels) for score in scores)))
    rows = {label: [score.labels[label].shown().f for score in scores] for label in labels}
    rows |= {"all (micro)": [score.f for score in scores], "mean (macro)": [score.macro.f for score in scores]}
    return {name: _spread(values) for name, values in rows.items()}


def _spread(values: Sequence[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return Spread(mean(known), stdev(known), min(known), max(known))
