"""spaCy's own transformer pipeline: its config, and for `spacy train --code` a count of words and seconds."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.util import load_config, registry

TIMES: list[float] = []
WORDS: list[int] = []


@registry.batchers("kit.batcher.v1")
def make_batcher(size: int, buffer: int, discard_oversize: bool) -> Callable[[Iterable[Any]], Iterator[list[Any]]]:
    """Make spaCy's batches by padded words, and count their words."""
    make = registry.get("batchers", "spacy.batch_by_padded.v1")
    batch_by_padded = make(size=size, buffer=buffer, discard_oversize=discard_oversize, get_length=None)

    def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
        for batch in map(list, batch_by_padded(items)):
            WORDS.append(sum(len(eg.reference) for eg in batch))
            yield batch

    return batches


@registry.loggers("kit.Logger.v1")
def make_logger() -> Callable[..., Any]:
    """Record each step's end and the scores; print the time of some steps at once."""

    def setup(nlp: Any, stdout: Any = None, stderr: Any = None) -> Any:
        def log_step(info: dict[str, Any] | None) -> None:
            TIMES.append(time.perf_counter())
            count = len(TIMES)
            if count in (1, 10, 20, 40, 80, 120):
                seconds = (TIMES[-1] - TIMES[count // 2]) / max(1, count - 1 - count // 2)
                print("RESULT " + json.dumps({f"ms_until_step_{count}": round(1000 * seconds, 1)}), flush=True)
            if info:
                import torch

                memory = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
                scores = {key: value for key, value in info["other_scores"].items() if not isinstance(value, dict)}
                record = {"times": TIMES, "words": WORDS[:count], "losses": info["losses"], "scores": scores}
                record["memory"] = memory
                Path(os.environ["PEER_OUT"]).write_text(json.dumps(record, default=float))

        return log_step, lambda: None

    return setup


CONFIG = """
[paths]
train = null
dev = null
[system]
gpu_allocator = "pytorch"
seed = 0
[nlp]
lang = "en"
pipeline = ["transformer","ner"]
batch_size = 128
[components]
[components.transformer]
factory = "transformer"
[components.transformer.model]
@architectures = "spacy-transformers.TransformerModel.v3"
name = "NAME"
tokenizer_config = {"use_fast": true, "model_max_length": 512}
mixed_precision = true
[components.transformer.model.get_spans]
@span_getters = "spacy-transformers.strided_spans.v1"
window = 128
stride = 96
[components.transformer.model.grad_scaler_config]
enabled = true
init_scale = 1024.0
[components.ner]
factory = "ner"
[components.ner.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "ner"
extra_state_tokens = false
hidden_width = 64
maxout_pieces = 2
use_upper = false
nO = null
[components.ner.model.tok2vec]
@architectures = "spacy-transformers.TransformerListener.v1"
grad_factor = 1.0
[components.ner.model.tok2vec.pooling]
@layers = "reduce_mean.v1"
[corpora]
[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}
[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}
[training]
seed = 0
gpu_allocator = ${system.gpu_allocator}
dropout = 0.1
accumulate_gradient = ACCUMULATE
max_epochs = 0
max_steps = STEPS
patience = 0
eval_frequency = STEPS
[training.batcher]
@batchers = "kit.batcher.v1"
discard_oversize = false
size = SIZE
buffer = 256
[training.logger]
@loggers = "kit.Logger.v1"
[training.optimizer]
@optimizers = "Adam.v1"
[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
warmup_steps = WARM
total_steps = STEPS
initial_rate = RATE
"""


def write_config(path: Path, name: str, steps: int, size: int, accumulate: int, rate: float) -> None:
    """Write a training's config."""
    values = {
        "NAME": name,
        "STEPS": steps,
        "SIZE": size,
        "ACCUMULATE": accumulate,
        "WARM": max(1, steps // 10),
        "RATE": rate,
    }
    text = CONFIG
    for key, value in values.items():
        text = text.replace(key, str(value))
    path.write_text(text)
    load_config(path)
