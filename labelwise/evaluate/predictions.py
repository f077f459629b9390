"""Predictions with their gold, for scoring without model and corpus.

A file has a line of JSON for each text, sorted by key, for comparing two branches:

    {"key": "0a5f…", "text": "Add 5 mL", "predicted": [[4, 5, "Amount"]], "gold": [[4, 8, "Amount"]],
     "rejected": [], "uncovered": {"Time": "none"}}
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, SpanKey, evaluable


class PredictedDoc(msgspec.Struct):
    """A text with predicted and gold spans: (start, end, label) in characters, sorted.

    predicted (list): the pipeline's entities.
    gold, rejected (list): accepted and rejected spans.
    uncovered (dict[str, str]): labels that the text isn't complete for, "partial" or "none".
    found (list): all spans of a per-label recognizer, which may overlap, each with its probability last.
    words (int): the pipeline's tokens.
    unit, groups: see `annotation.Annotation`.
    """

    key: str
    text: str
    predicted: list[SpanKey]
    gold: list[SpanKey]
    rejected: list[SpanKey] = []
    uncovered: dict[str, str] = {}
    doc: str = ""
    found: list[tuple[int, int, str, float]] = []
    words: int = 0
    unit: str = ""
    groups: dict[str, list[str]] = {}

    def scored(self, spans: Iterable[SpanKey]) -> set[SpanKey]:
        """Keep the spans that can be scored; see `text.evaluable`."""
        return evaluable(spans, (*self.gold, *self.rejected), self.uncovered)

    def words_of(self, span: SpanKey) -> str:
        """Return the words of a span, with single spaces."""
        return " ".join(self.text[span[0] : span[1]].split())


FOLDER_MARK = "predicted.json"  # in a folder of such files; see `predict_files`
encode_prediction = msgspec.json.Encoder().encode
decode_prediction = msgspec.json.Decoder(PredictedDoc).decode


def write_predictions(docs: Iterable[PredictedDoc], path: Path) -> tuple[int, int]:
    """Write docs, one per line; return the numbers of texts and words."""
    texts = words = 0
    with path.open("wb") as file:
        for doc in docs:
            file.write(encode_prediction(doc) + b"\n")
            texts, words = texts + 1, words + doc.words
    return texts, words


def list_predictions(path: Path) -> list[Path]:
    """List files of predictions: the path itself, or those in a folder of `predict_files`."""
    if (path / FOLDER_MARK).is_file():
        return [file.with_suffix("") for file in sorted(path.rglob("*.jsonl.done"))]
    return [path] if path.is_file() else []


def read_predictions(path: Path) -> Iterator[PredictedDoc]:
    """Yield the docs of a file.

    RAISES (InputError): if the file is missing, or a line is malformed.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; run the evaluation, or `dvc pull` what it wrote")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield decode_prediction(line)
            except DECODE_ERRORS as error:
                raise InputError(f"{path}:{number}: not a prediction ({error}); run the evaluation again") from error
