"""Find how many words a GPU can be given at a time: train on the longest texts, twice as many each time.

Training would find that out by itself, as it halves what didn't fit, but in the middle of its steps.
"""

import hashlib
import json
from collections.abc import Callable
from heapq import nlargest
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from spacy.util import registry, resolve_dot_names
from thinc.api import Config

from labelwise.device import device_name, use_gpu
from labelwise.errors import InputError
from labelwise.train.config import make_pipeline, read_settings
from labelwise.train.parameters import is_out_of_memory
from labelwise.train.recipe import Recipe

SCANNED, WORST = 2000, 32  # texts that are looked at, and how many of them are tried
MOST = 2**20  # words of the largest trial


def find_batch_size(recipe: Recipe, report: Callable[[int, bool], None]) -> dict[str, Any]:
    """Find a number of words that fits, of which twice as many don't; with its device and pipeline.

    report (Callable): is told the words of each trial, and whether they fitted.
    RAISES (InputError): not even one text fits.
    """
    use_gpu(recipe.gpu_id)
    settings = read_settings(recipe)
    nlp = make_pipeline(recipe, settings)
    config = nlp.config.interpolate()
    training = registry.resolve(config["training"])
    [corpus] = resolve_dot_names(config, [training["train_corpus"]])
    longest = nlargest(WORST, islice(corpus(nlp), SCANNED), key=len)
    fitted, words = 0, len(longest[0])
    while words <= MOST:
        batch = list(islice(cycle(longest), max(1, words // len(longest[0]))))
        try:
            for examples in (longest[:1], batch, batch):  # first one text, so that the optimizer's state exists
                nlp.update(examples, drop=training["dropout"], sgd=training["optimizer"])
            list(nlp.pipe(eg.predicted.copy() for eg in batch))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            report(words, False)
            break
        report(words, True)
        fitted, words = words, 2 * words
    if not fitted:
        raise InputError("not even one text fits into memory; set max_words of corpora.train, or use a smaller model")
    return {"device": device_name(recipe.gpu_id), "pipeline": pipeline_digest(settings), "words": fitted}


def read_batch_size(path: Path | None, gpu_id: int, settings: Config) -> int:
    """Read what find-batch-size has found; 0 if there is nothing, or it is for another device or pipeline."""
    if path is None or not path.is_file():
        return 0
    try:
        found = json.loads(path.read_text(encoding="utf8"))
        same = (found["device"], found["pipeline"]) == (device_name(gpu_id), pipeline_digest(settings))
        return found["words"] if same else 0
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not what find-batch-size writes ({error!r}); run it again") from error


def pipeline_digest(settings: Config) -> str:
    """Return a digest that is the same for pipelines that need the same memory."""
    return hashlib.sha256(json.dumps(settings["components"], sort_keys=True).encode()).hexdigest()
