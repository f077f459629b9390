r"""Read WebAnno TSV 3, which INCEpTION and WebAnno export: a file is a document, and becomes one text.

    #FORMAT=WebAnno TSV 3.3
    #T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value

    #Text=Ann moved to New York .
    1-1	0-3	Ann	_	PER
    1-2	4-9	moved	_	_
    1-3	10-12	to	_	_
    1-4	13-16	New	_	LOC[1]
    1-5	17-21	York	_	LOC[1]
    1-6	22-23	.	_	_

- The labels are the `value` of NamedEntity, and the first feature of each span layer of a project's own: any but those
  of DKPro Core. Where a span has no such value, its label is the layer's name.
- A value has the number of its annotation behind it, `[1]`, if that has several tokens or stands on others, which are
  separated by `|`: `LOC[2]|ORG[3]`. Rows such as `1-4.1` are parts of tokens.
- `\` escapes special characters in `#Text=` and in values, as INCEpTION's class `Escaping` writes them; a value that
  has one without isn't what anybody chose, so it is a problem. INCEpTION doesn't escape tokens; other writers do.
- Offsets are UTF-16 code units; some writers count code points, which the text at the offsets tells.
- The file lacks the characters between sentences: here they are a line end and spaces.
- In an export, a document is a folder, which names it, and a file of it an annotator's; INITIAL_CAS is the
  document before anyone annotated it.

The format is in the appendix of INCEpTION's user guide: https://inception-project.github.io/documentation/
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.sources.brat_offsets import offset_table
from labelwise.sources.items import Item, miscounted
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

ENTITIES, DKPRO = ".NamedEntity", "de.tudarmstadt.ukp.dkpro.core."
INITIAL = "INITIAL_CAS"
OFFSETS = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
MOST_SPACES = 2**20  # between sentences, which the file lacks
EMPTY = ("_", "")  # a cell without annotations
STACKED = re.compile(r"(?:\\.|[^|])+", re.DOTALL)
VALUE = re.compile(r"((?:\\.|[^\\|\[\]])*)(?:\[([0-9]+)\])?", re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}


class Layer(NamedTuple):
    """A layer of spans: its name, and whether the values of its column are labels."""

    name: str
    valued: bool


class TokenRow(NamedTuple):
    """A token, or a part of one: the line that it is in, offsets as written, and the columns of features."""

    line: int
    start: int
    end: int
    form: str
    features: list[str]


class Sentence(NamedTuple):
    """A sentence as it is written, and its rows."""

    text: str
    rows: list[TokenRow]


def read_webanno(path: Path) -> Iterator[Item]:
    """Yield the document of a file as a task, or the line that can't be read as a problem."""
    try:
        columns, written = _parse(path.read_text(encoding="utf-8-sig").split("\n"))
        sentences = [sentence for sentence in written if sentence.rows]
        text, starts = _join(sentences)
    except UnicodeDecodeError as error:
        yield Item(0, None, f"malformed: not UTF-8 ({error.reason})")
    except MalformedError as error:
        yield Item(error.line, None, f"malformed: {error}")
    else:
        if not text.strip():
            yield Item(1, None, "no text")
            return
        if path.stem == INITIAL:
            yield Item(1, None, f"not annotated: {INITIAL} is the document before anyone annotated it")
            return
        in_folder = "." in path.parent.name  # such as a.txt/ann.tsv
        rows = [row for sentence in sentences for row in sentence.rows]
        spans, problems = _spans(columns, rows, starts)
        task = Task(text, spans, view_id="spans_manual")
        task.annotator_id = path.stem if in_folder else None
        task.meta = {DOCUMENT: path.parent.name if in_folder else path.name}
        yield Item(1, task)
        yield from problems
        if len(sentences) < len(written):
            yield miscounted(0, len(written), "sentences", len(sentences))


class MalformedError(ValueError):
    """A line isn't of the format.

    line (int): its number.
    """

    def __init__(self, line: int, why: str) -> None:
        """Take the line and why."""
        super().__init__(why)
        self.line = line


def _parse(lines: Sequence[str]) -> tuple[dict[int, Layer], list[Sentence]]:
    """Find the columns that have labels, each with its layer, and the sentences; the last may lack rows.

    RAISES (MalformedError): a line isn't of the format.
    """
    if not lines[0].startswith("#FORMAT=WebAnno TSV 3"):
        raise MalformedError(1, "it doesn't begin with #FORMAT=WebAnno TSV 3; export as WebAnno TSV v3")
    layers: list[tuple[str, list[str]]] = []
    sentences: list[Sentence] = []
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        if line.startswith(("#T_SP=", "#T_CH=", "#T_RL=")):
            name, *features = line.partition("=")[2].split("|")
            layers.append((name if line.startswith("#T_SP") else "", features or [""]))
        elif line.startswith("#Text="):
            text = unescape(line.removeprefix("#Text="))
            if sentences and not sentences[-1].rows:  # a sentence of several lines
                sentences[-1] = Sentence(f"{sentences[-1].text}\n{text}", [])
            else:
                sentences.append(Sentence(text, []))
        elif line.strip() and not line.startswith("#"):
            if not sentences:
                raise MalformedError(number, "a token before the first #Text=")
            sentences[-1].rows.append(_parse_row(number, line, sentences[-1].text))
    return _label_columns(layers), [sentence for sentence in sentences if sentence.rows or sentence.text.strip()]


def _parse_row(number: int, line: str, sentence: str) -> TokenRow:
    cells = line.split("\t")
    offsets = OFFSETS.fullmatch(cells[1]) if len(cells) > 2 else None
    if offsets is None:
        raise MalformedError(number, "no token with its offsets")
    form = cells[2] if "\\" not in cells[2] or cells[2] in sentence else unescape(cells[2])
    return TokenRow(number, int(offsets[1]), int(offsets[2]), form, cells[3:])


def unescape(text: str) -> str:
    r"""Read `\t` as a tab, and so on, and other characters after a `\` as they are."""
    return ESCAPED.sub(lambda match: ESCAPES.get(match[1], match[1]), text)


def _label_columns(layers: Sequence[tuple[str, list[str]]]) -> dict[int, Layer]:
    """Choose the columns of features that have labels, each with its layer."""
    columns: dict[int, Layer] = {}
    place = 0
    for name, features in layers:
        if name.endswith(ENTITIES):
            valued = "value" in features
            columns[place + (features.index("value") if valued else 0)] = Layer("NamedEntity", valued)
        elif name and not name.startswith(DKPRO):
            columns[place] = Layer(name.rpartition(".")[2], not features[0].startswith("ROLE_"))
        place += len(features)
    return columns


def _join(sentences: Sequence[Sentence]) -> tuple[str, dict[int, int]]:
    """Put the sentences together as their offsets say.

    RETURNS (tuple): the text, and the place of each offset that is written, in code points.
    RAISES (MalformedError): sentences overlap, or tokens aren't at their offsets, however they are counted.
    """
    errors = []
    for utf16 in (True, False):
        try:
            return _join_by(sentences, utf16=utf16)
        except MalformedError as error:
            errors.append(error)
    raise errors[0]


def _join_by(sentences: Sequence[Sentence], *, utf16: bool) -> tuple[str, dict[int, int]]:
    text, length, spaces = "", 0, 0  # the length in the file's units
    for sentence in sentences:
        first = sentence.rows[0]
        before = max(sentence.text.find(first.form), 0)
        gap = first.start - before - length
        if gap < 0:
            raise MalformedError(first.line, f"its offset {first.start} is in the sentence before")
        spaces += gap
        if spaces > MOST_SPACES:
            raise MalformedError(first.line, f"its offset {first.start} is {gap:,} behind the sentence before")
        text += ("\n" if text and gap else "") + " " * (gap - bool(text and gap)) + sentence.text
        length = first.start - before + (len(sentence.text.encode("utf-16-le")) // 2 if utf16 else len(sentence.text))
    table = [*offset_table(text, ["utf16"] if utf16 else []), len(text)]
    places: dict[int, int] = {}
    for row in (row for sentence in sentences for row in sentence.rows):
        if not row.start <= row.end < len(table) or text[table[row.start] : table[row.end]] != row.form:
            raise MalformedError(row.line, f"{row.form!r} isn't at {row.start}-{row.end}")
        places |= {row.start: table[row.start], row.end: table[row.end]}
    return text, places


def _spans(
    columns: dict[int, Layer], rows: Sequence[TokenRow], places: dict[int, int]
) -> tuple[list[TaskSpan], list[Item]]:
    """Collect the annotations of the columns that have labels: the rows with the same number are one.

    RETURNS (tuple): the spans, and the problems.
    """
    found: dict[tuple[int, str], TaskSpan] = {}
    problems = []
    for row in rows:
        for column, layer in columns.items():
            if column >= len(row.features):
                problems.append(Item(row.line, None, f"invalid: no column for {layer.name}"))
                continue
            cell = row.features[column]
            for place, written in enumerate(STACKED.findall(cell) if cell not in EMPTY else ()):
                match = VALUE.fullmatch(written)
                if match is None:
                    why = "a [, ] or \\ that belongs to a value has a \\ before it"
                    problems.append(Item(row.line, None, f"invalid: {written!r}: {why}"))
                    continue
                value, number = match.groups()
                start, end = places[row.start], places[row.end]
                label = unescape(value) if layer.valued and value not in ("*", *EMPTY) else layer.name
                span = found.setdefault((column, number or f"{row.line}.{place}"), TaskSpan(start, end, label))
                span.start, span.end = min(span.start, start), max(span.end, end)
    return list(found.values()), problems
