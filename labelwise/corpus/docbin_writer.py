"""Docs written as a DocBin has them, one after another, so that only one of them is in memory as a Doc.

DocBin.add asks every token for eight strings, most of them empty, and takes longer than tokenizing. A file written here
has the words, the entities' labels, span groups and user data, and nothing else.
"""

import zlib
from pathlib import Path
from struct import Struct

import msgspec
import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH, SPACY
from spacy.tokens import Doc

COLUMNS = [ORTH, ENT_IOB, ENT_TYPE]
encode = msgspec.msgpack.Encoder().encode
SPAN = Struct(">QQQllll")  # id, knowledge base id, label, start and end in tokens and in characters


class DocWriter:
    """Docs as arrays: what DocBin.to_disk writes, compressed less, in a quarter of the time."""

    def __init__(self) -> None:
        """Start empty."""
        self.tokens = bytearray()  # a row of COLUMNS for each token, 64 bits each
        self.spaces = bytearray()  # a byte for each token, 1 if a space follows
        self.lengths: list[int] = []
        self.groups: list[bytes] = []
        self.user_data: list[bytes] = []
        self.strings: dict[int, str] = {0: ""}

    def add(self, doc: Doc) -> None:
        """Encode a Doc."""
        tokens = doc.to_array(COLUMNS).astype("<u8")
        used = {*tokens[:, 0].tolist(), *tokens[:, 2].tolist()}
        self.groups.append(_encode_groups(doc, used))
        self.tokens += tokens.tobytes()
        self.spaces += doc.to_array(SPACY).astype(bool).tobytes()
        self.lengths.append(len(doc))
        self.user_data.append(encode(doc.user_data))
        self.strings.update((name, doc.vocab.strings[name]) for name in used - self.strings.keys())

    def write(self, path: Path) -> None:
        """Write a `.spacy` file."""
        content = {
            "version": "0.1",
            "attrs": COLUMNS,
            "tokens": bytes(self.tokens),
            "spaces": bytes(self.spaces),
            "lengths": np.array(self.lengths, "<i4").tobytes(),
            "strings": sorted(self.strings.values()),
            "cats": [{}] * len(self.lengths),
            "flags": [{"has_unknown_spaces": False}] * len(self.lengths),
            "span_groups": self.groups,
            "user_data": self.user_data,
        }
        path.write_bytes(zlib.compress(encode(content), level=1))


def _encode_groups(doc: Doc, used: set[int]) -> bytes:
    """Serialize span groups as SpanGroups.to_bytes does, which asks all installed packages for encoders each time.

    used (set[int]): the labels are added to it.
    """
    groups: dict[bytes, list[str]] = {}
    for name, group in doc.spans.items():
        spans = []
        for span in group:
            used.add(label := span.label)
            spans.append(SPAN.pack(0, 0, label, span.start, span.end, span.start_char, span.end_char))
        groups.setdefault(encode({"name": group.name, "attrs": group.attrs, "spans": spans}), []).append(name)
    return encode(groups)
