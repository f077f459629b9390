"""Look up the places, annotators and digests of answers in the merge's tables."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import Reason, answer_digest
from labelwise.corpus.tables import read_groups

NOTHING = answer_digest(())


class AnswerPlace(msgspec.Struct):
    """The place of an answer that counts.

    judged (list | None): start and end of accepted and rejected spans; None if the answer covers the whole text.
    lines (list): start, end, file and line of spans with their own lines.
    digests (dict): `answer_digest` of each label with spans.
    """

    dataset: str
    file: str
    line: int
    annotator: str = ""
    judged: list[tuple[int, int]] | None = None
    lines: list[tuple[int, int, str, int]] = []
    digests: dict[str, str] = {}

    def digest(self, label: str) -> str:
        """Return the answer's digest for a label, to detect later changes."""
        return self.digests.get(label, NOTHING)

    def of(self, span: tuple[int, int] | None) -> str:
        """Return the file and line of a span, or else of the answer; a document has no line."""
        lines = [(file, line) for start, end, file, line in self.lines if (start, end) == span]
        others = [(file, 0) for _, _, file, _ in self.lines]
        file, line = (*lines, *others, (self.file, self.line))[0]
        return f"{file}:{line}" if line else file


def read_answers(corpus: Path, texts: Collection[str]) -> Iterator[tuple[str, list[AnswerPlace]]]:
    """Yield texts of a corpus, each with the answers that count, sorted by key."""
    for group in read_groups(corpus):
        keys = pa.array([key for key in group.texts["text"].to_pylist() if key in texts], pa.string())
        if not len(keys):
            continue
        inside = group.spans.filter(pc.is_in(group.spans["text"], keys)).to_pylist()
        spans = {ref: [*group_of] for ref, group_of in groupby(inside, lambda span: (span["text"], span["row"]))}
        rows = group.rows.filter(pc.is_in(group.rows["text"], keys)).to_pylist()
        answers: dict[str, list[AnswerPlace]] = {key: [] for key in keys.to_pylist()}
        for row in rows:
            if row["reason"] == Reason.MERGED and (row["kind"] == "complete" or row["covered"]):
                answers[row["text"]].append(_place(row, spans.get((row["text"], row["row"]), [])))
        yield from answers.items()


def _place(row: Mapping[str, Any], spans: Sequence[Mapping[str, Any]]) -> AnswerPlace:
    place = AnswerPlace(row["dataset"], row["file"], row["line"], row["who"] or "")
    usable = [span for span in spans if span["start"] is not None]
    if row["kind"] == "binary":
        place.judged = [(span["start"], span["end"]) for span in usable]
    with_lines = (span for span in usable if (span["file"], span["line"]) != (row["file"], row["line"]))
    place.lines = [(span["start"], span["end"], span["file"], span["line"]) for span in with_lines]
    by_label: dict[str, list[tuple[int, int]]] = {}
    for span in usable:
        if span["verdict"] == "accept":
            by_label.setdefault(span["label"], []).append((span["start"], span["end"]))
    place.digests = {label: answer_digest({*offsets}) for label, offsets in by_label.items()}
    return place
