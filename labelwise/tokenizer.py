"""The project's tokenizer: the language's own, which splits in more places."""

import re
from pathlib import Path
from typing import cast

import msgspec
import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.util import compile_infix_regex

from labelwise.errors import InputError


class TokenizerRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is added to a language's tokenizer, and what is given up.

    infixes (tuple[str, ...]): regular expressions of further infixes. One that matches nothing but a place, between two
        characters that it looks at, splits there.
    no_exceptions (tuple[str, ...]): the tokenizer exceptions that one of these matches as a whole are exceptions no
        more. English has `g.` as one, so that the full stop after a gram would be part of the token.
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
                    raise InputError(f"tokenizer {name}: {pattern!r} is no regular expression: {error}") from error


def read_rules(project: Path) -> TokenizerRules:
    """Read the section `tokenizer` of project.yml; no section, no rules.

    RAISES (InputError): it has other keys or types, or a pattern doesn't compile.
    """

    class Project(msgspec.Struct):
        tokenizer: TokenizerRules = TokenizerRules()

    try:
        return msgspec.yaml.decode(project.read_bytes(), type=Project).tokenizer
    except msgspec.MsgspecError as error:
        raise InputError(f"{project}: {error}") from error


def make_nlp(lang: str, rules: TokenizerRules) -> Language:
    """Make a blank pipeline with the project's tokenizer.

    RAISES (InputError): spaCy has no such language.
    """
    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        raise InputError(
            f"{lang!r} is no language of spaCy; set `lang` to one of https://spacy.io/usage/models"
        ) from error
    extend_tokenizer(nlp, rules)
    return nlp


def extend_tokenizer(nlp: Language, rules: TokenizerRules) -> None:
    """Add the rules to a pipeline's tokenizer, in place; they are saved with the pipeline."""
    tokenizer = cast(Tokenizer, nlp.tokenizer)
    if rules.infixes:
        infixes = [*(nlp.Defaults.infixes or ()), *rules.infixes]
        tokenizer.infix_finditer = compile_infix_regex(infixes).finditer
    if rules.no_exceptions:
        given_up = re.compile("|".join(rules.no_exceptions))
        exceptions = tokenizer.rules or {}
        tokenizer.rules = {text: tokens for text, tokens in exceptions.items() if not given_up.fullmatch(text)}
