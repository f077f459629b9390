"""The project's tokenizer: the language's own, which splits in more places."""

import re
from typing import cast

import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.util import compile_infix_regex

from labelwise.errors import InputError


def make_nlp(lang: str, infixes: str = "", no_exceptions: str = "") -> Language:
    """Make a blank pipeline with the project's tokenizer.

    RAISES (InputError): an unknown language, or a pattern that doesn't compile.
    """
    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        raise InputError(
            f"{lang!r} is no language of spaCy; set `lang` to one of https://spacy.io/usage/models"
        ) from error
    extend_tokenizer(nlp, infixes, no_exceptions)
    return nlp


def extend_tokenizer(nlp: Language, infixes: str = "", no_exceptions: str = "") -> None:
    """Make a tokenizer split where it wouldn't; the rules are saved with the pipeline.

    nlp (Language): its tokenizer is changed in place.
    infixes (str): a regular expression of further infixes; one that matches nothing but a place splits there.
    no_exceptions (str): the language's tokenizer exceptions that it matches as a whole are no exceptions any more.
        English has `g.` as one, so that the full stop after a gram would be part of the token.
    RAISES (InputError): a pattern that doesn't compile.
    """
    for name, pattern in (("infixes", infixes), ("no_exceptions", no_exceptions)):
        try:
            re.compile(pattern)
        except re.error as error:
            raise InputError(f"{name}: {pattern!r} is no regular expression: {error}") from error
    tokenizer = cast(Tokenizer, nlp.tokenizer)
    if infixes:
        tokenizer.infix_finditer = compile_infix_regex([*(nlp.Defaults.infixes or ()), infixes]).finditer
    if no_exceptions:
        rules = tokenizer.rules or {}
        tokenizer.rules = {key: value for key, value in rules.items() if not re.fullmatch(no_exceptions, key)}
