"""Baselines of `f1` trained by spaCy's own loop: `spancat`, and `ner` with missing values.

It is `spacy train` with its own reader. Matrices are multiplied as in labelwise, or BLIS would cost the baselines more
seconds than it must.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config

from labelwise.base.counts import count_spans, score_table
from labelwise.base.device import use_gpu
from labelwise.base.text import SpanKey
from labelwise.corpus.annotation import GOLD
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.train.training_config import default_config

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # of spancat: the best on dev is taken
LENGTHS = 0.98  # share of the spans of train that spancat's candidates are long enough for
SPANCAT = {
    "factory": "spancat",
    "spans_key": GOLD,
    "max_positive": None,
    "threshold": 0.5,
    "model": {
        "@architectures": "spacy.SpanCategorizer.v1",
        "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 128},
        "scorer": {"@layers": "spacy.LinearLogistic.v1", "nO": None, "nI": None},
        "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"},
    },
}


def train_stock(
    corpus: Path, steps: int, seed: int, folder: Path, suggester: dict[str, Any] | None = None
) -> tuple[Language, float]:
    """Train configs/ner.cfg by spaCy's loop, or a spancat in its place.

    suggester (dict | None): the spancat's; None for ner.
    RETURNS (tuple): the best pipeline on dev, and the CPU seconds of its training.
    """
    use_gpu(-1)
    config = load_config(default_config("ner"), interpolate=False)
    for split in ("train", "dev"):
        config["corpora"][split] = {"@readers": "spacy.Corpus.v1", "path": str(corpus / split), "max_length": 0}
    often = max(1, min(100, steps // 4))
    config["training"] |= {"max_steps": steps, "max_epochs": 0, "eval_frequency": often}
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v3", "progress_bar": None}
    config["system"]["seed"] = seed
    lang, rules = read_tokenizer(corpus / "tokenizer.json")
    config["paths"]["corpus"], config["nlp"]["lang"] = str(corpus), lang
    if rules.block:
        config["nlp"]["tokenizer"] = rules.block
    del config["labelwise"]
    if suggester:
        del config["components"]["ner"], config["initialize"]["components"]["ner"]
        config["components"]["spancat"] = SPANCAT | {"suggester": suggester}
        config["nlp"]["pipeline"] = ["tok2vec", "spancat"]
        config["training"]["score_weights"] = {f"spans_{GOLD}_f": 1.0}
    (folder / "model").mkdir()
    began = time.process_time()
    with (folder / "log").open("w", encoding="utf8") as log:
        train(init_nlp(config), folder / "model", use_gpu=-1, stdout=log, stderr=log)
    seconds = time.process_time() - began
    return load_pipeline(folder / "model/model-best"), seconds


def train_spancat(
    corpus: Path, train_texts: Iterable[StoredDoc], dev: list[StoredDoc], steps: int, seed: int, folder: Path
) -> tuple[Language, float, str]:
    """Train a spancat, and choose its threshold on dev.

    RETURNS (tuple): the pipeline, with spans in doc.spans["gold"]; CPU seconds; the longest candidates and threshold.
    """
    lengths = sorted(end - start for stored in train_texts for start, end, _ in stored.gold)
    longest = lengths[int(LENGTHS * (len(lengths) - 1))]
    suggester = {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": longest}
    nlp, seconds = train_stock(corpus, steps, seed, folder, suggester)
    spancat: Any = nlp.get_pipe("spancat")
    scores: dict[float, float] = {}
    for threshold in THRESHOLDS:
        spancat.cfg["threshold"] = threshold
        scores[threshold] = score_spans(nlp, dev, read_manifest(corpus).labels)
    spancat.cfg["threshold"] = threshold = max(scores, key=scores.__getitem__)
    return nlp, seconds, f"to {longest} words, p > {threshold}"


def score_spans(nlp: Language, texts: list[StoredDoc], labels: list[str]) -> float:
    """Compute F1 of all spans."""
    counts = [
        count_spans(stored.annotation.accepted, spans_of(doc.spans[GOLD]), labels)
        for stored, doc in predict_each(nlp, iter(texts), len)
    ]
    return score_table(np.sum(counts, 0), labels).f or 0.0


def spans_of(spans: Iterable[Any]) -> set[SpanKey]:
    """Return offsets and labels of spans."""
    return {(span.start_char, span.end_char, span.label_) for span in spans}
