"""A file of predictions, as `predict` and `evaluate` write it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.text import text_key


def write_predicted(
    path: Path, docs: Mapping[str, Sequence[tuple]], unknown: Sequence[str] = (), name: str = "d/{}.txt"
) -> Path:
    """Write texts with the spans that were found in each, with their probabilities or without.

    unknown (Sequence[str]): the labels that the texts aren't complete for.
    name (str): of the document of each text.
    """
    with path.open("wb") as file:
        for text, found in docs.items():
            scored = [span for span in found if len(span) == 4]
            doc = PredictedDoc(text_key(text.encode()).hex(), text, [span[:3] for span in found], [], found=scored)
            doc.doc, doc.uncovered = name.format(text), dict.fromkeys(unknown, "none")
            write_predictions([doc], file)
    return path
