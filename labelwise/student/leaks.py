"""Find raw texts that show what dev or test ask: nearly equal texts, parts of theirs, and texts that contain one.

The mechanisms are those of the merge (`near_duplicates`, `parts`), on texts in their forms (`base.text.form_of`).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from labelwise.base.text import form_of, text_key
from labelwise.merge.near_duplicates import SIGNED, Text, find_pairs, sign, write_place
from labelwise.merge.parts import PART, contained, describe_part

BATCH = 20_000  # texts in memory
HELD, RAW = 0, 1  # as sources of rows
Texts = Callable[[], Iterator[str]]
Item = TypeVar("Item")


def find_leaks(raw: Texts, held: Texts, similarity: float, folder: Path) -> dict[bytes, str]:
    """Return the reason to leave out a raw text, by its key; texts that may stay aren't in it.

    raw, held (Callable): iterate over the raw texts, and those of dev and test.
    similarity (float): least similarity of nearly equal texts.
    folder (Path): folder for signatures, 540 bytes a text.
    """
    files = [folder / "held", folder / "raw"]
    for source, texts in ((HELD, held()), (RAW, raw())):
        with files[source].open("wb") as signed:
            for batch in in_batches(texts):
                rows = [(*write_place(place_of(text, source)), sign(text)) for text in batch]
                signed.write(np.array(rows, SIGNED).tobytes())
    pairs = [pair for pair in find_pairs(files, similarity) if pair.one.source == HELD < pair.other.source]
    found = {pair.other.key: "nearly equal to a text of dev or test" for pair in pairs}
    parts, begins = make_parts(held(), HELD)
    for batch in in_batches(raw()):
        raw_parts, raw_begins = make_parts(batch, RAW)
        for text in held() if len(raw_parts) else ():
            for part in contained(form_of(text), raw_parts, raw_begins):
                found.setdefault(part["key"].tobytes(), "part of a text of dev or test")
        for text in batch:
            if any(True for _ in contained(form_of(text), parts, begins)):
                found.setdefault(text_key(text), "contains a text of dev or test")
    return found


def in_batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Yield items in lists of at most BATCH."""
    return iter(lambda: list(islice(items, BATCH)), [])


def place_of(text: str, source: int) -> Text:
    """Return what a row says of a text besides its content."""
    return Text(text_key(text), source, 0, None)


def make_parts(texts: Iterable[str], source: int) -> tuple[np.ndarray, np.ndarray]:
    """Make the rows by which texts are found in others; see `parts.contained`."""
    found = [(*row, 0) for text in texts if (row := describe_part(form_of(text), place_of(text, source)))]
    parts = np.array(found, PART)
    parts.sort(order="begin")
    return parts, parts["begin"].copy()
