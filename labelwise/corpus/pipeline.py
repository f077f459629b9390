"""Load a trained pipeline, for texts of any length."""

from pathlib import Path

import spacy
from spacy.language import Language

from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import MAX_LENGTH


def load_pipeline(model: Path) -> Language:
    """Load a pipeline; one with a head for each label needs `spacy_per_label`.

    RAISES (InputError): there is none.
    """
    if not (model / "meta.json").is_file():
        raise InputError(f"{model}: no trained pipeline; run the training first")
    nlp = spacy.load(model)
    nlp.max_length = MAX_LENGTH
    return nlp
