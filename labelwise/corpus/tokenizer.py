"""The project's tokenizer: spaCy's for the language, or another, with more infixes if it has rules."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, cast
from unicodedata import category

import msgspec
import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.util import compile_infix_regex, get_lang_class

from labelwise.base.environment import TOKENIZERS
from labelwise.base.errors import InputError
from labelwise.base.refusals import describe_refusal
from labelwise.base.settings import read_section

WORDS_AND_SPACES = re.compile(r"\S+|\s+")  # the units that spaCy's tokenizer caches
EMOJI_MARKS = (0x20E3, 0xFE0E, 0xFE0F)
MAX_LENGTH = 2**31 - 1  # characters of a text: spaCy's limit of a million is about parsers' memory
Block = dict[str, str | int | float | bool | None]
OTHERS = (
    "or, in configs/tokenizer.yml, set `block: {'@tokenizers': spacy.Tokenizer.v1}`, which splits at "
    "white space and punctuation, or `block: {'@tokenizers': spacy.zh.ChineseTokenizer}`, whose tokens are characters"
)


class TokenizerRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    r"""The tokenizer: `tokenizer` in configs/tokenizer.yml.

    Infixes and exceptions are for tokenizers with rules; see `has_rules`. `[\p{M}]` stands for a combining mark;
    patterns here, and in all files, have the ranges of marks instead.

    infixes (tuple[str, ...]): regular expressions; one that matches only a position, by lookaround, splits there.
    no_exceptions (tuple[str, ...]): full-match patterns of tokenizer exceptions to drop, such as English `g.`, which
        has the full stop after a gram.
    block (Block | None): `[nlp.tokenizer]` of a spaCy config; None for the language's own.
    """

    infixes: tuple[str, ...] = ()
    no_exceptions: tuple[str, ...] = ()
    block: Block | None = None

    def __post_init__(self) -> None:
        if self.block is not None and "@tokenizers" not in self.block:
            raise InputError(f"block: {self.block}: it names no tokenizer: {{'@tokenizers': spacy.Tokenizer.v1}}")
        for name in ("infixes", "no_exceptions"):
            for pattern in getattr(self, name):
                try:
                    re.compile(with_marks(pattern))
                except re.error as error:
                    raise InputError(f"{name}: {pattern!r} isn't a regular expression: {error}") from error
            msgspec.structs.force_setattr(self, name, tuple(map(with_marks, getattr(self, name))))


@cache
def _marks() -> str:
    """List Unicode's category M as ranges for a character set; Python's `re` has no name for it.

    Marks that turn the sign before them into an emoji are omitted: they are separate tokens.
    """
    places = chain(range(0x300, 0x20000), range(0xE0100, 0xE01F0))  # no other code points are marks
    codes = [code for code in places if category(chr(code))[0] == "M" and code not in EMOJI_MARKS]
    runs = (list(run) for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0]))
    return "".join(rf"\U{run[0][1]:08X}-\U{run[-1][1]:08X}" for run in runs)


def with_marks(pattern: str) -> str:
    r"""Translate a regular expression for `re`: `\p{M}`, in brackets, becomes the ranges of marks.

    >>> with_marks(r"[\w\p{M}]+")[:23]
    '[\\w\\U00000300-\\U0000036'
    """
    return pattern.replace(r"\p{M}", _marks()) if r"\p{M}" in pattern else pattern


def read_rules(project: Path | None) -> TokenizerRules:
    """Read `configs/tokenizer.yml` beside project.yml, if it exists."""
    path = project.parent / "configs" / "tokenizer.yml" if project else None
    return read_section(path if path and path.is_file() else None, "tokenizer", TokenizerRules)


def write_tokenizer(path: Path, nlp: Language, rules: TokenizerRules) -> None:
    """Write language, rules and block, for `make_nlp`."""
    content = {"lang": nlp.lang, **msgspec.to_builtins(rules), "block": nlp.config["nlp"]["tokenizer"]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def read_tokenizer(path: Path) -> tuple[str, TokenizerRules]:
    """Read the language and the rules that `write_tokenizer` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf8"))
        return content.pop("lang"), msgspec.convert(content, TokenizerRules)
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: there is no such file; run the merge to completion, or label_raw for a student"
        ) from error


def make_nlp(lang: str, rules: TokenizerRules) -> Language:
    """Make a blank pipeline with the project's tokenizer.

    RAISES (InputError): if spaCy lacks the language or tokenizer, or a package isn't installed.
    """
    try:
        nlp = spacy.blank(lang, config={"nlp": {"tokenizer": rules.block}} if rules.block else {})
        if not has_rules(nlp):
            nlp.make_doc("1")  # some load their packages on the first call
    except Exception as error:  # each tokenizer has its own errors
        if describe_refusal(error):
            raise
        raise InputError(f"language {lang!r}: {_explain(lang, rules, error)}") from error
    extend_tokenizer(nlp, rules)
    return nlp


def _explain(lang: str, rules: TokenizerRules, error: Exception) -> str:
    try:
        block = rules.block or get_lang_class(lang).default_config["nlp"]["tokenizer"]
    except ImportError:
        return f"{error}; set `lang` to one of https://spacy.io/usage/models"
    needed = packages_of(block)
    system = ", and MeCab with mecab-ko-dic, which pip doesn't have" if "natto-py" in needed else ""
    remedy = f"`pip install {' '.join(needed)}`{system}" if needed else "correct it"
    return f"{block} can't be used: {' '.join(str(error).split()).rstrip('.')}. Remedy: {remedy}; {OTHERS}"


def packages_of(block: Mapping[str, Any]) -> tuple[str, ...]:
    """List the packages that a tokenizer needs besides spaCy.

    >>> packages_of({"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": "jieba"})
    ('jieba',)
    """
    if block.get("use_pyvi") is False:
        return ()
    return TOKENIZERS.get(block["@tokenizers"], ()) + TOKENIZERS.get(block.get("segmenter", ""), ())


def has_rules(nlp: Language) -> bool:
    """Return whether a pipeline's tokenizer has rules for infixes; Chinese has none."""
    return isinstance(nlp.tokenizer, Tokenizer)


def extend_tokenizer(nlp: Language, rules: TokenizerRules) -> None:
    """Add rules to a pipeline's tokenizer, in place, if it has rules; accept texts of any length."""
    nlp.max_length = MAX_LENGTH
    if not has_rules(nlp):
        return
    tokenizer = cast(Tokenizer, nlp.tokenizer)
    given_up = [re.compile(pattern) for pattern in rules.no_exceptions]
    exceptions = {
        text: tokens
        for text, tokens in (tokenizer.rules or {}).items()
        if not any(pattern.fullmatch(text) for pattern in given_up)
    }
    tokenizer.rules = {}  # setting infixes loads all exceptions again, which takes 45 ms for English
    if rules.infixes:
        infixes = [*cast(Sequence[str], nlp.Defaults.infixes or ()), *rules.infixes]
        try:
            tokenizer.infix_finditer = compile_infix_regex(infixes).finditer
        except re.error as error:
            raise InputError(
                f"tokenizer infixes {rules.infixes} can't be joined into one expression: {error}; write flags as "
                "(?i:...), and give each group a name that no other has"
            ) from error
    tokenizer.rules = exceptions


class LearningTokenizer:
    """Tokenizes like a pipeline, several times faster, in bounded memory.

    spaCy's tokenizer doesn't cache a word's tokens after a special case, such as "don't" or "May", in the same text,
    and nearly every text has one early on (`has_special` in spacy/tokenizer.pyx is set once per text). So new words are
    tokenized separately first, as long as the cache has room.
    """

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.known: set[str] = set()
        self.words = 0

    def __call__(self, text: str) -> Doc:
        """Tokenize a text; see `tokenize`."""
        tokenizer, vocab = self.nlp.tokenizer, cast(Any, self.nlp.vocab)
        may_cache = not vocab.in_memory_zone
        if may_cache and isinstance(tokenizer, Tokenizer) and len(self.known) < tokenizer.max_cache_size:
            new = set(WORDS_AND_SPACES.findall(text)) - self.known
            for word in new:
                tokenizer(word)
            self.known |= new
        doc = tokenize(self.nlp, text)
        self.words += len(doc)
        return doc


def tokenize(nlp: Language, text: str) -> Doc:
    """Tokenize a text as a pipeline does.

    RAISES (InputError): if a tokenizer without rules fails: Sudachi takes 49,149 bytes, and MeCab loses white space.
    """
    if has_rules(nlp):
        return nlp.make_doc(text)
    try:
        doc = nlp.make_doc(text)
        lost = "it would be another text" if doc.text != text else ""
    except Exception as error:  # each tokenizer has its own errors
        lost = str(error)
    if lost:
        name = type(nlp.tokenizer).__name__
        raise InputError(f"{text[:40]!r}... of {len(text):,} characters: {name} failed: {lost}; cut it or leave it out")
    doc.user_data.clear()  # some tokenizers leave more there than the tokens take
    return doc
