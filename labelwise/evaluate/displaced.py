"""What labels that were added cost the others: entities that a new label's have taken the place of."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from labelwise.evaluate.predictions import read_predictions


class Displaced(NamedTuple):
    """How a pipeline's predictions differ from those of the pipeline that labels were added to.

    entities (Counter[str]): by label, the entities that it doesn't have any more.
    spans (int): those of `doc.spans["labels"]` that differ, of the labels that were there before.
    """

    entities: Counter[str]
    spans: int


def find_displaced(before: Path, after: Path, added: Collection[str]) -> Displaced:
    """Compare two files of predictions for the same texts.

    RAISES (InputError): one isn't there, or isn't what `evaluate_pipeline` wrote.
    """
    entities: Counter[str] = Counter()
    spans = 0
    for one, other in zip(read_predictions(before), read_predictions(after), strict=True):
        entities.update(label for _, _, label in set(one.predicted).difference(other.predicted))
        spans += len(set(one.found) ^ {span for span in other.found if span[2] not in added})
    return Displaced(entities, spans)
