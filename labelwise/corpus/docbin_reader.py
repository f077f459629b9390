"""Read a `.spacy` file as arrays; build each Doc on demand.

A Doc takes ten times the memory of its arrays. DocBin.get_docs adds a file's words to the vocabulary for good; with
single Docs, a memory zone frees them.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH, intify_attr
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from labelwise.base.errors import InputError
from labelwise.base.text import text_key
from labelwise.corpus.annotation import GOLD, INCORRECT, Annotation, SpanKey, annotate, decode_annotation, not_merged
from labelwise.corpus.manifest import Partition, find_partition, partitions_of, read_partition

MISSING, INSIDE, OUTSIDE, BEGIN = 0, 1, 2, 3  # spaCy's ENT_IOB
SPAN = struct.Struct(">QQQllll")  # id, knowledge base id, label, start and end in tokens and in characters
decode = msgspec.msgpack.Decoder().decode

TokenSpan = tuple[int, int, int]  # start and end in tokens, hash of the label


@dataclass(frozen=True, slots=True, eq=False)
class StoredDoc:
    """A text, with the annotation for training.

    iob, labels (np.ndarray): spaCy's ENT_IOB, 0 for a missing value, and hashes of ENT_TYPE.
    gold, rejected (list): aligned accepted and rejected spans, also nested ones, as (start, end, label hash), in
        tokens.
    strings (Mapping[int, str]): strings by hash, at least the file's.
    """

    words: np.ndarray
    spaces: np.ndarray
    iob: np.ndarray
    labels: np.ndarray
    gold: list[TokenSpan]
    rejected: list[TokenSpan]
    strings: Mapping[int, str]
    merged: Annotation | None

    def __len__(self) -> int:
        return len(self.words)

    @property
    def annotation(self) -> Annotation:
        """Return the annotation by a merge; refuse a text without one."""
        if self.merged is None:
            raise not_merged(self.text)
        return self.merged

    @property
    def text(self) -> str:
        """Return the text."""
        pairs = zip(self.words.tolist(), self.spaces.tolist(), strict=True)
        return "".join(self.strings[word] + (" " if space else "") for word, space in pairs)

    @property
    def key(self) -> str:
        """Return the text's key, in hexadecimal."""
        return text_key(self.text).hex()

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return start and end of each token, in characters."""
        lengths = np.array([len(self.strings[word]) for word in self.words.tolist()], int)
        ends = np.cumsum(lengths + self.spaces) - self.spaces
        return ends - lengths, ends

    def in_tokens(self, spans: Iterable[SpanKey]) -> list[tuple[int, int] | None]:
        """Return start and end of spans in tokens; None for a misaligned span."""
        starts, ends = (array.tolist() for array in self.offsets())
        first = {start: number for number, start in enumerate(starts)}
        last = {end: number for number, end in enumerate(ends, 1)}
        return [(first[start], last[end]) if start in first and end in last else None for start, end, _ in spans]

    def entities(self) -> set[SpanKey]:
        """Return the entities, in characters."""
        starts, ends = self.offsets()
        begins = np.flatnonzero(self.iob == BEGIN)
        # An entity ends before the next token that isn't inside.
        outside = np.append(np.flatnonzero(self.iob != INSIDE), len(self))
        lasts = outside[np.searchsorted(outside, begins, side="right")] - 1
        columns = starts[begins].tolist(), ends[lasts].tolist(), self.labels[begins].tolist()
        return {(start, end, self.strings[label]) for start, end, label in zip(*columns, strict=True)}

    def to_doc(self, vocab: Vocab) -> Doc:
        """Make the gold Doc: entities, aligned accepted and rejected spans, and annotation by a merge."""
        of_spans = {label for _, _, label in (*self.gold, *self.rejected)}
        for string in {*self.words.tolist(), *self.labels.tolist(), *of_spans} - {0}:
            vocab.strings.add(self.strings[string])
        words: Any = self.words
        spaces: Any = self.spaces
        entities: Any = np.stack([self.iob, self.labels], axis=1)
        doc = Doc(vocab, words=words, spaces=spaces).from_array([ENT_IOB, ENT_TYPE], entities)
        for name, token_spans in ((GOLD, self.gold), (INCORRECT, self.rejected)):
            if token_spans:
                spans = [Span(doc, start, end, label=label) for start, end, label in token_spans]
                doc.spans[name] = SpanGroup(doc, name=name, spans=spans)
        if self.merged:
            annotate(doc, self.merged)
        return doc


def read_stored_docs(partition: Partition | Path) -> Iterator[StoredDoc]:
    """Yield the texts of a `.spacy` file, in order; refuse one without entities, or changed since the merge."""
    partition = find_partition(partition) if isinstance(partition, Path) else partition
    content = read_partition(partition)
    try:
        yield from _decode_docs(decode(content))
    except DAMAGES as error:
        raise InputError(f"{partition.file}: not a .spacy file with entities ({error}); run the merge again") from error


def read_docs(corpus: Path, *splits: str, stopped: bool = False) -> Iterator[StoredDoc]:
    """Iterate over the texts of splits, in order; see `manifest.partitions_of`."""
    partitions = [file for split in splits for file in partitions_of(corpus, split, stopped=stopped)]
    return chain.from_iterable(map(read_stored_docs, partitions))


DAMAGES = (LookupError, TypeError, ValueError)  # the errors of a damaged `.spacy` file


def _decode_docs(content: Any) -> Iterator[StoredDoc]:
    attrs = content["attrs"]
    columns = [attrs.index(intify_attr(attr)) for attr in (ORTH, ENT_IOB, ENT_TYPE)]
    tokens = np.frombuffer(content["tokens"], "<u8").reshape(-1, len(attrs))
    spaces = np.frombuffer(content["spaces"], bool)
    strings = {get_string_id(string): string for string in content["strings"]}
    strings[0] = ""
    ends = np.cumsum(np.frombuffer(content["lengths"], "<i4")).tolist()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        words, iob, labels = (tokens[start:end, column] for column in columns)
        groups = decode_groups(content["span_groups"][number])
        merged = decode_annotation(content["user_data"][number]) if content.get("user_data") else None
        gold, rejected = groups.get(GOLD, []), groups.get(INCORRECT, [])
        yield StoredDoc(words, spaces[start:end], iob, labels, gold, rejected, strings, merged)


def decode_groups(groups: bytes) -> dict[str, list[TokenSpan]]:
    """Decode accepted and rejected spans from serialized span groups."""
    spans_of: dict[str, list[TokenSpan]] = {}
    for group, names in (decode(groups) or {}).items() if groups else ():
        for name in {GOLD, INCORRECT}.intersection(names):
            unpacked = map(SPAN.unpack, decode(group)["spans"])
            spans_of[name] = [(start, end, label) for _, _, label, start, end, _, _ in unpacked]
    return spans_of
