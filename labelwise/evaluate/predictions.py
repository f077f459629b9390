"""Predictions, doc by doc, with the gold that scoring needs, so that it needs no model and no corpus.

A file has a line of JSON for each text, sorted by key, so that the files of two branches can be read side by side:

    {"key": "0a5f…", "text": "Add 5 mL", "predicted": [[4, 5, "Amount"]], "gold": [[4, 8, "Amount"]],
     "rejected": [], "uncovered": {"Time": "none"}}
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, SpanKey, evaluable


class PredictedDoc(msgspec.Struct):
    """A text with predicted and gold spans; all spans are (start, end, label) in characters, sorted.

    key (str): digest of the text, in hexadecimal.
    predicted (list): the pipeline's entities.
    gold, rejected (list): every span that annotators accepted, and every one that they rejected.
    uncovered (dict[str, str]): the labels that the text isn't complete for, each "partial" or "none".
    doc (str): the name of its document; empty if the tasks don't name it.
    found (list): all spans of a per-label recognizer, which may overlap, each with its probability at the end.
    words (int): tokens of the pipeline that predicted it.
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
        """Keep the spans that can be judged; see `text.evaluable`."""
        return evaluable(spans, (*self.gold, *self.rejected), self.uncovered)

    def words_of(self, span: SpanKey) -> str:
        """Return the words of a span, with each run of white space made one space."""
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
    """List files of predictions: the path itself, or those in a folder of `predict_files`; none if it is neither."""
    if (path / FOLDER_MARK).is_file():
        return [file.with_suffix("") for file in sorted(path.rglob("*.jsonl.done"))]
    return [path] if path.is_file() else []


def read_predictions(path: Path) -> Iterator[PredictedDoc]:
    """Yield the docs of a file.

    RAISES (InputError): there is no such file, or a line isn't what `write_predictions` writes.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; run the evaluation, or `dvc pull` what it wrote")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield decode_prediction(line)
            except DECODE_ERRORS as error:
                raise InputError(f"{path}:{number}: not a prediction ({error}); run the evaluation again") from error
