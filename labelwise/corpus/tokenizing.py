"""Texts are tokenized as a pipeline does it, whichever tokenizer it has."""

import re

from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import has_rules

WORDS_AND_SPACES = re.compile(r"\S+|\s+")  # what spaCy's tokenizer takes for a word, and remembers


class LearningTokenizer:
    """Tokenizes as a pipeline does, several times faster, in a fixed amount of memory.

    spaCy's tokenizer remembers how it split a word, but not if a special case, such as "don't" or "May", came before
    it in the text: nearly every text has one early on (`has_special` in spacy/tokenizer.pyx is set once per text). So
    words are tokenized by themselves, which it remembers, as long as there is room in its cache.

    words (int): of the texts so far.
    """

    def __init__(self, nlp: Language) -> None:
        """Take a pipeline."""
        self.nlp = nlp
        self.known: set[str] = set()
        self.words = 0

    def __call__(self, text: str) -> Doc:
        """Tokenize a text.

        RAISES (InputError): see `tokenize`.
        """
        tokenizer = self.nlp.tokenizer
        if isinstance(tokenizer, Tokenizer) and len(self.known) < tokenizer.max_cache_size:
            new = set(WORDS_AND_SPACES.findall(text)) - self.known
            for word in new:
                tokenizer(word)
            self.known |= new
        doc = tokenize(self.nlp, text)
        self.words += len(doc)
        return doc


def tokenize(nlp: Language, text: str) -> Doc:
    """Tokenize a text as a pipeline does.

    RAISES (InputError): a tokenizer without rules can't: Sudachi takes 49,149 bytes, and MeCab's loses white space.
    """
    if has_rules(nlp):
        return nlp.make_doc(text)
    try:
        doc = nlp.make_doc(text)
        lost = "it would be another text" * (doc.text != text)
    except Exception as error:  # each tokenizer has errors of its own
        lost = str(error)
    if lost:
        name = type(nlp.tokenizer).__name__
        raise InputError(f"{text[:40]!r}... of {len(text):,} characters: {name} can't: {lost}; cut it or leave it out")
    doc.user_data.clear()  # what some tokenizers leave there takes more room than the tokens
    return doc
