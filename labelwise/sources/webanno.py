r"""Read WebAnno TSV 3, which INCEpTION and WebAnno export: a file is a document, which becomes a text.

    #FORMAT=WebAnno TSV 3.3
    #T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value

    #Text=Ann moved to New York .
    1-1	0-3	Ann	_	PER
    1-2	4-9	moved	_	_
    1-3	10-12	to	_	_
    1-4	13-16	New	_	LOC[1]
    1-5	17-21	York	_	LOC[1]
    1-6	22-23	.	_	_

- The labels are the `value` of NamedEntity, and the first feature of each span layer that isn't DKPro Core's, but a
  project's own. Without such a value, the label of a span is the layer's name.
- The number of its annotation, `[1]`, follows a value if the annotation has several tokens, or if others have the same
  token, separated by `|`: `LOC[2]|ORG[3]`. Rows such as `1-4.1` are parts of tokens.
- `\` escapes special characters in `#Text=` and in values, as by INCEpTION's class `Escaping`; an unescaped one in a
  value is a problem. INCEpTION doesn't escape tokens; other writers do.
- Offsets are UTF-16 code units, or code points, as the text at the offsets shows.
- The file lacks the characters between sentences: here they are a line end and spaces.
- In an export, a document is a folder, which names it, with a file for each annotator; INITIAL_CAS is the unannotated
  document. The folder `curation` has reviews. `exportedproject.json` says who has finished what; the rest isn't read.

The format is in the appendix of INCEpTION's user guide: https://inception-project.github.io/documentation/
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise.annotations import DOCUMENT, Item, Problem, Reason, incomplete_read
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.sources.clean import RawSpan, clean
from labelwise.sources.files import PROJECT
from labelwise.sources.offsets import offset_table

FORMAT, NAMED_ENTITY = "#FORMAT=WebAnno TSV 3", "NamedEntity"
ENTITIES, DKPRO = f".{NAMED_ENTITY}", "de.tudarmstadt.ukp.dkpro.core."
INITIAL, ANNOTATION, CURATION = "INITIAL_CAS", "annotation", "curation"
OFFSETS = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
MAX_SPACES = 2**20  # between sentences, which the file lacks
EMPTY = ("_", "")  # a cell without annotations
STACKED = re.compile(r"(?:\\.|[^|])+", re.DOTALL)
VALUE = re.compile(r"((?:\\.|[^\\|\[\]])*)(?:\[([0-9]+)\])?", re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}


class Layer(NamedTuple):
    """A layer of spans, and whether its column's values are labels."""

    name: str
    valued: bool


class TokenRow(NamedTuple):
    """A token or a part of one: line, offsets as written, and feature columns."""

    line: int
    start: int
    end: int
    form: str
    features: list[str]


class Sentence(NamedTuple):
    """A sentence as written, and its rows."""

    text: str
    rows: list[TokenRow]


def read_webanno(path: Path) -> Iterator[Item]:
    """Yield the document of a file as a task; unreadable lines as problems."""
    try:
        columns, written = _parse(path.read_text(encoding="utf-8-sig").split("\n"))
        sentences = [sentence for sentence in written if sentence.rows]
        joined = _join(sentences)
    except UnicodeDecodeError as error:
        yield Problem(0, Reason.MALFORMED, f"not UTF-8 ({error.reason})")
    except MalformedError as error:
        yield Problem(error.line, Reason.MALFORMED, str(error))
    else:
        if not joined.text.strip():
            yield Problem(1, Reason.NO_TEXT)
            return
        if path.stem == INITIAL:
            yield Problem(1, Reason.NOT_ANNOTATED, f"{INITIAL} is the document before anyone annotated it")
            return
        kind = path.parent.parent.name
        in_folder = kind in (ANNOTATION, CURATION) or "." in path.parent.name  # such as a.txt/ann.tsv
        review = in_folder and kind == CURATION
        name = path.parent.name if in_folder else path.name
        project = path.parent.parent.parent / PROJECT
        if in_folder and project.is_file():
            unfinished = _read_unfinished(project, project.stat().st_mtime_ns)
            if (name, "" if review else path.stem) in unfinished:
                why = (
                    f"{PROJECT} says that it is in progress; finish it in INCEpTION, or delete that file, and it counts"
                )
                yield Problem(1, Reason.NOT_ANNOTATED, why)
                return
        spans, problems = _spans(columns, [row for sentence in sentences for row in sentence.rows], joined.places)
        who = [path.stem] if in_folder else []
        yield clean(1, joined.text, spans, who=who, review=review, meta={DOCUMENT: name})
        yield from problems
        if len(sentences) < len(written):
            yield incomplete_read(0, len(written), "sentences", len(sentences))


class _Document(msgspec.Struct):
    name: str = ""
    user: str = ""
    state: str | None = None


class _Project(msgspec.Struct):
    source_documents: list[_Document] = []
    annotation_documents: list[_Document] = []


@lru_cache(maxsize=1)
def _read_unfinished(project: Path, _: int) -> frozenset[tuple[str, str]]:
    """List unfinished documents with their annotators; "" stands for curation.

    RAISES (InputError): if the file doesn't describe a project.
    """
    try:
        content = msgspec.json.decode(project.read_bytes(), type=_Project)
    except DECODE_ERRORS as error:
        raise InputError(f"{project}: {error}; unpack the export again, or delete the file") from error
    documents = (*content.source_documents, *content.annotation_documents)
    return frozenset(
        (document.name, document.user)
        for document in documents
        if document.state in ("IN_PROGRESS", "CURATION_IN_PROGRESS")
    )


class MalformedError(ValueError):
    """A malformed line, by its number."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def _parse(lines: Sequence[str]) -> tuple[dict[int, Layer], list[Sentence]]:
    """Return the label columns by layer, and the sentences; refuse a malformed line."""
    if not lines[0].startswith(FORMAT):
        raise MalformedError(1, "it doesn't begin with #FORMAT=WebAnno TSV 3; export as WebAnno TSV v3")
    sentences: list[Sentence] = []
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        if line.startswith("#Text="):
            text = unescape(line.removeprefix("#Text="))
            if sentences and not sentences[-1].rows:  # a sentence of several lines
                sentences[-1] = Sentence(f"{sentences[-1].text}\n{text}", [])
            else:
                sentences.append(Sentence(text, []))
        elif line.strip() and not line.startswith("#"):
            if not sentences:
                raise MalformedError(number, "a token before the first #Text=")
            sentences[-1].rows.append(_parse_row(number, line, sentences[-1].text))
    return _label_columns(_layers(lines)), [
        sentence for sentence in sentences if sentence.rows or sentence.text.strip()
    ]


def _layers(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """List a file's layers with their features; the name is "" if its annotations aren't spans."""
    layers = []
    for line in lines:
        if line.startswith(("#T_SP=", "#T_CH=", "#T_RL=")):
            name, *features = line.removesuffix("\r").partition("=")[2].split("|")
            layers.append((name if line.startswith("#T_SP") else "", features or [""]))
    return layers


def _parse_row(number: int, line: str, sentence: str) -> TokenRow:
    cells = line.split("\t")
    offsets = OFFSETS.fullmatch(cells[1]) if len(cells) > 2 else None
    if offsets is None:
        raise MalformedError(number, "no token with its offsets")
    form = cells[2] if "\\" not in cells[2] or cells[2] in sentence else unescape(cells[2])
    return TokenRow(number, int(offsets[1]), int(offsets[2]), form, cells[3:])


def unescape(text: str) -> str:
    r"""Unescape `\t` and so on, and other characters after a `\`."""
    return ESCAPED.sub(lambda match: ESCAPES.get(match[1], match[1]), text)


def _label_columns(layers: Sequence[tuple[str, list[str]]]) -> dict[int, Layer]:
    columns: dict[int, Layer] = {}
    place = 0
    for name, features in layers:
        if name.endswith(ENTITIES):
            valued = "value" in features
            columns[place + (features.index("value") if valued else 0)] = Layer(NAMED_ENTITY, valued)
        elif name and not name.startswith(DKPRO):
            columns[place] = Layer(name.rpartition(".")[2], not features[0].startswith("ROLE_"))
        place += len(features)
    return columns


def custom_layers(path: Path) -> list[str]:
    """List a file's custom layers with labels, beside NamedEntity."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        head = [line.rstrip("\r\n") for line in takewhile(lambda line: line.startswith("#") or not line.strip(), file)]
    if not head or not head[0].startswith(FORMAT):
        return []
    layers = [layer.name for layer in _label_columns(_layers(head)).values()]
    return [name for name in layers if name != NAMED_ENTITY] if NAMED_ENTITY in layers else []


class OffsetText:
    r"""A document's text, joined from its sentences, and the code point of each offset in the file.

    A gap between sentences is a line end and spaces. In a file whose offsets count UTF-16 code units, an emoji is two:

    >>> emoji = Sentence("😀 Ann", [TokenRow(1, 0, 2, "😀", []), TokenRow(2, 3, 6, "Ann", [])])
    >>> joined = OffsetText([emoji, Sentence("Bob", [TokenRow(4, 8, 11, "Bob", [])])], utf16=True)
    >>> joined.text, joined.places
    ('😀 Ann\n Bob', {0: 0, 2: 1, 3: 2, 6: 5, 8: 7, 11: 10})
    """

    def __init__(self, sentences: Sequence[Sentence], *, utf16: bool) -> None:
        """Join sentences; raise a MalformedError if they overlap, or tokens aren't at their offsets."""
        self.text = ""
        self._utf16 = utf16
        self._length = self._spaces = 0  # the length as the file counts
        for sentence in sentences:
            self._add(sentence)
        table = [*offset_table(self.text, ("utf-16",) if utf16 else ()), len(self.text)]
        self.places: dict[int, int] = {}
        for row in (row for sentence in sentences for row in sentence.rows):
            fits = row.start <= row.end < len(table)
            if not fits or self.text[table[row.start] : table[row.end]] != row.form:
                raise MalformedError(row.line, f"{row.form!r} isn't at {row.start}-{row.end}")
            self.places |= {row.start: table[row.start], row.end: table[row.end]}

    def _add(self, sentence: Sentence) -> None:
        first = sentence.rows[0]
        before = max(sentence.text.find(first.form), 0)
        gap = first.start - before - self._length
        if gap < 0:
            raise MalformedError(first.line, f"its offset {first.start} is in the sentence before")
        self._spaces += gap
        if self._spaces > MAX_SPACES:
            raise MalformedError(first.line, f"its offset {first.start} is {gap:,} after the sentence before")
        between = "\n" + " " * (gap - 1) if self.text and gap else " " * gap
        self.text += between + sentence.text
        width = len(sentence.text.encode("utf-16-le")) // 2 if self._utf16 else len(sentence.text)
        self._length = first.start - before + width


def _join(sentences: Sequence[Sentence]) -> OffsetText:
    try:
        return OffsetText(sentences, utf16=True)
    except MalformedError as error:
        try:
            return OffsetText(sentences, utf16=False)
        except MalformedError:
            raise error from None


def _spans(
    columns: dict[int, Layer], rows: Sequence[TokenRow], places: dict[int, int]
) -> tuple[list[RawSpan], list[Problem]]:
    """Return the spans of the label columns, and problems; rows with the same number are one span."""
    spans: dict[tuple[int, str], RawSpan] = {}
    problems = []
    for row in rows:
        for column, layer in columns.items():
            if column >= len(row.features):
                problems.append(Problem(row.line, Reason.INVALID, f"no column for {layer.name}"))
                continue
            cell = row.features[column]
            for place, written in enumerate(STACKED.findall(cell) if cell not in EMPTY else ()):
                match = VALUE.fullmatch(written)
                if match is None:
                    why = f"{written!r}: a [, ] or \\ that belongs to a value has a \\ before it"
                    problems.append(Problem(row.line, Reason.INVALID, why))
                    continue
                value, number = match.groups()
                start, end = places[row.start], places[row.end]
                label = unescape(value) if layer.valued and value not in ("*", *EMPTY) else layer.name
                span = spans.setdefault((column, number or f"{row.line}.{place}"), RawSpan(start, end, label))
                span.start, span.end = min(span.start, start), max(span.end, end)
    return list(spans.values()), problems
