"""Compare the Docs of two corpora, whatever their bytes and partitions are.

python -m tests.compare_docs before/corpus after/corpus

A text has its split, its entities and the tokens without a known one, all gold and rejected spans, and the labels
that it isn't complete for. The first differences are printed; the exit status is 1 if there is one.
"""

import sys
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc

from labelwise.corpus.annotation import GOLD, INCORRECT, annotation_of, entities
from labelwise.corpus.manifest import SPLITS, is_corpus
from labelwise.train.reader import read_docs

SHOWN = 10


def describe(doc: Doc, split: str) -> dict[str, Any]:
    """Return all that is compared of a Doc."""
    return {
        "split": split,
        "tokens": [token.idx for token in doc],
        "entities": sorted(entities(doc)),
        "missing": [token.i for token in doc if token.ent_iob == 0],
        "gold": sorted((span.start_char, span.end_char, span.label_) for span in doc.spans.get(GOLD, [])),
        "rejected": sorted((span.start_char, span.end_char, span.label_) for span in doc.spans.get(INCORRECT, [])),
        "uncovered": annotation_of(doc).uncovered,
    }


def read_corpus(corpus: Path) -> dict[bytes, dict[str, Any]]:
    """Describe the Docs of a corpus, by the digests of their texts."""
    nlp = spacy.blank("xx")
    folders = [(split, corpus / split) for split in SPLITS if any((corpus / split).glob("*.spacy"))]
    return {
        sha256(doc.text.encode()).digest(): {"text": doc.text[:40], **describe(doc, split)}
        for split, folder in folders
        for doc in read_docs(folder, nlp)
    }


def differences(one: Path, other: Path) -> Iterator[str]:
    """Yield what differs between two corpora, in a line each."""
    first, second = read_corpus(one), read_corpus(other)
    for key in sorted({*first, *second}):
        if key not in first or key not in second:
            corpus, docs = (one, first) if key in first else (other, second)
            yield f"{docs[key]['text']!r}: only in {corpus}"
        else:
            for field, value in first[key].items():
                if value != second[key][field]:
                    yield f"{first[key]['text']!r}: {field}: {value} and {second[key][field]}"


def main() -> int:
    """Compare the corpora that are named."""
    one, other = map(Path, sys.argv[1:])
    if not (is_corpus(one) and is_corpus(other)):
        sys.exit("name two folders that a merge has written")
    found = list(islice(differences(one, other), SHOWN))
    print("\n".join(found) or f"{len(read_corpus(one))} texts are equal")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
