"""Texts as arrays, all that an update needs of them: another process can prepare them while a GPU computes.

ner = nlp.get_pipe("ner")
prepare = ner.preparer()                             # it can be pickled, as can what it returns
ner.update([prepare(eg) for eg in examples])         # as ner.update(examples)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spacy.training import Example

from spacy_per_label.targets import Targets, targets_of
from spacy_per_label.wordpieces import Wordpieces, find_wordpieces


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A text, its words as the reference has them, its wordpieces, and what it teaches."""

    text: str
    words: int
    pieces: Wordpieces
    targets: Targets

    def __len__(self) -> int:
        """Return the number of words."""
        return self.words


def prepare_text(tokenizer: Any, get_spans: Callable, numbers: Mapping[str, int], eg: Example) -> PreparedText:
    """Prepare an Example; see `find_wordpieces` and `targets_of`."""
    pieces = find_wordpieces(tokenizer, get_spans, [eg.predicted])
    return PreparedText(eg.predicted.text, len(eg.reference), pieces, targets_of(eg, numbers))
