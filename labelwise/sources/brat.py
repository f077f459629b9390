"""Read brat standoff annotation: every `T` line becomes one span or one counted, located problem.

A document is `name.txt` with `name.ann`, or with `name.a1` and `name.a2`. A text-bound annotation is one line of it:

    T1<TAB>Reagent 150 157;160 170<TAB>sodium chloride

that is, an id, a label, one or more `start end` fragments, and the mention as the annotator saw it, white space folded.
The format: https://brat.nlplab.org/standoff.html

1. The text is read without newline translation. Offsets count code points, as brat writes them; where the mentions say
   otherwise, the reading counts that most mentions of the document agree with (`offsets.BRAT_READINGS`).
2. A line is split at its first two tabs only: mentions can contain tabs.
3. Fragments are sorted, and joined where only white space lies between them (brat breaks spans at line ends).
   The policy `discontinuous` decides about mentions that are still in several pieces.
4. The policy `shifted` decides about mentions that aren't at their offsets.
5. White space at the edges of a span is trimmed by moving the offsets.
6. An export lists its documents in PREDICTED.json, with the digests of their annotation files. A document is a
   prediction until somebody changes that file. To accept predictions as they are, delete their lines, or the list:

    {"batch/one.ann": "b5bb9d80…", "batch/two.ann": "7d865e95…"}     (relative to the folder of the list)
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from labelwise.annotations import Span
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
KINDS = "TERAMN#*"  # text-bound, event, relation, attribute (A, M), normalization, note, equivalence

Discontinuous = Literal["drop", "first", "cover"]
Shifted = Literal["drop", "nearest"]
MissingAnn = Literal["skip", "empty"]
FoldersAre = Literal["ask", "annotators", "labels", "versions"]

# The reasons for which a T line isn't converted.
NOT_CONVERTED = {
    "no text": "the annotation file has no .txt beside it, or an empty one",
    "not readable": "the text or an annotation file is a broken link, a folder, or not readable",
    "UTF-16": "the text or an annotation file is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8",
    "not decodable": "the text or the line isn't valid in the given encoding",
    "prediction": "nobody has changed the annotation file since it was exported; see PREDICTED.json",
    "malformed": "not `ID<TAB>LABEL START END[;START END...]<TAB>MENTION` with START <= END",
    "other label": "the label isn't among those asked for",
    "out of range": "the span ends past the end of the text",
    "mention differs": "the text at the offsets isn't the quoted mention",
    "white space": "the span is empty, or has no character that isn't white space",
    "discontinuous": "the span has several pieces",
    "duplicate": "same label and offsets as an earlier line of the document",
}

# The option of BratOptions that decides, where one does.
DECIDED_BY = {
    "discontinuous": "discontinuous",
    "mention differs": "shifted",
    "out of range": "shifted",
    "no annotation file": "missing_ann",
    "other label": "labels",
    "not decodable": "encoding",
}

# Offsets of up to nine digits: a text is shorter than a gigabyte.
T_LINE = re.compile(r"T\S*\t(\S+)\s+(\d{1,9}\s+\d{1,9}(?:\s*;\s*\d{1,9}\s+\d{1,9})*)\s*(?:\t(.*))?", re.DOTALL)
LINE_END, CR = re.compile(rb"\n|\r(?=[TERAMN#*]\S*\t)"), re.compile(rb"\r")


class BratOptions(msgspec.Struct, frozen=True):
    """How a brat corpus is read: the section `brat` of project.yml.

    split (str): that of all texts; "auto" by hash; "folder": folders train, dev and test are those splits, and other
        texts go by hash.
    rename (Mapping[str, str]): new names of labels.
    labels (list[str]): the labels to keep, by their new names; none keeps all.
    missing_ann (str): a text without an annotation file is not annotated ("skip") or has no entities ("empty").
    discontinuous (str): "drop" a span in pieces, keep its "first" piece, or "cover" from first to last character.
    shifted (str): "drop" a span whose mention differs, or move it to the "nearest" occurrence of the mention, if no
        other is equally near.
    folders (str): the meaning of folders with the same texts: "annotators", each of whom saw all labels; "labels", each
        annotated for its own; "versions", of which the last counts; "ask" refuses them.
    duplicates (str): that of the data sets; empty for that of the section `merge`.
    expect_losses (bool): go on, though most annotations can't be used.
    """

    split: Literal["folder", "auto", "train", "dev", "test"] = "folder"
    rename: dict[str, str] = {}
    labels: list[str] = []
    missing_ann: MissingAnn = "skip"
    discontinuous: Discontinuous = "drop"
    shifted: Shifted = "drop"
    encoding: str = "utf-8"
    folders: FoldersAre = "ask"
    duplicates: Literal["", "latest", "union"] = ""
    expect_losses: bool = False


DEFAULTS = BratOptions()


class BratProblem(NamedTuple):
    """A line, or a whole file (line 0), that wasn't converted as it is written."""

    file: str
    line: int
    reason: str
    row: str


class Document(msgspec.Struct):
    """One text with its spans, and the outcome of each line of its annotation files.

    path (str): path of the text relative to the root, with `/` on every machine.
    text (str | None): None without a text, or without an annotation file.
    lines (Counter[str]): lines read by kind: the characters of KINDS, "blank" and "stray".
    notes (Counter[str]): spans not converted as written: "trimmed", "joined", "moved", "made one", "unverified"; and
        "reading: NAME" once for a document whose offsets aren't plain code points.
    labels (Counter[str]): those of all well-formed T lines, as written; none without a text.
    suffixes (tuple[str, ...]): those of its annotation files.
    used (set[str]): the suffixes of annotation files with labels that are asked for.
    """

    path: str
    text: str | None = None
    spans: list[Span] = []
    problems: list[BratProblem] = []
    lines: Counter[str] = counter_field()
    notes: Counter[str] = counter_field()
    labels: Counter[str] = counter_field()
    suffixes: tuple[str, ...] = ()
    used: set[str] = set()


def find_documents(root: Path) -> list[Path]:
    """List the documents under a folder, sorted, as paths without suffix; an .ann without a text counts, too.

    RAISES (InputError): there is no such folder, or one in it can't be read, or DVC hasn't fetched it.
    """
    check_fetched(root, root.parent)
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder; give the one that holds your brat corpus")
    stems = {file.with_suffix("") for file in find_files(root, DOCUMENT_SUFFIXES)}
    return sorted(stems, key=lambda stem: stem.relative_to(root).parts)


def digest_of(content: bytes) -> str:
    """Return the digest of an annotation file, as a list of predictions has it."""
    return hashlib.sha256(content).hexdigest()


def find_predicted(root: Path) -> dict[Path, str]:
    """Read the lists of predictions in a folder and below it: the digests of annotation files.

    RAISES (InputError): a list can't be read.
    """
    found: dict[Path, str] = {}
    for file in find_files(root, (PREDICTIONS,)):
        try:
            digests = msgspec.json.decode(read_file(file), type=dict[str, str])
        except DECODE_ERRORS as error:
            raise InputError(
                f"{printable(file)}: not a list of predictions ({error}); export them again, or delete it, which "
                "accepts them all"
            ) from error
        found |= {file.parent / name: digest for name, digest in digests.items()}
    return found


def read_document(stem: Path, root: Path, how: BratOptions = DEFAULTS, predicted: Mapping[Path, str] = {}) -> Document:
    """Read one document.

    stem (Path): path without suffix, from `find_documents`.
    root (Path): the folder that the document's path is relative to.
    predicted (Mapping[Path, str]): the digests of annotation files with predictions that nobody has changed.
    RETURNS (Document): each T line is in `spans` or in `problems`.
    """
    name = printable(stem.relative_to(root))
    document = Document(f"{name}.txt")
    text, files, failed = _read_files(stem, how, predicted)
    if failed:
        document.problems.append(BratProblem(name + failed[0], 0, failed[1], ""))
    else:
        document.text, document.suffixes = text, tuple(files)
    mentions = []
    for suffix, content in files.items():
        for number, line in enumerate(split_lines(content), 1):
            try:
                row = line.decode(how.encoding).rstrip("\r\n").removeprefix("\ufeff")
            except UnicodeDecodeError:
                row = None
            place = BratProblem(name + suffix, number, "", row or "")
            kind, found = _parse_line(row, place, how, document.labels)
            document.lines[kind] += 1
            if failed and kind == "T":
                found = failed[1]
            if isinstance(found, _Mention):
                mentions.append(found)
                document.used.add(suffix)
            elif found:
                document.problems.append(place._replace(reason=found))
    if document.text is None:
        document.labels.clear()
    else:
        _locate_all(document, document.text, mentions, how)
    return document


def _read_files(
    stem: Path, how: BratOptions, predicted: Mapping[Path, str]
) -> tuple[str | None, dict[str, bytes], tuple[str, str] | None]:
    """Read the files of a document.

    RETURNS (tuple): the text, the annotation files by suffix, and the file that keeps the document from being
        converted, by its suffix, with the reason; None if it can be converted.
    """
    files: dict[str, bytes] = {}
    text, failed = None, None
    for suffix in (".txt", *SUFFIXES):
        content, problem = _read(stem, suffix)
        if content is not None and suffix != ".txt":
            files[suffix] = content
        elif content is not None:
            try:
                text = content.decode(how.encoding)
            except UnicodeDecodeError:
                problem = "not decodable"
        if problem:
            failed = suffix, problem
    digest = predicted.get(stem.with_name(stem.name + ".ann"))
    if not failed and not (text or "").strip():
        failed = ".txt", "no text"
    elif not failed and not files and how.missing_ann == "skip":
        failed = ".txt", "no annotation file"
    elif not failed and digest and ".ann" in files and digest == digest_of(files[".ann"]):
        failed = ".ann", "prediction"
    return text, files, failed


def _read(stem: Path, suffix: str) -> tuple[bytes | None, str]:
    """Return the content of a file of a document, whose suffix may be in capitals, or the reason why it has none."""
    lower, upper = (stem.with_name(stem.name + ending) for ending in (suffix, suffix.upper()))
    try:
        content = read_file(upper if upper.exists() and not lower.exists() else lower)
    except FileNotFoundError:
        return None, ""
    except InputError:
        return None, "not readable"
    # UTF-16 has a mark; or every other byte of Latin letters is zero there.
    begin = content[:1000]
    utf16 = begin.startswith((b"\xff\xfe", b"\xfe\xff")) or 4 * begin.count(0) > len(begin)
    return (None, "UTF-16") if utf16 else (content, "")


class _Mention(NamedTuple):
    """A well-formed T line, offsets as written, and its place, as a problem without a reason."""

    place: BratProblem
    label: str
    fragments: Fragments
    quoted: str | None


def _locate_all(document: Document, text: str, mentions: list[_Mention], how: BratOptions) -> None:
    """Turn the mentions of a document into spans and problems."""
    table, reading = choose_reading(text, [(mention.fragments, mention.quoted) for mention in mentions])
    if reading:
        document.notes["reading: " + reading] += 1
    seen = set()
    for mention in mentions:
        found = _to_span(text, table, mention, how, document.notes)
        if isinstance(found, Span) and (key := (found.start, found.end, found.label)) not in seen:
            seen.add(key)
            document.spans.append(found)
        else:
            reason = "duplicate" if isinstance(found, Span) else found
            document.problems.append(mention.place._replace(reason=reason))
    document.spans.sort(key=lambda span: (span.start, span.end, span.label))


def split_lines(content: bytes) -> list[bytes]:
    """Split bytes into lines: str.splitlines would also split at U+2028 and the like, which mentions contain.

    Without any LF, lines end in CR; beside LF, CR ends a line only where an annotation follows.
    """
    lines = (LINE_END if b"\n" in content else CR).split(content)
    return lines if lines[-1] else lines[:-1]


def _parse_line(
    row: str | None, place: BratProblem, how: BratOptions, found: Counter[str]
) -> tuple[str, _Mention | str | None]:
    """Return a line's kind, and its mention, or the reason why it has none; None for lines of other kinds.

    found (Counter[str]): counts the labels of well-formed T lines.
    """
    if row is None:
        return "T", "not decodable"  # it may have been a T line, so it is counted as one
    if not row.strip():
        return "blank", None
    kind = row[0]
    if kind not in KINDS or "\t" not in row:
        return ("T", "malformed") if kind == "T" and row[1:2].isdigit() else ("stray", "stray line")
    if kind != "T":
        return kind, None
    match = T_LINE.fullmatch(row)
    if not match:
        return "T", "malformed"
    written, offsets, quoted = match.groups()
    found[written] += 1
    label = how.rename.get(written, written)
    if how.labels and label not in how.labels:
        return "T", "other label"
    fragments = sorted((int(start), int(end)) for start, end in (piece.split() for piece in offsets.split(";")))
    if any(start > end for start, end in fragments):
        return "T", "malformed"
    # Some tools write empty fragments next to others.
    fragments = [fragment for fragment in fragments if fragment[0] < fragment[1]]
    return "T", _Mention(place, label, fragments, quoted) if fragments else "white space"


def _to_span(
    text: str, table: OffsetTable | None, mention: _Mention, how: BratOptions, notes: Counter[str]
) -> Span | str:
    """Turn a mention into a span, or return the reason why it can't be one."""
    written = fragments = to_code_points(mention.fragments, table)
    if not says(text, written, mention.quoted):
        nearest = None
        if how.shifted == "nearest" and len(written) == 1 and mention.quoted:
            nearest = nearest_occurrence(text, mention.quoted, written[0][0])
        if nearest is None:
            return "mention differs" if last_end(written) <= len(text) else "out of range"
        fragments = [nearest]
    pieces = join(text, fragments)
    if len(pieces) > 1 and how.discontinuous == "drop":
        return "discontinuous"
    first, last = pieces[0][0], pieces[0 if how.discontinuous == "first" else -1][1]
    start, end = trim(text, first, last)
    if start == end:
        return "white space"
    notes["moved"] += fragments != written
    notes["unverified"] += mention.quoted is None
    notes["joined"] += len(pieces) < len(fragments)
    notes["made one"] += len(pieces) > 1
    notes["trimmed"] += (start, end) != (first, last)
    return Span(start, end, mention.label, file=mention.place.file, line=mention.place.line)
