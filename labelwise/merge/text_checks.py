"""Import checks of a sample of texts: language, tokens, parts of others, corrected texts."""

import pkgutil
import re
import runpy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import spacy.lang

from labelwise.corpus.tables import read_groups
from labelwise.merge.check_kinds import Evidence, Kind, Merged, SampledText, largest_first, quote, some
from labelwise.merge.near_duplicates import PAIR

MIN_WORDS = 1000  # for a language to be recognized
MIN_STOP_WORDS_RATIO = 3  # of the share of stop words, to that of `lang`
MIN_STOP_WORDS_SHARE = 0.15  # of stop words in a language's text
MAX_TOKENS = 2  # in a word
MAX_WORD_CHARS = 15  # between spaces, on average, in scripts with spaces
MIN_PARTS = 5
MIN_TEXT_CHARS = 20  # of texts that differ by one character
MAX_ALIKE = 50  # texts with a common half to compare in pairs
MAX_PAIRS = 20  # that are shown
MAX_TEXTS = 1000
MIN_KANA = 0.1  # per Chinese character, in Japanese
LETTER = re.compile(r"[^\W\d_]+")
# Scripts of languages that have separate tokenizers in spaCy.
SCRIPTS = {
    "ja": re.compile("[\u3041-\u30ff]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "th": re.compile("[\u0e01-\u0e46]"),
    "ko": re.compile("[\uac00-\ud7af]"),
}
WORD = re.compile(r"[^\s!-@\[-`{-~\u2010-\u2027\u00ab\u00bb\u0964]{2,}")  # without digits and punctuation


def _other_language(merged: Merged) -> list[Evidence]:
    words: Counter[str] = Counter()
    for sampled in merged.sample:
        if words.total() < 20 * MIN_WORDS:
            words.update(word.lower() for word in WORD.findall(sampled.text))
    other = _find_language(words, merged.settings.lang)
    return [Evidence(values={"lang": merged.settings.lang, "other": other})] if other else []


def _other_tokenizer(merged: Merged) -> list[Evidence]:
    words = sum(len(sampled.text.split()) for sampled in merged.sample)
    tokens, chars = (
        sum(sampled.tokens for sampled in merged.sample),
        sum(len(sampled.text) for sampled in merged.sample),
    )
    many = words >= MIN_WORDS and chars <= MAX_WORD_CHARS * words and tokens >= MAX_TOKENS * words
    return [Evidence(values={"tokens": tokens / words})] if many and not _other_language(merged) else []


def _find_language(words: Counter[str], lang: str) -> str:
    """Return a spaCy language whose stop words fit much better than `lang`'s, or ""."""
    total = words.total()

    def share(name: str) -> float:
        stops = _stop_words(name)
        return sum(n for word, n in words.items() if word in stops) / total

    if total < MIN_WORDS or lang == "xx" or not _stop_words(lang) or (known := share(lang)) > MIN_STOP_WORDS_SHARE:
        return ""
    best, other = max((share(module.name), module.name) for module in pkgutil.iter_modules(spacy.lang.__path__))
    return other if best >= max(MIN_STOP_WORDS_SHARE, MIN_STOP_WORDS_RATIO * known) else ""


def _stop_words(lang: str) -> frozenset[str]:
    """Load spaCy's stop words of a language, and single letters, without its package (French takes seconds)."""
    file = Path(spacy.lang.__path__[0], lang, "stop_words.py")
    words = runpy.run_path(str(file))["STOP_WORDS"] if file.is_file() else ()
    return frozenset(word.lower() for word in words if WORD.fullmatch(word))


def find_script(texts: Iterable[str]) -> str:
    """Find the language of texts by a script without spaces, or with a spaCy tokenizer; or "".

    >>> find_script(["東京に行く"]), find_script(["去北京"]), find_script(["Ann 去"])
    ('ja', 'zh', '')
    """
    letters = "".join(LETTER.findall(" ".join(islice(texts, MAX_TEXTS))))
    counts = {lang: len(script.findall(letters)) for lang, script in SCRIPTS.items()}
    if counts["ja"] >= MIN_KANA * counts["zh"]:
        counts["ja"] += counts["zh"]
    most = max(counts, key=lambda lang: counts[lang])
    return most if 2 * counts[most] > len(letters) else ""


def _parts_of_texts(merged: Merged) -> Iterator[Evidence]:
    """Find datasets whose texts are parts of another's, and parts in another split than their document."""
    pairs = np.concatenate([np.empty(0, PAIR), *merged.parts.values()])
    keys = np.unique([pairs["one"]["key"], pairs["other"]["key"]])
    splits = np.full(len(keys), "", "<U5")
    for group in read_groups(merged.corpus, merged=False, columns=("text", "split")) if len(keys) else ():
        group_keys = np.array([bytes.fromhex(key) for key in group.texts["text"].to_pylist()], keys.dtype)
        _, at, rows = np.intersect1d(keys, group_keys, assume_unique=True, return_indices=True)
        splits[at] = np.array([split or "" for split in group.texts["split"].to_pylist()])[rows]
    for (name, whole), pairs in sorted(merged.parts.items()):
        texts, wholes = (merged.ledger.datasets[dataset]["texts"] for dataset in (name, whole))
        documents, parts = (np.searchsorted(keys, pairs[side]["key"]) for side in ("one", "other"))
        of, at = np.unique(parts, return_index=True)
        first = len(np.unique(documents[at]))
        if len(of) >= MIN_PARTS and 10 * first >= wholes:
            document_split, part_split = splits[documents], splits[parts]
            apart = np.flatnonzero((document_split != part_split) & (document_split != "") & (part_split != ""))
            apart = apart[
                document_split[apart].argsort(kind="stable")
            ]  # the first split of a part's documents, by name
            _, at = np.unique(parts[apart], return_index=True)
            pairs_of_splits = zip(part_split[apart[at]], document_split[apart[at]], strict=True)
            leaks = largest_first(Counter(f"in {part}, document in {document}" for part, document in pairs_of_splits))
            yield from some(len(of), all=texts, name=name, documents=first, whole=whole, leaks=leaks)


def _corrected_texts(merged: Merged) -> Iterator[Evidence]:
    """Find pairs of datasets with texts that differ by one typing error, except in digits."""
    differences: dict[tuple[str, str], list[str]] = {}
    for one, other in _nearly_equal([text for text in merged.sample if len(text.text) >= MIN_TEXT_CHARS]):
        name, second = min(one.datasets), min(other.datasets)
        start, end, other_end = _difference(one.text, other.text)
        changed = one.text[start:end] + other.text[start:other_end]
        if not {*one.datasets} & {*other.datasets} and not changed.isdigit():
            shown = (quote(one.text, start, end), quote(other.text, start, other_end))
            pair = (name, second) if name < second else (second, name)
            differences.setdefault(pair, []).append(" / ".join(shown if name < second else shown[::-1]))
    for (name, second), pairs in sorted(differences.items()):
        yield from some(len(pairs), quotes=sorted(pairs)[:MAX_PAIRS], name=name, other=second)


def _other_capitals(merged: Merged) -> Iterator[Evidence]:
    folded: defaultdict[str, list[SampledText]] = defaultdict(list)
    for sampled in merged.sample:
        folded[sampled.text.casefold()].append(sampled)
    counts: Counter[tuple[str, ...]] = Counter()
    for one, other in (pair for same in folded.values() for pair in combinations(same[:MAX_ALIKE], 2)):
        if not {*one.datasets} & {*other.datasets}:
            counts[tuple(sorted((min(one.datasets), min(other.datasets))))] += 1
    for (name, second), n in sorted(counts.items()):
        yield from some(n >= MIN_PARTS and n, name=name, other=second)


def _nearly_equal(texts: Sequence[SampledText]) -> Iterator[tuple[SampledText, SampledText]]:
    """Yield pairs of texts that differ by one character or a swap: one half of both is equal."""
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
    """Return where two texts begin to differ, and the difference's end in each."""
    start = _same(one, other)
    same = _same(one[start:][::-1], other[start:][::-1])
    return start, len(one) - same, len(other) - same


def _same(one: str, other: str) -> int:
    differing = (place for place, chars in enumerate(zip(one, other, strict=False)) if chars[0] != chars[1])
    return next(differing, min(len(one), len(other)))


TEXT_CHECKS = (
    Kind(
        "other language",
        _other_language,
        "`lang: {lang}`: the texts have the stop words of `{other}`.",
        "If that is their language, set in the section merge of project.yml",
        "lang: {other}",
    ),
    Kind(
        "other tokenizer",
        _other_tokenizer,
        "{tokens:.1f} tokens per whitespace-separated word: the tokenizer is probably for another language.",
        "Set `lang`, or `block` in configs/tokenizer.yml: docs/settings.md",
    ),
    Kind(
        "parts of texts",
        _parts_of_texts,
        "{n:,} of {all:text} of {name!r} are parts of {documents:text} of {whole!r}, so their annotations can't be "
        "merged{leaks:?; some are in another split: %s}.",
        "Use the same unit everywhere: ner.teach and ner.correct keep documents whole with --unsegmented. With "
        "near_duplicates: group in project.yml, a part is in the split of its first document.",
    ),
    Kind(
        "corrected texts",
        _corrected_texts,
        "{n:text} of {name!r} and {other!r} differ by one edit, so they aren't merged.",
        "If a text was corrected, correct it in all datasets.",
    ),
    Kind(
        "other capitals",
        _other_capitals,
        "{n:text} of {name!r} and {other!r} differ in capitals only, so they aren't merged.",
        "Write them as they were annotated first, with capitals, in both datasets.",
    ),
)
