"""Whether texts look like their language, by scripts and stop words, and whether the tokenizer cuts its words."""

import runpy
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import spacy.lang
from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.doubts import Doubt
from labelwise.corpus.manifest import partitions_of
from labelwise.corpus.tokenizer import has_rules

TEXTS, WORDS = 100, 5_000  # that are looked at, at most
FEWEST = 30  # words of a list of stop words that say something, and a third of the letters of texts that do
FOREIGN = 0.8  # of the letters, from which the script is another one
STOPS = 0.2  # of the words, from which another language's stop words say something, if its own are not half as many
SPACES = 0.5  # of the letters, from which a script without spaces makes words between white space longer than words
USED = 0.05  # of the letters of a language's stop words, from which it is written in a script
JAPANESE = {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "CJK"}  # scripts of which each character is looked up, too
SPACELESS = JAPANESE | {"THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"}  # scripts without spaces between words
MOST_TOKENS = 2.0  # of a word, on average, that a tokenizer makes which leaves words whole


def doubts_about_language(corpus: Path, nlp: Language) -> Iterator[Doubt]:
    """Yield doubts about the first texts of train, which are random ones.

    They look like another language than the pipeline's, or its rules cut words into pieces.
    """
    stored = (doc for file in partitions_of(corpus, "train") for doc in read_stored_docs(file))
    docs = list(islice(stored, TEXTS))
    if found := looks_like(docs, lang := nlp.lang or ""):
        yield Doubt(f"The texts don't look like `lang: {lang}`, but like {found}.", "Set `lang`, in project.yml.")
    if has_rules(nlp) and (tokens := tokens_per_word(docs)) > MOST_TOKENS:
        yield Doubt(
            f"Words are cut into {tokens:.1f} tokens on average.",
            "Change `tokenizer.infixes` in project.yml, which split inside words; without them, spaCy's rules decide.",
        )


def tokens_per_word(docs: Sequence[StoredDoc]) -> float:
    """Compute how many tokens a word between white space has; 0 if there are few, or the script has no spaces."""
    words = sum(len(doc.text.split()) for doc in docs)
    if words < FEWEST or share(map(script_of, islice(_letters(docs), WORDS * 5)), SPACELESS) > SPACES:
        return 0.0
    return sum(not doc.strings[word].isspace() for doc in docs for word in doc.words.tolist()) / words


def looks_like(docs: Sequence[StoredDoc], lang: str) -> str:
    """Tell which language texts look like, or else in which script they are; nothing if they may be in their own."""
    letters, words = Counter(map(script_of, islice(_letters(docs), WORDS * 5))), list(islice(_words(docs), WORDS))
    own = stop_words().get(lang, frozenset())
    if letters.total() < 3 * FEWEST or len(own) < FEWEST:
        return ""
    here = share(words, own)
    foreign = share(letters.elements(), scripts_of(lang)) < 1 - FOREIGN
    written = [name for name in stop_words() if share(letters.elements(), scripts_of(name)) >= FOREIGN]
    best = max(written, key=lambda name: share(words, stop_words()[name]), default="")
    there = share(words, stop_words()[best]) if best else 0.0
    if foreign and not (there >= STOPS / 2 or len(written) == 1):
        return f"a language that is written in {letters.most_common(1)[0][0]} letters"
    return f"`lang: {best}`" if foreign or (there >= STOPS and here < there / 2) else ""


@cache
def stop_words() -> dict[str, frozenset[str]]:
    """Read spaCy's lists of stop words, by language; importing the languages would take seconds."""
    files = sorted(Path(spacy.lang.__path__[0]).glob("*/stop_words.py"))
    return {file.parent.name: frozenset(runpy.run_path(str(file))["STOP_WORDS"]) for file in files}


@cache
def scripts_of(lang: str) -> frozenset[str]:
    """Find the scripts in which a language is written: those of its stop words."""
    found = Counter(script_of(char) for word in stop_words()[lang] for char in word if char.isalpha())
    used = {script for script, letters in found.items() if letters >= USED * found.total()}
    return frozenset(used | JAPANESE if "HIRAGANA" in used else used)


def script_of(char: str) -> str:
    """Name the script of a letter, by the first word of its name in Unicode.

    >>> script_of("é"), script_of("я"), script_of("的")
    ('LATIN', 'CYRILLIC', 'CJK')
    """
    return unicodedata.name(char, "").partition(" ")[0]


def share(found: Iterable[str], among: Collection[str]) -> float:
    """Compute the share of what was found that is among others."""
    inside = [one in among for one in found]
    return sum(inside) / len(inside) if inside else 0.0


def _letters(docs: Iterable[StoredDoc]) -> Iterator[str]:
    return (char for doc in docs for word in doc.words.tolist() for char in doc.strings[word] if char.isalpha())


def _words(docs: Iterable[StoredDoc]) -> Iterator[str]:
    """Yield the words of texts, and characters of Chinese and Japanese, which have no spaces."""
    for doc in docs:
        for word in doc.words.tolist():
            text = doc.strings[word].lower()
            if text[0].isalpha():
                yield text
            if len(text) > 1:
                yield from (char for char in text if script_of(char) in JAPANESE)
