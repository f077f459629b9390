"""Keep other lines of brat documents, such as relations and notes, in an export to brat.

A line names others by id, and is kept if the corpus has all their spans:

    T1<TAB>Drug 0 7<TAB>aspirin        R1<TAB>Treats Arg1:T1 Arg2:T2     E1<TAB>Stop:T3 Who:T1
    A1<TAB>Negated E1                  N1<TAB>Reference T1 ATC:N02BA01   #1<TAB>AnnotatorNotes R1<TAB>sure?

1. Provenance names the documents of a text, and the line of each span. Each document is read again, to detect changes
   of text and spans since the merge.
2. A T line keeps its id and its words if the corpus has its span, and also if the reader made no span of it.
3. Other lines are left out if they name a span, or a line, that is gone.
4. A document superseded by a later one with the same text is unchanged.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.base.text import SpanKey, counted, form_of, trim
from labelwise.export.source import ExportDoc, Place, PlacedSpan
from labelwise.export.standoff import brat_label, standoff
from labelwise.sources.brat import (
    DEFAULTS,
    T_LINE,
    BratOptions,
    find_documents,
    find_suffix,
    read_document,
    split_lines,
)
from labelwise.sources.files import find_files, printable, read_file
from labelwise.sources.normalize import Move
from labelwise.sources.offsets import Fragments, choose_reading, join, last_end, to_code_points

MAX_NAMED = 3  # documents named in a message
APART = ("annotators", "labels")  # folders with separate spans
NUMBERED = re.compile(r"T([0-9]+)")


class Restored(NamedTuple):
    """A document to write back: its files by suffix, and omitted lines, each after its place."""

    stem: Path
    files: dict[str, bytes]
    left_out: list[tuple[str, str]]


class _Original(NamedTuple):
    """A document as it is now.

    same (bool): the text equals the corpus's, except for white space and Unicode composition.
    spans, merged (dict[Place, SpanKey]): its spans by line, with offsets in its own text, and in the corpus's.
    """

    name: str
    stem: Path
    text: str
    same: bool
    suffixes: tuple[str, ...]
    spans: dict[Place, SpanKey]
    merged: dict[Place, SpanKey]


class _Line(NamedTuple):
    """A line of an annotation file: place, bytes, and words ("" if undecodable)."""

    place: Place
    content: bytes
    row: str

    @property
    def id(self) -> str:
        return self.row.partition("\t")[0]

    def named(self) -> list[str]:
        words = self.row.split("\t")[1].split() if "\t" in self.row else []
        if self.row[0] in "RE":
            return [word.rpartition(":")[2] for word in words if ":" in word]
        if self.row[0] == "*":
            return words[1:]
        return words[1:2] if self.row[0] in "AMN#" else []


class Originals:
    """The brat documents of a corpus's spans.

    types (dict): types in the kept lines, by their first character: relations and events with their roles, attributes
        with their values.
    """

    def __init__(
        self, folder: Path | None = None, how: BratOptions = DEFAULTS, *, accept_changed: bool = False
    ) -> None:
        self.folder, self.how, self.accept_changed, self._given = folder or Path(), how, accept_changed, folder
        stems = find_documents(folder) if folder and folder.is_dir() else []
        self._stems = {printable(stem.relative_to(self.folder)): stem for stem in stems}
        attributes: dict[str, set[str]] = {}
        self.types: dict[str, dict[str, set[str]]] = {"R": {}, "E": {}, "A": attributes, "M": attributes}
        self._missing: list[str] = []
        self._changed: list[str] = []

    def check(self) -> None:
        """Refuse missing and changed documents among those restored so far, unless accepted."""
        where = f"not in {self._given}" if self._given else "not found"
        for names, what, remedy in (
            (self._missing, where, "give the folder by --originals"),
            (self._changed, "with another text or other spans than the merge read", "convert and merge again"),
        ):
            if names and not self.accept_changed:
                first = ", ".join([*sorted(names)[:MAX_NAMED], *["…"][: len(names) > MAX_NAMED]])
                raise InputError(
                    f"{first}: {counted(len(names), 'brat document')} {what}, so relations, events, attributes and "
                    f"notes would be lost; {remedy}, or drop them by --accept-changed"
                )

    def reserved(self) -> set[str]:
        """Return the names of all text files, by `caseless`; no other text may have them."""
        return {caseless(f"{name}.txt") for name in self._stems}

    def configs(self) -> list[Path]:
        """List brat's configuration files."""
        return find_files(self.folder, (".conf",)) if self._stems else []

    def restore(self, doc: ExportDoc) -> list[Restored]:
        """Return the documents of a text with unchanged text."""
        recorded: dict[str, dict[Place, PlacedSpan]] = {}
        for place, span in doc.places.items():
            recorded.setdefault(place[0].rpartition(".")[0], {})[place] = span
        if (stem := doc.name.removesuffix(".txt")) in self._stems:
            recorded.setdefault(stem, {})
        found, counting = [], []
        for name, read in sorted(recorded.items()):
            if not (original := self._read(name, doc.text)):
                self._missing.append(f"{name}.txt")
                continue
            expected = {place: span.key or original.merged.get(place) for place, span in read.items()}
            if not original.same or original.merged != expected:
                self._changed.append(f"{name}.txt")
            if original.same:
                found.append(original)
                if not read or any(span.counts for span in read.values()):
                    counting.append(original)
        accepted, usable = {*doc.spans}, {place: span.key is not None for place, span in doc.places.items()}
        counting = counting or found
        added = _share(accepted, counting, apart=self.how.folders in APART)
        restored = []
        for original in found:
            gone: set[SpanKey] = set()
            new: set[SpanKey] = set()
            if original in counting:
                new = added[counting.index(original)]
                lost = [place for place, key in original.merged.items() if key not in accepted]
                gone = {original.spans[place] for place in lost if usable.get(place, True)}
            restored.append(self._write(original, gone, new, doc.text))
        return restored

    def _read(self, name: str, text: str) -> _Original | None:
        """Read a document; None if it is missing or unannotated."""
        if not (stem := self._stems.get(name)):
            return None
        document = read_document(stem, self.folder, self.how)
        if not (task := document.task):
            return None
        spans = {(span.file, span.line): (span.start, span.end, span.label) for span in task.spans}
        same = form_of(task.text) == form_of(text)
        moved = _move(spans.values(), task.text, text) if same else ()
        merged = dict(zip(spans, moved, strict=same))
        return _Original(name, stem, task.text, same, document.suffixes, spans, merged)

    def _write(self, original: _Original, gone: Collection[SpanKey], added: Iterable[SpanKey], text: str) -> Restored:
        lines = {suffix: [*self._read_lines(original, suffix)] for suffix in original.suffixes or (".ann",)}
        every = [line for lines_of_file in lines.values() for line in lines_of_file]
        written = self._write_spans(original, every, gone)
        left_out = {place for place, row in written.items() if row is None}
        lost = {line.id for line in every if line.place in left_out}
        others = [line for line in every if line.row and line.place not in written]
        while more := [one for one in others if one.place not in left_out and not lost.isdisjoint(one.named())]:
            left_out |= {one.place for one in more}
            lost |= {one.id for one in more}
        last = max((int(found[1]) for line in every if (found := NUMBERED.fullmatch(line.id))), default=0)
        new = [
            standoff(original.text, span, last + number)
            for number, span in enumerate(sorted(_move(added, text, original.text)), 1)
        ]
        files = {".txt": read_file(find_suffix(original.stem, ".txt"))}
        for suffix, lines_of_file in lines.items():
            rows = [
                written.get(line.place) or self._rename_event(line)
                for line in lines_of_file
                if line.place not in left_out
            ]
            rows += [row.encode(self.how.encoding)[:-1] for row in new]
            files[suffix], new = b"".join(row + b"\n" for row in rows), []
        for line in others:
            if line.place not in left_out:
                self._add_type(line)
        beside = [(":".join(map(str, one.place)), one.row) for one in others if one.place in left_out]
        return Restored(original.stem.relative_to(self.folder), files, beside)

    def _read_lines(self, original: _Original, suffix: str) -> Iterator[_Line]:
        path = find_suffix(original.stem, suffix)
        for number, content in enumerate(split_lines(read_file(path)) if path.exists() else (), 1):
            try:
                row = content.decode(self.how.encoding).strip("\r\n\ufeff")
            except UnicodeDecodeError:
                row = ""
            yield _Line((f"{original.name}{suffix}", number), content, row)

    def _write_spans(
        self, original: _Original, lines: Iterable[_Line], gone: Collection[SpanKey]
    ) -> dict[Place, bytes | None]:
        """Write the T lines, by their places; None for a line whose span is gone."""
        text, rename, encoding = original.text, self.how.rename, self.how.encoding
        found = []
        for line, match in ((line, T_LINE.fullmatch(line.row)) for line in lines):
            numbers = (
                [(int(start), int(end)) for start, end in (one.split() for one in match[2].split(";"))] if match else ()
            )
            if match and (fragments := sorted(one for one in numbers if one[0] < one[1])):
                found.append((line, match, fragments))
        written_text = read_file(find_suffix(original.stem, ".txt")).decode(encoding)  # with its byte order mark
        table, _ = choose_reading(written_text, [(fragments, match[3]) for _, match, fragments in found])
        written: dict[Place, bytes | None] = {}
        for line, match, fragments in found:
            pieces = to_code_points(text, fragments, table)
            label = rename.get(match[1], match[1])
            span = original.spans.get(line.place)
            readings = self._said(text, pieces)
            if span in gone or any((*one, label) in gone for one in readings):  # duplicates, too
                written[line.place] = None
            elif span and span[:2] not in readings:  # the reader moved it
                written[line.place] = standoff(text, span, line.id[1:]).encode(encoding)[:-1]
            elif table or label != match[1]:
                where = ";".join(f"{start} {end}" for start, end in pieces)
                row = "\t".join((line.id, f"{brat_label(label)} {where}", *filter(None, [match[3]])))
                written[line.place] = row.encode(encoding)
            else:
                written[line.place] = line.content
        return written

    def _add_type(self, line: _Line) -> None:
        kind, words = line.row[0], line.row.split("\t")[1].split() if "\t" in line.row else []
        if kind not in self.types or not words:
            return
        roles = [role for role, colon, _ in (word.partition(":") for word in words[1:]) if colon]
        # The second argument with a role has a number, such as Theme2; an attribute may have a value.
        names = {"R": roles, "E": [role.rstrip("0123456789") for role in roles], "A": words[2:3], "M": words[2:3]}
        name = words[0].partition(":")[0] if kind == "E" else words[0]  # an event's has its trigger behind a colon
        self.types[kind].setdefault(name, set()).update(names[kind])

    def _said(self, text: str, fragments: Fragments) -> set[tuple[int, int]]:
        """Return the offsets that a reader may derive from fragments: first to last, or the first fragment."""
        if last_end(fragments) > len(text):
            return set()
        pieces = join(text, fragments)
        if len(pieces) > 1 and self.how.discontinuous == "drop":
            return set()
        return {trim(text, pieces[0][0], pieces[-1][1]), trim(text, *pieces[0])}

    def _rename_event(self, line: _Line) -> bytes:
        label = line.row.partition("\t")[2].partition(":")[0]
        if line.row[:1] != "E" or label not in self.how.rename:
            return line.content
        old, new = (f"\t{one}:".encode(self.how.encoding) for one in (label, brat_label(self.how.rename[label])))
        return line.content.replace(old, new, 1)


def _move(spans: Iterable[SpanKey], text: str, other: str) -> list[SpanKey]:
    """Move spans to a text that differs only in white space or Unicode composition; none if it differs more."""
    if text == other:
        return [*spans]
    move = Move(text, other)
    return [(*move.offsets(start, end)[0], label) for start, end, label in spans]


def _share(accepted: Collection[SpanKey], originals: list[_Original], *, apart: bool) -> list[set[SpanKey]]:
    """Choose the corpus spans of each document of a text; `apart`, a new one goes to the first with its label."""
    own = [{*original.merged.values()} for original in originals]
    if not apart:
        return [{*accepted} - spans for spans in own]
    added: list[set[SpanKey]] = [set() for _ in originals]
    for key in {*accepted}.difference(*own) if own else ():
        labels = [{label for *_, label in spans} for spans in own]
        added[next((n for n, some in enumerate(labels) if key[2] in some), 0)].add(key)
    return added
