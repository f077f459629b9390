"""Write the files of DocBin from arrays, without Docs.

DocBin.add asks each token for eight strings, most of them empty, and takes longer than tokenizing. These files have
words, entity labels, span groups and user data only.
"""

import hashlib
import zlib
from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH

from labelwise.corpus.annotation import GOLD, INCORRECT, USER_DATA
from labelwise.corpus.docbin_reader import SPAN, StoredDoc

COLUMNS = [ORTH, ENT_IOB, ENT_TYPE]
encode = msgspec.msgpack.Encoder().encode


class DocWriter:
    """Writes DocBin files in a quarter of DocBin.to_disk's time, with less compression."""

    def __init__(self) -> None:
        self.tokens: list[np.ndarray] = []  # of each Doc, a row of COLUMNS for each token
        self.spaces = bytearray()  # a byte for each token, 1 if a space follows
        self.labels = {0}  # hashes of the labels of spans
        self.groups: list[bytes] = []
        self.user_data: list[bytes] = []
        self.vocabularies: dict[int, Mapping[int, str]] = {0: {0: ""}}  # by the identity of the object

    def add(self, doc: StoredDoc, starts: Sequence[int], ends: Sequence[int]) -> None:
        """Encode a Doc, with start and end of its tokens in characters."""
        groups = {}
        for name, spans in ((GOLD, doc.gold), (INCORRECT, doc.rejected)):  # as SpanGroup.to_bytes serializes them
            packed = [SPAN.pack(0, 0, label, start, end, starts[start], ends[end - 1]) for start, end, label in spans]
            groups[encode({"name": name, "attrs": {}, "spans": packed})] = [name]
        self.groups.append(encode(groups))
        self.tokens.append(np.stack([doc.words, doc.iob, doc.labels], axis=1))
        self.spaces += doc.spaces.tobytes()
        self.labels.update(label for _, _, label in (*doc.gold, *doc.rejected))
        self.user_data.append(encode({USER_DATA: doc.merged} if doc.merged else {}))
        self.vocabularies[id(doc.strings)] = doc.strings

    def write(self, path: Path) -> str:
        """Write a `.spacy` file, and return the SHA-256 of its content; builds of zlib compress it differently."""
        tokens = np.concatenate(self.tokens)  # (tokens of all Docs, COLUMNS)
        strings: ChainMap[int, str] = ChainMap(*self.vocabularies.values())  # type: ignore[arg-type]
        fields = {
            "version": "0.1",
            "attrs": COLUMNS,
            "tokens": tokens.astype("<u8", copy=False).tobytes(),
            "spaces": bytes(self.spaces),
            "lengths": np.array([*map(len, self.tokens)], "<i4").tobytes(),
            "strings": sorted(strings[name] for name in {*np.unique(tokens[:, 0]).tolist(), *self.labels}),
            "cats": [{}] * len(self.tokens),
            "flags": [{"has_unknown_spaces": False}] * len(self.tokens),
            "span_groups": self.groups,
            "user_data": self.user_data,
        }
        content = encode(fields)
        path.write_bytes(zlib.compress(content, level=1))
        return hashlib.sha256(content).hexdigest()
