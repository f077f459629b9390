"""Doubts about texts, from a sample of them: language, tokens, parts of others, and others but for one typing error.

The first texts of each split by key are a random sample, as keys are digests.
"""

import pkgutil
import re
import runpy
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

import spacy.lang

from labelwise.base.text import counted
from labelwise.corpus.ledger import Doubt
from labelwise.corpus.texts import read_groups_with_docs
from labelwise.merge.rules.settings import Settings

TEXTS, CHARS = 20_000, 2**21  # of a sample, at most
WORDS = 1000  # from which a language can be told
BETTER = 3  # times as many stop words
SHARE = 0.15  # of words that are stop words, from which it is a language
MOST_TOKENS = 2  # in a word
LONGEST_WORD = 15  # characters between spaces, on average, of scripts that have spaces
DOCUMENTS = 200  # of a data set, in which other texts are looked for
LONGER = 3  # times as long as a text that may be a part
FEW_PARTS = 5
BEGIN = 4  # words of a text by which it is looked for
SENTENCE = 20  # characters from which texts that differ by one seem to be one text
ALIKE = 50  # texts with one half in common, of which pairs are compared
AROUND = 20  # characters of a text that are shown on either side
LISTED = 20  # pairs
WORD = re.compile(r"[^\s!-@\[-`{-~\u2010-\u2027\u00ab\u00bb\u0964]{2,}")  # without digits and punctuation


class Sampled(NamedTuple):
    """A text, its tokens, and the data sets that it is in."""

    text: str
    tokens: int
    datasets: Sequence[str]


def sample_texts(corpus: Path) -> list[Sampled]:
    """Read the first texts of a corpus, whose manifest needn't be there."""
    found: list[Sampled] = []
    chars = 0
    for group, docs in read_groups_with_docs(corpus, merged=False):
        datasets: dict[str, list[str]] = {}
        for key, name in zip(group.rows["text"].to_pylist(), group.rows["dataset"].to_pylist(), strict=True):
            datasets.setdefault(key, []).append(name)
        for key, doc in docs:
            text = doc.text
            found.append(Sampled(text, len(doc), [*dict.fromkeys(datasets[key])]))
            chars += len(text)
            if len(found) >= TEXTS or chars >= CHARS:
                return found
    return found


def doubts_about_texts(corpus: Path, settings: Settings) -> Iterator[Doubt]:
    """Yield the doubts about the texts of a corpus."""
    sample = sample_texts(corpus)
    words: Counter[str] = Counter()
    spaced, tokens, chars = 0, 0, 0
    for one in sample:
        if words.total() < 20 * WORDS:
            words.update(word.lower() for word in WORD.findall(one.text))
        spaced, tokens, chars = spaced + len(one.text.split()), tokens + one.tokens, chars + len(one.text)
    if other := other_language(words, settings.lang):
        yield Doubt(
            f"The texts seem to be in another language than `lang: {settings.lang}`: {other}.",
            "If they are, set in the section merge of project.yml",
            [f"lang: {other}"],
        )
    elif spaced >= WORDS and chars <= LONGEST_WORD * spaced and tokens >= MOST_TOKENS * spaced:
        yield Doubt(
            f"A word is {tokens / spaced:.1f} tokens, on average: the tokenizer seems to be another language's.",
            "Set `lang`, or `block` in configs/tokenizer.yml: docs/languages.md",
        )
    yield from parts_of_others(sample)
    yield from corrected_texts(sample)


def other_language(words: Counter[str], lang: str) -> str:
    """Find a language of spaCy whose stop words fit much better than those of `lang`; empty if there is none.

    words (Counter): of texts, in lower case.
    """
    total = words.total()

    def share(name: str) -> float:
        """Return the share of words that are stop words of a language."""
        stops = stop_words(name)
        return sum(n for word, n in words.items() if word in stops) / total

    if total < WORDS or lang == "xx" or not stop_words(lang) or (known := share(lang)) > SHARE:
        return ""
    best, other = max((share(module.name), module.name) for module in pkgutil.iter_modules(spacy.lang.__path__))
    return other if best >= max(SHARE, BETTER * known) else ""


def stop_words(lang: str) -> frozenset[str]:
    """Load spaCy's stop words of a language, without single letters; none if it has no list.

    Its package isn't imported, as that of French alone takes seconds.
    """
    file = Path(spacy.lang.__path__[0], lang, "stop_words.py")
    words = runpy.run_path(str(file))["STOP_WORDS"] if file.is_file() else ()
    return frozenset(word.lower() for word in words if WORD.fullmatch(word))


def parts_of_others(sample: Sequence[Sampled]) -> Iterator[Doubt]:
    """Yield the data sets whose texts are parts of another one's, such as the sentences of its documents."""
    lengths: dict[str, list[int]] = {}
    for one in sample:
        for name in one.datasets:
            lengths.setdefault(name, []).append(len(one.text))
    middle = {name: median(found) for name, found in lengths.items()}
    for whole, size in middle.items():
        parts = {name for name, length in middle.items() if LONGER * length <= size}
        if not parts:
            continue
        documents = [one.text for one in sample if whole in one.datasets][:DOCUMENTS]
        begins: dict[tuple[str, ...], list[int]] = {}
        for number, text in enumerate(documents):
            words = text.split()
            for place in range(len(words) - BEGIN + 1):
                begins.setdefault(tuple(words[place : place + BEGIN]), []).append(number)
        inside: Counter[str] = Counter()
        of: dict[str, set[int]] = {}
        for one in sample:
            text = one.text.strip()
            for name in parts.intersection(one.datasets):
                found = [
                    n
                    for n in begins.get((*text.split()[:BEGIN],), ())
                    if text in documents[n] and text != documents[n].strip()
                ]
                inside[name] += bool(found)
                of.setdefault(name, set()).update(found[:1])
        for name, n in sorted(inside.items()):
            if n >= FEW_PARTS and 10 * len(of[name]) >= len(documents):
                total = len(lengths[name])
                yield Doubt(
                    f"Of {counted(total, 'text')} of {name!r}, {n:,} are parts of {counted(len(of[name]), 'text')} of "
                    f"{whole!r}, so no answer to one counts for the other.",
                    "Annotate the same texts for all labels: cut the documents into sentences, or the other way round.",
                )


def corrected_texts(sample: Sequence[Sampled]) -> Iterator[Doubt]:
    """Yield the pairs of data sets with texts that differ by one typing error, as if it was corrected in one of them.

    A digit may differ, as in the steps of a protocol; and so may two texts of one data set.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for one, other in nearly_equal([one for one in sample if len(one.text) >= SENTENCE]):
        name, second = min(one.datasets), min(other.datasets)
        start, end, other_end = _difference(one.text, other.text)
        changed = one.text[start:end] + other.text[start:other_end]
        if not {*one.datasets} & {*other.datasets} and not changed.isdigit():
            shown = (quote(one.text, start, end), quote(other.text, start, other_end))
            pair = (name, second) if name < second else (second, name)
            found.setdefault(pair, []).append(" / ".join(shown if name < second else shown[::-1]))
    for (name, second), pairs in sorted(found.items()):
        yield Doubt(
            f"{counted(len(pairs), 'text')} of {name!r} and of {second!r} differ by one character, or by two that are "
            "swapped, so no answer to one counts for the other.",
            "If a text was corrected, correct it in all data sets.",
            sample=sorted(pairs)[:LISTED],
        )


def nearly_equal(texts: Sequence[Sampled]) -> Iterator[tuple[Sampled, Sampled]]:
    """Yield the pairs of texts that differ by one character, or by two neighbours: one half of both is equal."""
    halves: dict[tuple[bool, int, int], list[int]] = {}
    for number, (text, *_) in enumerate(texts):
        for length in (len(text), len(text) - 1):  # of the shorter one
            halves.setdefault((True, length, hash(text[: length // 2])), []).append(number)
            halves.setdefault((False, length, hash(text[length // 2 - length :])), []).append(number)
    pairs = {pair for same in halves.values() for pair in combinations(same[:ALIKE], 2)}
    for first, second in sorted(pairs):
        one, other = texts[first].text, texts[second].text
        start, end, other_end = _difference(one, other)
        swapped = end - start == 2 and one[start:end] == other[start:other_end][::-1]
        if max(end, other_end) - start == 1 or swapped:
            yield texts[first], texts[second]


def _difference(one: str, other: str) -> tuple[int, int, int]:
    """Find where two texts begin to differ, and where the difference ends in each."""
    start = _same(one, other)
    same = _same(one[start:][::-1], other[start:][::-1])
    return start, len(one) - same, len(other) - same


def _same(one: str, other: str) -> int:
    """Count the characters that two texts begin with, both."""
    differing = (place for place, chars in enumerate(zip(one, other, strict=False)) if chars[0] != chars[1])
    return next(differing, min(len(one), len(other)))


def quote(text: str, start: int, end: int) -> str:
    """Write words of a text in brackets, among those around them."""
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    return " ".join(f"{before}[{text[start:end]}]{after}".split())
