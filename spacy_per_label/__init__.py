"""A spaCy component with a head for each label, which learns from partial annotation.

It needs spaCy, Hugging Face's `tokenizers` for a small transformer, and spacy-transformers for one on a GPU. See
`component`, and `known` for storing annotation.
"""

from spacy_per_label.component import PerLabelRecognizer
from spacy_per_label.known import Known, get_known, set_known
from spacy_per_label.transformer import make_small_transformer, make_transformer
from spacy_per_label.transformer_v1 import make_transformer_v1
from spacy_per_label.words import make_word_embed

__version__ = "0.5.0.dev0"
__all__ = [
    "Known",
    "PerLabelRecognizer",
    "get_known",
    "make_small_transformer",
    "make_transformer",
    "make_transformer_v1",
    "make_word_embed",
    "set_known",
]
