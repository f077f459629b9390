"""Import checks of texts, from a sample of them: language, tokens, parts of others, and corrected texts."""

import pkgutil
import re
import runpy
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

import spacy.lang

from labelwise.merge.check_kinds import Found, Merged, SampledText, check, quote

MIN_WORDS = 1000  # from which a language can be told
BETTER = 3  # times as many stop words
SHARE = 0.15  # of words that are stop words, from which it is a language
MAX_TOKENS = 2  # in a word
MAX_WORD_CHARS = 15  # between spaces, on average, of scripts that have spaces
MAX_DOCUMENTS = 200  # of a dataset, in which other texts are looked for
LONGER = 3  # times as long as a text that may be a part
MIN_PARTS = 5
BEGIN = 4  # words of a text by which it is looked for
MIN_TEXT_CHARS = 20  # of texts that seem to be one text, as they differ by one character
MAX_ALIKE = 50  # texts with one half in common, of which pairs are compared
MAX_PAIRS = 20  # that are shown
WORD = re.compile(r"[^\s!-@\[-`{-~\u2010-\u2027\u00ab\u00bb\u0964]{2,}")  # without digits and punctuation


@check(
    "`lang: {lang}`: the stop words of the texts are those of `{other}`.",
    "If that is their language, set in the section merge of project.yml",
    "lang: {other}",
)
def other_language(merged: Merged) -> Iterator[Found]:
    """Find texts whose stop words are another language's."""
    words: Counter[str] = Counter()
    for one in merged.sample:
        if words.total() < 20 * MIN_WORDS:
            words.update(word.lower() for word in WORD.findall(one.text))
    if other := find_language(words, merged.settings.lang):
        yield Found(values={"lang": merged.settings.lang, "other": other})


@check(
    "{tokens:.1f} tokens per whitespace-separated word: the tokenizer is probably for another language.",
    "Set `lang`, or `block` in configs/tokenizer.yml: docs/languages.md",
)
def other_tokenizer(merged: Merged) -> Iterator[Found]:
    """Find texts with spaces whose words are split into many tokens, unless the language explains it."""
    words = sum(len(one.text.split()) for one in merged.sample)
    tokens, chars = (sum(one.tokens for one in merged.sample), sum(len(one.text) for one in merged.sample))
    many = words >= MIN_WORDS and chars <= MAX_WORD_CHARS * words and tokens >= MAX_TOKENS * words
    if many and not [*other_language.query(merged)]:
        yield Found(values={"tokens": tokens / words})


def find_language(words: Counter[str], lang: str) -> str:
    """Find a language of spaCy whose stop words fit much better than those of `lang`; empty if there is none.

    words (Counter): of texts, in lower case.
    """
    total = words.total()

    def share(name: str) -> float:
        """Return the share of words that are stop words of a language."""
        stops = stop_words(name)
        return sum(n for word, n in words.items() if word in stops) / total

    if total < MIN_WORDS or lang == "xx" or not stop_words(lang) or (known := share(lang)) > SHARE:
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


@check(
    "{n:,} of {texts:text} of {name!r} are parts of {documents:text} of {whole!r}, so their annotations can't be "
    "merged.",
    "Use the same unit everywhere: split documents into sentences, or join the sentences.",
)
def parts_of_texts(merged: Merged) -> Iterator[Found]:
    """Find datasets whose texts are parts of another one's, such as the sentences of its documents."""
    sample = merged.sample
    lengths: dict[str, list[int]] = {}
    for one in sample:
        for name in one.datasets:
            lengths.setdefault(name, []).append(len(one.text))
    middle = {name: median(found) for name, found in lengths.items()}
    for whole, size in middle.items():
        parts = {name for name, length in middle.items() if LONGER * length <= size}
        if not parts:
            continue
        documents = [one.text for one in sample if whole in one.datasets][:MAX_DOCUMENTS]
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
            if n >= MIN_PARTS and 10 * len(of[name]) >= len(documents):
                values = {"texts": len(lengths[name]), "name": name, "documents": len(of[name]), "whole": whole}
                yield Found(n, values)


@check(
    "{n:text} of {name!r} and {other!r} differ by one edit, so they aren't merged.",
    "If a text was corrected, correct it in all datasets.",
)
def corrected_texts(merged: Merged) -> Iterator[Found]:
    """Find pairs of datasets with texts that differ by one typing error, as if it was corrected in one of them.

    A digit may differ, as in the steps of a protocol; and so may two texts of one dataset.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for one, other in nearly_equal([one for one in merged.sample if len(one.text) >= MIN_TEXT_CHARS]):
        name, second = min(one.datasets), min(other.datasets)
        start, end, other_end = _difference(one.text, other.text)
        changed = one.text[start:end] + other.text[start:other_end]
        if not {*one.datasets} & {*other.datasets} and not changed.isdigit():
            shown = (quote(one.text, start, end), quote(other.text, start, other_end))
            pair = (name, second) if name < second else (second, name)
            found.setdefault(pair, []).append(" / ".join(shown if name < second else shown[::-1]))
    for (name, second), pairs in sorted(found.items()):
        yield Found(len(pairs), {"name": name, "other": second}, quotes=sorted(pairs)[:MAX_PAIRS])


def nearly_equal(texts: Sequence[SampledText]) -> Iterator[tuple[SampledText, SampledText]]:
    """Yield the pairs of texts that differ by one character, or by two neighbours: one half of both is equal."""
    halves: dict[tuple[bool, int, int], list[int]] = {}
    for number, (text, *_) in enumerate(texts):
        for length in (len(text), len(text) - 1):  # of the shorter one
            halves.setdefault((True, length, hash(text[: length // 2])), []).append(number)
            halves.setdefault((False, length, hash(text[length // 2 - length :])), []).append(number)
    pairs = {pair for same in halves.values() for pair in combinations(same[:MAX_ALIKE], 2)}
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


TEXT_CHECKS = (other_language, other_tokenizer, parts_of_texts, corrected_texts)
