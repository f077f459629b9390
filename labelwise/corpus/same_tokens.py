"""Whether a pipeline makes the tokens that a corpus has: where it doesn't, it learns nothing, and nobody says why."""

from itertools import islice
from pathlib import Path

from spacy.attrs import ORTH, SPACY
from spacy.language import Language

from labelwise.common.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.streaming import forgetting
from labelwise.corpus.tokenizing import tokenize

TEXTS = 100  # that are compared: the first of a split, which are random ones, as partitions are ranges of digests
WORDS = 20_000  # after which no more are compared
SHOWN = 5  # tokens, from the first that differs


def check_tokens(nlp: Language, split: Path, remedy: str) -> None:
    """Check that a pipeline makes the tokens that the first texts of a split have.

    RAISES (InputError): it doesn't, and the first difference.
    """
    words = 0
    texts = ((file, doc) for file in find_partitions(split) for doc in read_stored_docs(file))
    for file, stored in islice(texts, TEXTS):
        with forgetting(nlp):
            doc = tokenize(nlp, stored.text)
            made = [(word, space) for word, space in doc.to_array([ORTH, SPACY]).tolist()]
            have = list(zip(stored.words.tolist(), stored.spaces.tolist(), strict=True))
            if made != have:
                at = next(number for number, pair in enumerate(have) if made[number : number + 1] != [pair])
                ours = [doc.vocab.strings[word] for word, _ in made[at : at + SHOWN]]
                theirs = [stored.strings[word] for word, _ in have[at : at + SHOWN]]
                raise InputError(
                    f"{file}: {stored.text[:40]!r}...: the corpus has the tokens {theirs}, where the pipeline makes "
                    f"{ours}. Remedy: {remedy}"
                )
        words += len(stored)
        if words >= WORDS:
            return
