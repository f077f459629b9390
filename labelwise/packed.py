"""Texts of a `.spacy` file as arrays, of which Docs are made one at a time, when their turn comes.

A Doc takes ten times the memory of its arrays; and DocBin.get_docs makes the words of a whole file known to the
vocabulary for good, where making Docs one by one lets a memory zone forget them.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH, intify_attr
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from labelwise.annotation import INCORRECT, USER_DATA
from labelwise.docbins import SPAN
from labelwise.errors import InputError

MISSING, INSIDE, OUTSIDE = 0, 1, 2  # spaCy's ENT_IOB
SENTENCE_ENDS = frozenset(".!?…。！？")
decode = msgspec.msgpack.Decoder().decode


@dataclass(frozen=True, slots=True, eq=False)
class PackedDoc:
    """A text with what training needs of its annotation.

    words (np.ndarray): hashes of its tokens.
    spaces (np.ndarray): whether a space follows, for each token.
    iob, labels (np.ndarray): spaCy's ENT_IOB, 0 for a missing value, and the hashes of ENT_TYPE.
    rejected (list): spans that annotators rejected, as (start, end, hash of the label), in tokens.
    strings (dict[int, str]): of the whole file, by hash.
    user_data (bytes): as the file has it.
    """

    words: np.ndarray
    spaces: np.ndarray
    iob: np.ndarray
    labels: np.ndarray
    rejected: list[tuple[int, int, int]]
    strings: dict[int, str]
    user_data: bytes

    def __len__(self) -> int:
        """Give the number of tokens."""
        return len(self.words)

    @property
    def text(self) -> str:
        """The text."""
        pairs = zip(self.words.tolist(), self.spaces.tolist(), strict=True)
        return "".join(self.strings[word] + " " * space for word, space in pairs)

    def to_doc(self, vocab: Vocab) -> Doc:
        """Make the gold Doc: its entities, and the spans that annotators rejected."""
        for string in {*self.words.tolist(), *self.labels.tolist(), *(label for _, _, label in self.rejected)} - {0}:
            vocab.strings.add(self.strings[string])
        words: Any = self.words
        spaces: Any = self.spaces
        entities: Any = np.stack([self.iob, self.labels], axis=1)
        doc = Doc(vocab, words=words, spaces=spaces).from_array([ENT_IOB, ENT_TYPE], entities)
        if self.rejected:
            spans = [Span(doc, start, end, label=label) for start, end, label in self.rejected]
            doc.spans[INCORRECT] = SpanGroup(doc, name=INCORRECT, spans=spans)
        return doc


def read_packed(file: Path) -> Iterator[PackedDoc]:
    """Yield the texts of a `.spacy` file, in order; the file is read whole.

    RAISES (InputError): it is no such file, or holds no entities.
    """
    try:
        content = decode(zlib.decompress(file.read_bytes()))
        attrs = content["attrs"]
        columns = [attrs.index(intify_attr(attr)) for attr in (ORTH, ENT_IOB, ENT_TYPE)]
    except (zlib.error, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: not a .spacy file with entities ({error}); run the merge again") from error
    tokens = np.frombuffer(content["tokens"], "<u8").reshape(-1, len(attrs))
    spaces = np.frombuffer(content["spaces"], bool)
    strings = {get_string_id(string): string for string in content["strings"]}
    strings[0] = ""
    ends = np.cumsum(np.frombuffer(content["lengths"], "<i4")).tolist()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        words, iob, labels = (tokens[start:end, column] for column in columns)
        rejected = rejected_spans(content["span_groups"][number])
        user_data = content["user_data"][number] if content.get("user_data") else b""
        yield PackedDoc(words, spaces[start:end], iob, labels, rejected, strings, user_data)


def rejected_spans(groups: bytes) -> list[tuple[int, int, int]]:
    """Get the rejected spans out of spaCy's serialized span groups."""
    spans = []
    for group, names in (decode(groups) or {}).items() if groups else ():
        if INCORRECT in names:
            for packed in decode(group)["spans"]:
                _, _, label, start, end, _, _ = SPAN.unpack(packed)
                spans.append((start, end, label))
    return spans


def merged_data(doc: PackedDoc) -> Any:
    """Give what a merge has stored with a text; see `annotation`.

    RAISES (InputError): it isn't from a merge.
    """
    data = decode(doc.user_data).get(USER_DATA) if doc.user_data else None
    if data is None:
        raise InputError(f"{doc.text[:40]!r}...: nothing says which labels it is complete for; use the merge's corpus")
    return data


def is_covered(doc: PackedDoc) -> bool:
    """Tell whether a text is complete for all labels."""
    return not merged_data(doc)["uncovered"]


def without_missing(doc: PackedDoc) -> PackedDoc:
    """Take unmarked tokens for outside, but for those that touch gold without token boundaries."""
    lengths = np.array([len(doc.strings[word]) for word in doc.words.tolist()])
    ends = np.cumsum(lengths + doc.spaces) - doc.spaces
    starts = ends - lengths
    gold = np.zeros(len(doc), bool)
    for start, end, *_ in merged_data(doc)["gold"]:
        if not (start in starts and end in ends):
            gold |= (starts < end) & (ends > start)
    return replace(doc, iob=np.where((doc.iob == MISSING) & ~gold, OUTSIDE, doc.iob).astype("<u8"))


def split(doc: PackedDoc, longest: int) -> list[PackedDoc]:
    """Cut a text into pieces of so many tokens at most, if its spans allow it.

    A cut is made behind white space, not inside an entity or a rejected span, at the last end of a sentence that leaves
    a piece at least half of `longest`, else at the last place there is. A piece without any such place is longer.
    """
    if len(doc) <= longest:
        return [doc]
    cuts = possible_cuts(doc)
    pieces, start = [], 0
    while len(doc) - start > longest:
        within = [(sentence, cut) for cut, sentence in cuts if start < cut <= start + longest]
        good = [cut for sentence, cut in within if sentence and cut - start >= longest / 2]
        later = (cut for cut, _ in cuts if cut > start + longest)
        end = good[-1] if good else within[-1][1] if within else next(later, len(doc))
        pieces.append(piece(doc, start, end))
        start = end
    return [*pieces, piece(doc, start, len(doc))] if start < len(doc) else pieces


def possible_cuts(doc: PackedDoc) -> Sequence[tuple[int, bool]]:
    """List the tokens before which a text can be cut, and whether a sentence ends there."""
    inside = doc.iob == INSIDE
    for start, end, _ in doc.rejected:
        inside[start + 1 : end] = True
    cuts = []
    for token in range(1, len(doc)):
        before = doc.strings[int(doc.words[token - 1])]
        if not inside[token] and (doc.spaces[token - 1] or before.isspace()):
            cuts.append((token, before in SENTENCE_ENDS or "\n" in before))
    return cuts


def piece(doc: PackedDoc, start: int, end: int) -> PackedDoc:
    """Take a piece, with the spans that lie in it."""
    rejected = [(first - start, last - start, label) for first, last, label in doc.rejected if start <= first < end]
    words, spaces, iob, labels = (array[start:end] for array in (doc.words, doc.spaces, doc.iob, doc.labels))
    return replace(doc, words=words, spaces=spaces, iob=iob, labels=labels, rejected=rejected, user_data=b"")
