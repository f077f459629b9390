"""Tidy a saved pipeline, so that it holds nothing of its training."""

import json
from pathlib import Path

from spacy.language import Language
from spacy.util import load_config

from labelwise.corpus.pipeline import strings_of
from labelwise.train.config import vectors_of


def tidy_pipeline(folder: Path, curve: Path, corpus: Path, nlp: Language) -> None:
    """Tidy the folder of a pipeline; files are replaced, not written to, as checkpoints share them.

    Equal trainings give equal bytes: spaCy saves scores in a set's order, and where the curve was being written. It
    loads without labelwise. And it doesn't have the words of the texts, which spaCy saves with the vocabulary, and
    which may be nobody else's business; the model knows hashes only.
    """
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    meta["performance"] = json.loads(json.dumps(meta["performance"], sort_keys=True))
    rewrite(folder / "meta.json", json.dumps(meta, indent=2, ensure_ascii=False))
    config = load_config(folder / "config.cfg", interpolate=False)
    config["paths"] |= {"curve": str(curve), "resources": None}
    if vectors_of(config):  # they are in the pipeline now
        config["components"]["tok2vec"]["model"]["embed"]["vectors"] = None
    if config["system"].get("mixed_precision"):
        # What was trained in bf16 predicts in fp32: fp16, in which it would, is another precision.
        config["system"]["mixed_precision"] = config["system"]["grad_scaler"]
    rewrite(folder / "config.cfg", config.to_str())
    if not nlp.vocab.vectors.size:
        strings = strings_of(corpus, nlp.get_pipe("ner").labels)  # type: ignore[attr-defined]
        rewrite(folder / "vocab" / "strings.json", json.dumps(strings, ensure_ascii=False))


def rewrite(path: Path, text: str) -> None:
    """Replace a file, rather than write into one that may have another name elsewhere."""
    path.unlink()
    path.write_text(text, encoding="utf8")
