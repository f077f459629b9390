"""The project's tokenizer: the language's own, but it splits in more places."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec
import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.util import compile_infix_regex

from labelwise.common.errors import InputError
from labelwise.common.sections import read_section

WORDS_AND_SPACES = re.compile(r"\S+|\s+")  # what spaCy's tokenizer takes for a word, and remembers
NUMBERED = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[1-9]|\(\?\([1-9])")  # a reference to a group by its number
MAX_LENGTH = 2**31 - 1  # characters of a text: spaCy's limit of a million is about parsers' memory


class TokenizerRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Infixes added to a language's tokenizer, and exceptions dropped from it.

    infixes (tuple[str, ...]): regular expressions of further infixes. One that matches only a position, between two
        characters that it looks at, splits there.
    no_exceptions (tuple[str, ...]): the tokenizer exceptions that one of these matches as a whole are dropped. English
        has `g.` as one, so the full stop after a gram would be part of the token.
    """

    infixes: tuple[str, ...] = ()
    no_exceptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the patterns.

        RAISES (InputError): one doesn't compile.
        """
        for name in self.__struct_fields__:
            for pattern in getattr(self, name):
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise InputError(f"{name}: {pattern!r} isn't a regular expression: {error}") from error


def read_rules(project: Path | None) -> TokenizerRules:
    """Read the section `tokenizer` of project.yml; no file or section, no rules.

    RAISES (InputError): it has other keys or types, or a pattern doesn't compile.
    """
    return read_section(project, "tokenizer", TokenizerRules)


def write_tokenizer(path: Path, lang: str, rules: TokenizerRules) -> None:
    """Write the language and the rules, from which a pipeline makes the tokenizer of a corpus."""
    content = {"lang": lang, **msgspec.to_builtins(rules)}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def read_tokenizer(path: Path) -> tuple[str, TokenizerRules]:
    """Read language and rules, as `write_tokenizer` wrote them.

    RAISES (InputError): there is no such file, or it is something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf8"))
        return content.pop("lang"), msgspec.convert(content, TokenizerRules)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; run the merge to completion") from error
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not what a merge writes ({error}); run the merge again") from error


def make_nlp(lang: str, rules: TokenizerRules) -> Language:
    """Make a blank pipeline with the project's tokenizer.

    RAISES (InputError): spaCy has no such language, or it needs a package that isn't installed.
    """
    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        raise InputError(f"language {lang!r}: {error}; set `lang` to one of https://spacy.io/usage/models") from error
    extend_tokenizer(nlp, rules)
    return nlp


class LearningTokenizer:
    """Tokenizes as a pipeline does, several times faster, in a fixed amount of memory.

    spaCy's tokenizer remembers how it split a word, but not if a special case, such as "don't" or "May", came before
    it in the text: nearly every text has one early on (`has_special` in spacy/tokenizer.pyx is set once per text). So
    words are tokenized by themselves, which it remembers, as long as there is room in its cache.
    """

    def __init__(self, nlp: Language) -> None:
        """Take a pipeline."""
        self.nlp = nlp
        self.known: set[str] = set()

    def __call__(self, text: str) -> Doc:
        """Tokenize a text."""
        tokenizer = self.nlp.tokenizer
        if isinstance(tokenizer, Tokenizer) and len(self.known) < tokenizer.max_cache_size:
            new = set(WORDS_AND_SPACES.findall(text)) - self.known
            for word in new:
                tokenizer(word)
            self.known |= new
        return self.nlp.make_doc(text)


def extend_tokenizer(nlp: Language, rules: TokenizerRules) -> None:
    """Add the rules to a pipeline's tokenizer, in place; they are saved with the pipeline. Texts may be of any length.

    RAISES (InputError): the language, such as Chinese, has a tokenizer of its own, which has no such rules; or they are
        valid one by one, but not as the one expression that is made of them.
    """
    nlp.max_length = MAX_LENGTH
    tokenizer = nlp.tokenizer
    if rules != TokenizerRules() and not isinstance(tokenizer, Tokenizer):
        raise InputError(f"language {nlp.lang!r} has no rules to extend; empty the section `tokenizer` of project.yml")
    tokenizer = cast(Tokenizer, tokenizer)
    if rules.infixes:
        infixes = [*cast(Sequence[str], nlp.Defaults.infixes or ()), *rules.infixes]
        _check_joined(infixes, len(rules.infixes))
        tokenizer.infix_finditer = compile_infix_regex(infixes).finditer
    if rules.no_exceptions:
        given_up = [re.compile(pattern) for pattern in rules.no_exceptions]
        tokenizer.rules = {
            text: tokens
            for text, tokens in (tokenizer.rules or {}).items()
            if not any(pattern.fullmatch(text) for pattern in given_up)
        }


def _check_joined(infixes: Sequence[str], own: int) -> None:
    """Check that infixes mean the same when they are joined, of which the last ones are the project's.

    RAISES (InputError): they don't, or can't be joined, and which one is the first that can't be added.
    """
    for number in range(len(infixes) - own, len(infixes)):
        infix = infixes[number]
        where = f"tokenizer infixes: {infix!r} can't be used beside the others"
        if re.compile(infix).flags != re.UNICODE.value:
            raise InputError(f"{where}: its flags would be theirs, too; write them as (?i:...)")
        if NUMBERED.search(infix) and re.compile("|".join(infixes[:number])).groups:
            raise InputError(
                f"{where}: they have groups, so the number of its own is another; name it: (?P<name>...), (?P=name)"
            )
        try:
            re.compile("|".join(infixes[: number + 1]))
        except re.error as error:
            raise InputError(f"{where}: {error}; give groups names that no other pattern has") from error
