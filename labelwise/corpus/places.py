"""Where the annotation of each text is in the sources, and who made it.

`places.jsonl` has a line for each text of the corpus, with the answers that may count, sorted by key:

    {"key": "0a5f…", "answers": [{"dataset": "drug", "file": "drug.jsonl", "line": 7, "annotator": "ann",
                                  "digests": {"DRUG": "91c2…"}}]}
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.corpus.manifest import check_merged

PLACES = "places.jsonl"


class AnswerPlace(msgspec.Struct, omit_defaults=True):
    """Where an answer is.

    file (str): the name of the file.
    annotator (str): empty if nobody is named.
    judged (list | None): of single judged spans start and end; None if the answer is about all of the text.
    lines (list): of spans that have a line of their own: start, end, file and line.
    digests (dict | None): see `answer_digest`, by label, without those that have no span; None if another answer counts
        instead of this one.
    """

    dataset: str
    file: str
    line: int
    annotator: str = ""
    judged: list[tuple[int, int]] | None = None
    lines: list[tuple[int, int, str, int]] = []
    digests: dict[str, str] | None = None

    def of(self, span: tuple[int, int] | None) -> str:
        """Name file and line: of a span that has a line of its own, or else of the answer; a document has no line."""
        own = [(file, line) for start, end, file, line in self.lines if (start, end) == span]
        others = [(file, 0) for _, _, file, _ in self.lines]
        file, line = (*own, *others, (self.file, self.line))[0]
        return f"{file}:{line}" if line else file


class TextPlaces(msgspec.Struct):
    """Where the answers about a text are.

    key (str): of the text, in hexadecimal.
    """

    key: str
    answers: list[AnswerPlace]


_encode = msgspec.json.Encoder().encode


def answer_digest(spans: Iterable[tuple[int, int]]) -> str:
    """Digest an answer for one label: start and end of its accepted spans, which tell it from what it was before."""
    return hashlib.blake2b(_encode(sorted(spans)), digest_size=6).hexdigest()


def places_line(key: bytes, answers: list[AnswerPlace]) -> bytes:
    """Make the line of a text."""
    return _encode(TextPlaces(key.hex(), answers)) + b"\n"


def read_places(corpus: Path) -> Iterator[TextPlaces]:
    """Yield the texts of a corpus.

    RAISES (InputError): a merge hasn't written them.
    """
    file = corpus / PLACES
    check_merged(corpus)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; run the merge")
    decode = msgspec.json.Decoder(TextPlaces).decode
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield decode(line)
            except DECODE_ERRORS as error:
                raise InputError(f"{file}:{number}: not what a merge writes ({error}); run the merge again") from error
