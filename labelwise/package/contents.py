"""What is in a pipeline that is handed out."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from labelwise.corpus.pipeline import check_tokens, load_pipeline
from labelwise.corpus.tokenizer import packages_of
from labelwise.errors import InputError
from labelwise.text import counted
from spacy_per_label import PerLabelRecognizer


class Contents(NamedTuple):
    """What is in a pipeline.

    labels (Sequence[str]): those it can find, in its order.
    per_label (bool): it has a head for each label; otherwise spaCy's ner.
    vectors (bool): it has word vectors, whose words are in its vocabulary.
    packages (Sequence[str]): those that its tokenizer needs besides spaCy, in the versions of this environment.
    transformer (bool): it has one.
    embedding (str): the name of the transformer that it began with, on the hub, or its folder.
    """

    labels: Sequence[str]
    per_label: bool
    vectors: bool = False
    packages: Sequence[str] = ()
    transformer: bool = False
    embedding: str = ""

    def describe(self) -> str:
        """Say what is in it of the training texts."""
        labels = f"the names of its {counted(len(self.labels), 'label')}"
        if not self.vectors:
            return f"It contains nothing of the training texts but {labels}: no text, and no word of them."
        return (
            f"Of the training texts it contains {labels}. Its vocabulary has the words of its word vectors; whether "
            "some are of the training texts hasn't been checked."
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
    check_tokens(nlp, corpus / "test", "run all again: packages are other ones now")
    embedding = nlp.config.interpolate()["components"]["ner"].get("model", {}).get("tok2vec", {})
    return Contents(
        labels=list(ner.labels),  # type: ignore[attr-defined]
        per_label=isinstance(ner, PerLabelRecognizer),
        vectors=bool(nlp.vocab.vectors.size),
        packages=[f"{name}=={version(name)}" for name in packages_of(nlp.config["nlp"]["tokenizer"])],
        transformer="name" in embedding,
        embedding=embedding.get("name", ""),
    )


def is_folder(name: str) -> bool:
    """Tell whether a transformer's name is a folder of this machine, and not one on the hub.

    >>> is_folder("/home/anna/bert"), is_folder("roberta-base"), is_folder("microsoft/deberta-v3-base")
    (True, False, False)
    """
    return Path(name).is_absolute() or (bool(name) and Path(name).is_dir())
