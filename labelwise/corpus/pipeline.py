"""Run a pipeline over a corpus in pieces, with bounded memory for texts and words."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from configparser import Error
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import spacy
from spacy.attrs import ORTH, SPACY
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config

from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.tokenizer import MAX_LENGTH, LearningTokenizer, TokenizerRules, make_nlp, read_tokenizer, tokenize

Item = TypeVar("Item")
Points = dict[str, dict[str, Any]]
BATCH_WORDS = 4000  # approximate words of a batch
MAX_STRINGS = 20_000  # in a vocabulary, about half a kilobyte each
# Texts whose tokens are compared: the first ones, a random sample, as they are sorted by digest.
MAX_CHECKED_TEXTS = 100
MAX_SHOWN_TOKENS = 5  # tokens, from the first difference


def load_pipeline(model: Path) -> Language:
    """Load a pipeline for texts of any length; a per-label pipeline needs `spacy_per_label`."""
    if not (model / "meta.json").is_file():
        raise InputError(f"{model}: no trained pipeline; run the training first")
    nlp = spacy.load(model)
    nlp.max_length = MAX_LENGTH
    return nlp


def excluded_labels_of(nlp: Language) -> list[str]:
    """List the labels that a pipeline excludes, because no training text is complete for them."""
    return [label for _, component in nlp.pipeline for label in getattr(component, "excluded_labels", ())]


def points_of(nlp: Language) -> Points:
    """Return a pipeline's operating points by label; see `spacy_per_label.operating_point`."""
    return {
        label: point
        for _, component in nlp.pipeline
        for label, point in getattr(component, "cfg", {}).get("points", {}).items()
    }


def take_batch(items: Iterator[Item], most: int, words: Callable[[Item], int]) -> list[Item]:
    """Take at most `most` items, up to BATCH_WORDS words."""
    batch, size = [], 0
    for item in islice(items, most):
        batch.append(item)
        size += words(item)
        if size >= BATCH_WORDS:
            break
    return batch


def bounded_vocab(nlp: Language) -> AbstractContextManager[Any]:
    """Open a spaCy memory zone, which frees words at its end, if the vocabulary has grown large."""
    vocab: Any = nlp.vocab
    large = len(vocab.strings) > MAX_STRINGS and not vocab.in_memory_zone
    return nlp.memory_zone() if large else nullcontext()


def predict_each(nlp: Language, items: Iterator[Item], words: Callable[[Item], int]) -> Iterator[tuple[Item, Doc]]:
    """Yield each item with its predicted Doc, valid until the next item; `words` estimates its words."""
    for batch, docs in predict_batches(nlp, items, words):
        yield from zip(batch, docs, strict=True)


def predict_batches(
    nlp: Language, items: Iterator[Item], words: Callable[[Item], int], without: Sequence[str] = ()
) -> Iterator[tuple[list[Item], Iterator[Doc]]]:
    """Yield items in batches, with their Docs, valid until the next batch, without some components."""
    make_doc = LearningTokenizer(nlp)
    while True:
        with bounded_vocab(nlp), nlp.select_pipes(disable=[*without]):
            batch = take_batch(items, nlp.batch_size, words)
            if not batch:
                return
            inputs = [make_doc(item.text) for item in batch]  # type: ignore[attr-defined]
            yield batch, nlp.pipe(inputs, batch_size=nlp.batch_size)


def strings_of(corpus: Path, labels: Iterable[str]) -> list[str]:
    """List the strings of a pipeline's language, tokenizer and labels; spaCy would save every word."""
    lang, rules = read_tokenizer(corpus / "tokenizer.json")
    return sorted({*_strings(lang, msgspec.json.encode(rules)), *labels})


@cache
def _strings(lang: str, rules: bytes) -> tuple[str, ...]:
    return tuple(make_nlp(lang, msgspec.json.decode(rules, type=TokenizerRules)).vocab.strings)


def check_tokens(nlp: Language, split: Path, remedy: str) -> None:
    """Refuse a pipeline whose tokens differ from a split's first texts: it would learn nothing."""
    texts = ((partition.file, doc) for partition in find_partitions(split) for doc in read_stored_docs(partition))
    for file, stored in islice(texts, MAX_CHECKED_TEXTS):
        with bounded_vocab(nlp):
            doc = tokenize(nlp, stored.text)
            tokens = [(word, space) for word, space in doc.to_array([ORTH, SPACY]).tolist()]
            have = list(zip(stored.words.tolist(), stored.spaces.tolist(), strict=True))
            if tokens != have:
                at = next(number for number, pair in enumerate(have) if tokens[number : number + 1] != [pair])
                ours = [doc.vocab.strings[word] for word, _ in tokens[at : at + MAX_SHOWN_TOKENS]]
                theirs = [stored.strings[word] for word, _ in have[at : at + MAX_SHOWN_TOKENS]]
                raise InputError(
                    f"{file}: {stored.text[:40]!r}...: the corpus has the tokens {theirs}, the pipeline makes "
                    f"{ours}; {remedy}"
                )


def gpu_of(config: Path) -> int:
    """Return the GPU of a config: 0 if it names a GPU allocator, else -1, the CPU."""
    return 0 if read_value(config, "training", "gpu_allocator") else -1


def corpus_of(config: Path) -> Path:
    """Return the corpus folder of a config's paths: the merge's, or a student's."""
    return Path(read_value(config, "paths", "corpus") or "corpus")


def read_value(config: Path, block: str, key: str) -> Any:
    """Read a value of a config; None if it can't be read."""
    try:
        return load_config(config, interpolate=True)[block][key] if config.is_file() else None
    except (Error, KeyError, ValueError):
        return None
