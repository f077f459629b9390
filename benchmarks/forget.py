"""Forget annotation while pipelines are trained, as if nobody had annotated it."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import msgspec

from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs

READERS = ("labelwise.train.loaders", "labelwise.corpus.seen_texts")


@contextmanager
def forgotten(unknown: Mapping[str, Collection[str]], leave_out: Collection[str] = ()) -> Iterator[None]:
    """Make a block in which trainings don't know the labels of some texts.

    unknown (Mapping): by text, the labels that it isn't annotated for.
    leave_out (Collection[str]): texts that aren't read at all.
    """

    def read(file: Path) -> Iterator[StoredDoc]:
        """Yield the texts of a file, without what is forgotten."""
        for doc in read_stored_docs(file):
            if doc.text not in leave_out:
                uncovered = {**doc.annotation.uncovered, **dict.fromkeys(unknown.get(doc.text, ()), "none")}
                yield replace(doc, merged=msgspec.structs.replace(doc.annotation, uncovered=uncovered))

    with ExitStack() as patches:
        for module in READERS:
            patches.enter_context(patch(f"{module}.read_stored_docs", read))
        yield
