"""Find raw texts that leak dev or test: nearly equal texts, their parts, texts that contain one, or share its document.

The mechanisms are the merge's (`near_duplicates`, `parts`), on normalized texts (`base.text.form_of`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from labelwise.base.text import form_of, text_key
from labelwise.merge.near_duplicates import SIGNED, Text, find_pairs, sign, write_place
from labelwise.merge.parts import PART, contained, describe_part
from labelwise.merge.rules.splits import digest_unit
from labelwise.sources.raw_texts import RawText

MAX_PARTS = 200_000  # raw texts per search, 52 bytes each
MAX_SIGNED = 10_000  # texts in a file of signatures, which is read whole
HELD, RAW = 0, 1  # as sources of rows
Texts = Callable[[], Iterator[str]]


def find_leaks(raw: Texts, held: Texts, similarity: float, folder: Path) -> dict[bytes, str]:
    """Return the reason to leave out a raw text, by key.

    raw, held (Callable): iterate over the raw texts, and over dev and test.
    folder (Path): folder for signatures, 540 bytes a text.
    """
    files: list[Path] = []
    for source, texts in ((HELD, held()), (RAW, raw())):
        for first in texts:
            files.append(folder / f"signatures-{len(files)}")
            with files[-1].open("wb") as signed:
                for text in chain([first], islice(texts, MAX_SIGNED - 1)):
                    signed.write(np.array([(*write_place(place_of(text, source)), sign(text))], SIGNED).tobytes())
    pairs = [pair for pair in find_pairs(files, similarity) if pair.one.source == HELD < pair.other.source]
    reasons = {pair.other.key: "nearly equal to a text of dev or test" for pair in pairs}
    parts = make_parts(held(), HELD)
    for text in raw():
        if next(contained(form_of(text), *parts), None) is not None:
            reasons.setdefault(text_key(text), "contains a text of dev or test")
    texts = raw()
    for first in texts:
        parts = make_parts(chain([first], islice(texts, MAX_PARTS - 1)), RAW)
        for text in held():
            for _, part in contained(form_of(text), *parts):
                reasons.setdefault(part["key"].tobytes(), "part of a text of dev or test")
    return reasons


def find_shared(raws: Iterable[RawText], key: str, held: Collection[str]) -> Iterator[bytes]:
    """Yield the keys of raw texts with the `split_by` value of a text of dev or test.

    key (str): `split_by`, a key of `meta`.
    held (Collection[str]): units of dev and test; see `Annotation`.
    """
    for raw in raws:
        if raw.text is not None and (value := raw.meta.get(key)) and digest_unit(value) in held:
            yield text_key(raw.text)


def place_of(text: str, source: int) -> Text:
    """Return a text's values in a row, except its content."""
    return Text(text_key(text), source, 0, None)


def make_parts(texts: Iterable[str], source: int) -> tuple[np.ndarray, np.ndarray]:
    """Make the rows for finding texts in others; see `parts.contained`."""
    rows = (describe_part(form_of(text), place_of(text, source)) for text in texts)
    parts = np.fromiter(((*row, 0) for row in rows if row), PART)
    parts.sort(order="begin")
    return parts, parts["begin"].copy()
