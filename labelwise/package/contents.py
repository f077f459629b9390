"""What a pipeline has in it of the texts that it was trained on.

spaCy saves every word of them with the vocabulary. Training here leaves those out (`train.tidy`), as the model needs
hashes only; what is handed out is looked at once more.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from labelwise.corpus.pipeline import check_tokens, load_pipeline
from labelwise.corpus.tokenizer import make_nlp, packages_of, read_tokenizer
from labelwise.errors import InputError
from labelwise.text import counted
from spacy_per_label import PerLabelRecognizer


class Contents(NamedTuple):
    """What is in a pipeline.

    labels (list[str]): those it can find, in its order.
    per_label (bool): it has a head for each label; otherwise spaCy's ner.
    words (int): strings of its vocabulary that are neither labels nor of spaCy's language and the project's tokenizer.
    vectors (bool): it has word vectors, whose words are in its vocabulary.
    packages (list[str]): those that its tokenizer needs besides spaCy, in the versions of this environment.
    transformer (bool): it has one.
    base (str): the transformer that it began with, by its name on the hub; empty if there is none, or it is a folder.
    """

    labels: list[str]
    per_label: bool
    words: int
    vectors: bool
    packages: list[str]
    transformer: bool = False
    base: str = ""

    def describe(self) -> str:
        """Say what is in it of the training texts."""
        labels = f"the names of its {counted(len(self.labels), 'label')}"
        if not self.words:
            return f"It contains nothing of the training texts but {labels}: no text, and no word of them."
        if self.vectors:
            return (
                f"Of the training texts it contains {labels}. Its vocabulary has {counted(self.words, 'word')}, as its "
                "word vectors have; whether some are of the training texts hasn't been checked."
            )
        return (
            f"Of the training texts it contains {labels}, and {counted(self.words, 'string')} of its vocabulary that "
            "aren't spaCy's: they may be words of the texts."
        )


def inspect_contents(model: Path, corpus: Path) -> Contents:
    """Look at what is in a pipeline.

    corpus (Path): the one that it was trained on.
    RAISES (InputError): there is no pipeline, or it has no recognizer named "ner", or it makes other tokens than the
        corpus has.
    """
    nlp = load_pipeline(model)
    if "ner" not in nlp.pipe_names:
        raise InputError(f"{model}: it has no recognizer named ner, but {', '.join(nlp.pipe_names) or 'nothing'}")
    ner = nlp.get_pipe("ner")
    labels = list(ner.labels)  # type: ignore[attr-defined]
    check_tokens(nlp, corpus / "test", "run all again: packages are other ones now")
    lang, rules = read_tokenizer(corpus / "tokenizer.json")
    saved = json.loads((model / "vocab" / "strings.json").read_text(encoding="utf8"))
    words = {*saved} - {*make_nlp(lang, rules).vocab.strings} - {*labels}
    base = nlp.config["components"]["ner"].get("model", {}).get("tok2vec", {}).get("name", "")
    return Contents(
        labels,
        isinstance(ner, PerLabelRecognizer),
        len(words),
        bool(nlp.vocab.vectors.size),
        [f"{name}=={version(name)}" for name in packages_of(nlp.config["nlp"]["tokenizer"])],
        bool(base),
        "" if is_folder(base) else base,
    )


def is_folder(name: str) -> bool:
    """Tell whether a transformer's name is a folder of this machine, and not one on the hub.

    >>> is_folder("/home/anna/bert"), is_folder("roberta-base"), is_folder("microsoft/deberta-v3-base")
    (True, False, False)
    """
    return Path(name).is_absolute() or (bool(name) and Path(name).is_dir())
