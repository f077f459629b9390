"""Read brat standoff annotation: every `T` line becomes a span of a task, or a located problem.

A document is `name.txt` with `name.ann`, or with `name.a1` and `name.a2`. A text-bound annotation is a line

    T1<TAB>Reagent 150 157;160 170<TAB>sodium chloride

with id, label, `start end` fragments, and the mention, white space folded (https://brat.nlplab.org/standoff.html).

1. The text is read without newline translation. Offsets count code points, as brat writes them; where the mentions
   contradict that, by the reading that fits most mentions of the document (`offsets.BRAT_READINGS`).
2. A line is split at its first two tabs only: mentions can contain tabs.
3. Fragments are sorted, and joined where only white space lies between them (brat breaks spans at line ends).
4. White space at the edges of a span is trimmed.
5. An export lists its documents in PREDICTED.json, with the digests of their annotation files. A document is a
   prediction until that file changes. To accept predictions as they are, delete their lines, or the list:

    {"batch/one.ann": "b5bb9d80…", "batch/two.ann": "7d865e95…"}     (relative to the folder of the list)
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from labelwise.annotations import Problem, Reason, Span, Task
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, counter_field, trim
from labelwise.sources.files import check_fetched, find_files, printable, read_file
from labelwise.sources.offsets import (
    Fragments,
    OffsetTable,
    choose_reading,
    join,
    last_end,
    nearest_occurrence,
    says,
    to_code_points,
)

SUFFIXES = (".ann", ".a1", ".a2")
DOCUMENT_SUFFIXES = (".txt", *SUFFIXES, ".TXT", *(suffix.upper() for suffix in SUFFIXES))
PREDICTIONS = "PREDICTED.json"
READ_SUFFIXES = (*DOCUMENT_SUFFIXES, PREDICTIONS)
MAX_QUOTED = 200  # of a quoted line
MALFORMED = "not `ID<TAB>LABEL START END[;START END...]<TAB>MENTION` with START <= END"
EMPTY = "empty, or white space alone"
KINDS = "TERAMN#*"  # text-bound, event, relation, attribute (A, M), normalization, note, equivalence

Discontinuous = Literal["drop", "first", "cover"]
Shifted = Literal["drop", "nearest"]
MissingAnn = Literal["skip", "empty"]
EmptyAnn = Literal["", "empty", "skip"]
FoldersAre = Literal["ask", "annotators", "labels", "versions"]

# Offsets of up to nine digits: a text is shorter than a gigabyte.
T_LINE = re.compile(r"T\S*\t(\S+)\s+(\d{1,9}\s+\d{1,9}(?:\s*;\s*\d{1,9}\s+\d{1,9})*)\s*(?:\t(.*))?", re.DOTALL)
LINE_END, CR = re.compile(rb"\n|\r(?=[TERAMN#*]\S*\t)"), re.compile(rb"\r")
BLANK_IN_LABEL = re.compile(r"T\S*\t([^\W\d]\S*(?: [^\W\d]\S*)+) \d+ \d+\b")


class BratOptions(msgspec.Struct, frozen=True):
    """Options for reading a brat corpus: the section `brat` of project.yml (docs/settings.md)."""

    split: Literal["folder", "auto", "train", "dev", "test"] = "folder"
    rename: dict[str, str] = {}
    labels: list[str] = []
    missing_ann: MissingAnn = "skip"
    empty_ann: EmptyAnn = ""
    discontinuous: Discontinuous = "drop"
    shifted: Shifted = "drop"
    encoding: str = "utf-8"
    folders: FoldersAre = "ask"
    duplicates: Literal["", "latest", "union"] = ""
    expect_losses: bool = False


DEFAULTS = BratOptions()


class Document(msgspec.Struct):
    """A text with its spans, and the outcome of each line of its annotation files.

    path (str): path of the text relative to the root, with `/` on every machine.
    task (Task | None): None without a text, or without an annotation file. Equal spans are kept.
    problems (list[Problem]): files and lines that aren't in the task, with places.
    lines (Counter[str]): lines by kind: the characters of KINDS, "blank" and "stray".
    notes (Counter[str]): spans not converted as written: "trimmed", "joined", "moved", "made one", "unverified"; and
        "reading: NAME" once for a document whose offsets aren't plain code points.
    labels (Counter[str]): of all well-formed T lines, as written; none without a text, nor of predictions.
    used (set[str]): suffixes of annotation files with wanted labels.
    """

    path: str
    task: Task | None = None
    problems: list[Problem] = []
    lines: Counter[str] = counter_field()
    notes: Counter[str] = counter_field()
    labels: Counter[str] = counter_field()
    suffixes: tuple[str, ...] = ()
    used: set[str] = set()

    @property
    def annotated(self) -> bool:
        """Return whether its task is gold, not a prediction."""
        return self.task is not None and not self.task.predicted

    @property
    def empty(self) -> bool:
        """Return whether it is annotated by empty files."""
        return self.annotated and bool(self.suffixes) and self.lines.keys() <= {"blank"}


def find_documents(root: Path) -> list[Path]:
    """List the documents under a folder, sorted, as paths without suffix; an .ann without a text counts.

    RAISES (InputError): if a folder is missing or unreadable, or DVC hasn't fetched it.
    """
    check_fetched(root, root.parent)
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder; give the one that holds your brat corpus")
    stems = {file.with_suffix("") for file in find_files(root, DOCUMENT_SUFFIXES)}
    return sorted(stems, key=lambda stem: stem.relative_to(root).parts)


def digest_of(content: bytes) -> str:
    """Digest an annotation file, as in a list of predictions."""
    return hashlib.sha256(content).hexdigest()


def find_predicted(root: Path) -> dict[Path, str]:
    """Read a folder's lists of predictions, recursively: digests of annotation files."""
    digests_of: dict[Path, str] = {}
    for file in find_files(root, (PREDICTIONS,)):
        try:
            digests = msgspec.json.decode(read_file(file), type=dict[str, str])
        except DECODE_ERRORS as error:
            raise InputError(
                f"{printable(file)}: not a list of predictions ({error}); export them again, or delete it, which "
                "accepts them all"
            ) from error
        digests_of |= {file.parent / name: digest for name, digest in digests.items()}
    return digests_of


def read_document(stem: Path, root: Path, how: BratOptions = DEFAULTS, predicted: Mapping[Path, str] = {}) -> Document:
    """Read a document: each T line is in the task or in `problems`."""
    name = printable(stem.relative_to(root))
    document = Document(f"{name}.txt")
    text, files, failed = _read_files(stem, how)
    if failed:
        document.problems.append(Problem(0, failed.row, failed.why, name + failed.suffix))
    else:
        document.suffixes = tuple(files)
    mentions = []
    for suffix, content in files.items():
        for number, raw in enumerate(split_lines(content), 1):
            line = _Line(name + suffix, number, raw, how.encoding)
            kind, parsed = _parse_line(line, how, document.labels)
            document.lines[kind] += 1
            if failed and kind == "T":
                parsed = line.problem(failed.span, failed.why)
            if isinstance(parsed, _Mention):
                mentions.append(parsed)
                document.used.add(suffix)
            elif parsed:
                document.problems.append(parsed)
    if failed:
        document.labels.clear()
        return document
    spans = _locate_all(document, text, mentions, how)
    digest = predicted.get(stem.with_name(stem.name + ".ann"))
    unchanged = digest is not None and ".ann" in files and digest == digest_of(files[".ann"])
    if text.startswith("\ufeff"):  # a byte order mark; brat counts it
        text = f" {text[1:]}"
    document.task = Task(0, text, spans, predicted=unchanged, doc=document.path)
    if unchanged:
        document.labels.clear()
    return document


class _Failure(NamedTuple):
    """Why a document can't be converted, and the outcomes of it and its T lines."""

    suffix: str
    row: Reason
    why: str
    span: Reason = Reason.INVALID


def _read_files(stem: Path, how: BratOptions) -> tuple[str, dict[str, bytes], _Failure | None]:
    """Return a document's text, its annotation files by suffix, and a failure, if any."""
    files: dict[str, bytes] = {}
    text, failed = "", None
    for suffix in (".txt", *SUFFIXES):
        content, why = _read(stem, suffix)
        if why:
            failed = _Failure(suffix, Reason.MALFORMED, why)
        elif content is not None and suffix != ".txt":
            files[suffix] = content
        elif content is not None:
            try:
                text = content.decode(how.encoding)
            except UnicodeDecodeError:
                failed = _Failure(suffix, Reason.MALFORMED, _not(how), Reason.NOT_DECODABLE)
    skipped = (how.empty_ann if files else how.missing_ann) == "skip" and not any(map(bytes.strip, files.values()))
    if skipped and (not failed or failed.suffix == ".txt"):
        why = "an empty annotation file" if files else "no annotation file"
        failed = _Failure(".txt", Reason.NOT_ANNOTATED, why)
    elif not failed and not text.strip():
        failed = _Failure(".txt", Reason.NO_TEXT, "no .txt beside it, or an empty one")
    return text, files, failed


def _not(how: BratOptions) -> str:
    return f"not {how.encoding}; declare the files' `encoding` in the section brat of project.yml"


def _read(stem: Path, suffix: str) -> tuple[bytes | None, str]:
    """Return a file's content, or why it can't be read."""
    try:
        content = read_file(find_suffix(stem, suffix))
    except FileNotFoundError:
        return None, ""
    except InputError:
        return None, "a broken link, a folder, or not readable"
    # UTF-16 has a mark; or every other byte of Latin letters is zero there.
    begin = content[:1000]
    utf16 = begin.startswith((b"\xff\xfe", b"\xfe\xff")) or 4 * begin.count(0) > len(begin)
    return (None, "UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8") if utf16 else (content, "")


def find_suffix(stem: Path, suffix: str) -> Path:
    """Return the path of a document's file, its suffix maybe in capitals."""
    lower, upper = (stem.with_name(stem.name + ending) for ending in (suffix, suffix.upper()))
    return upper if upper.exists() and not lower.exists() else lower


class _Line:
    def __init__(self, file: str, number: int, raw: bytes, encoding: str) -> None:
        self.file, self.number, self.decodable = file, number, True
        try:
            row = raw.decode(encoding)
        except UnicodeDecodeError:
            row, self.decodable = raw.decode(encoding, "backslashreplace"), False
        self.row = row.rstrip("\r\n").removeprefix("\ufeff")

    def problem(self, reason: Reason, why: str = "") -> Problem:
        quoted = repr(self.row[:MAX_QUOTED])
        return Problem(self.number, reason, f"{why}: {quoted}" if why else quoted, self.file)


class _Mention(NamedTuple):
    line: _Line
    label: str
    fragments: Fragments
    quoted: str | None


def _locate_all(document: Document, text: str, mentions: list[_Mention], how: BratOptions) -> tuple[Span, ...]:
    table, reading = choose_reading(text, [(mention.fragments, mention.quoted) for mention in mentions])
    if reading:
        document.notes["reading: " + reading] += 1
    spans = []
    for mention in mentions:
        located = _to_span(text, table, mention, how, document.notes)
        if isinstance(located, Span):
            spans.append(located)
        else:
            document.problems.append(located)
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, span.label)))


def split_lines(content: bytes) -> list[bytes]:
    """Split bytes at LF, and at CR before an annotation (without LF, at each CR), but not at U+2028."""
    lines = (LINE_END if b"\n" in content else CR).split(content)
    return lines if lines[-1] else lines[:-1]


def _parse_line(line: _Line, how: BratOptions, labels: Counter[str]) -> tuple[str, _Mention | Problem | None]:
    """Return a line's kind, and its mention or problem, if any; count the labels of well-formed T lines."""
    row = line.row
    if not line.decodable:
        return "T", line.problem(Reason.NOT_DECODABLE, _not(how))  # it may have been a T line
    if not row.strip():
        return "blank", None
    kind = row[0]
    if kind not in KINDS or "\t" not in row:
        named = ("T", MALFORMED) if kind == "T" and row[1:2].isdigit() else ("stray", "not an annotation")
        return named[0], line.problem(Reason.INVALID, named[1])
    if kind != "T":
        return kind, None
    match = T_LINE.fullmatch(row)
    if not match:
        blank = BLANK_IN_LABEL.match(row)
        why = f"a blank in a label; write {blank[1].replace(' ', '_')}" if blank else MALFORMED
        return "T", line.problem(Reason.INVALID, why)
    written, offsets, quoted = match.groups()
    labels[written] += 1
    label = how.rename.get(written, written)
    if how.labels and label not in how.labels:
        return "T", line.problem(Reason.OTHER_LABEL)
    fragments = sorted((int(start), int(end)) for start, end in (piece.split() for piece in offsets.split(";")))
    if any(start > end for start, end in fragments):
        return "T", line.problem(Reason.INVALID, MALFORMED)
    # Some tools write empty fragments next to others.
    fragments = [fragment for fragment in fragments if fragment[0] < fragment[1]]
    return "T", _Mention(line, label, fragments, quoted) if fragments else line.problem(Reason.INVALID, EMPTY)


def _to_span(
    text: str, table: OffsetTable | None, mention: _Mention, how: BratOptions, notes: Counter[str]
) -> Span | Problem:
    line = mention.line
    written = fragments = to_code_points(text, mention.fragments, table)
    if not says(text, written, mention.quoted):
        nearest = None
        if how.shifted == "nearest" and len(written) == 1 and mention.quoted:
            nearest = nearest_occurrence(text, mention.quoted, written[0][0])
        if nearest is None:
            past = "past the end of the text" if last_end(written) > len(text) else ""
            return line.problem(Reason.MENTION_DIFFERS, past)
        fragments = [nearest]
    pieces = join(text, fragments)
    if len(pieces) > 1 and how.discontinuous == "drop":
        return line.problem(Reason.DISCONTINUOUS)
    first, last = pieces[0][0], pieces[0 if how.discontinuous == "first" else -1][1]
    start, end = trim(text, first, last)
    if start == end:
        return line.problem(Reason.INVALID, EMPTY)
    notes["moved"] += fragments != written
    notes["unverified"] += mention.quoted is None
    notes["joined"] += len(pieces) < len(fragments)
    notes["made one"] += len(pieces) > 1
    notes["trimmed"] += (start, end) != (first, last)
    return Span(start, end, mention.label, file=line.file, line=line.number)
