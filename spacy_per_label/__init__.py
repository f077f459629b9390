"""A spaCy component that recognizes entities with a head for each label, so that it learns from partial annotation.

It needs spaCy, and spacy-transformers for a pipeline that has a transformer. See `component`.
"""

from spacy_per_label.component import PerLabelRecognizer
from spacy_per_label.transformer import make_transformer
from spacy_per_label.words import make_word_embed

__version__ = "0.3.0.dev0"
__all__ = ["PerLabelRecognizer", "make_transformer", "make_word_embed"]
