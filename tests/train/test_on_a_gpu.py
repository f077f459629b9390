"""Training on a pretended GPU: no numpy array among its own."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from thinc.backends import context_pools

from labelwise.base.parallel import open_pool
from labelwise.train.checkpoint import restore, take_arrays
from labelwise.train.config import fit_config, make_pipeline
from labelwise.train.held_out import fit
from labelwise.train.loop import train_while_improving
from labelwise.train.parameters import clear_gradients, find_parameters
from labelwise.train.training import Training
from labelwise.train.training_config import TrainingConfig
from tests.conftest import task
from tests.pretend_gpu import pretended
from tests.train.training import CPU, GPU, STEPS, with_bert


def add_texts(merging) -> None:
    for split, numbers in (("train", range(24)), ("dev", range(24, 30))):
        texts = [f"Ann met {number} dogs in Rome. " * (1 + number % 5) for number in numbers]
        gold = [task(text, (0, 3, "A"), (4, 7, "B")) for text in texts[::2]]
        merging.add(f"gold-{split}", ["A", "B"], gold, split=split)
        judged = [
            task(text, (4, 7, "C"), answer=answer, _view_id="ner")
            for text, answer in zip(texts, ("accept", "reject", "reject") * 8, strict=False)
        ]
        merging.add(f"judged-{split}", ["C"], judged, kind="binary", split=split)


def test_a_pool_of_cupys_is_not_asked_for():
    """thinc's shim fails if cupy is installed without a driver."""
    before = context_pools.get()
    with pretended():
        assert "pytorch" in context_pools.get()
    assert context_pools.get() is before


@pytest.mark.parametrize("kind", ["tok2vec", "transformer", "prepared"])
def test_a_whole_life_asks_for_nothing_that_a_gpu_refuses(request, merging, tmp_path, kind):
    add_texts(merging)
    merging.run(near_duplicates="off")
    overrides = STEPS if kind == "tok2vec" else with_bert(request.getfixturevalue("tiny_bert"))
    recipe = TrainingConfig(CPU if kind == "tok2vec" else GPU, merging.root / "corpus", overrides=overrides)
    with open_pool(1) if kind == "prepared" else nullcontext() as background, pretended():
        nlp = make_pipeline(fit_config(recipe))
        ner: Any = nlp.get_pipe("ner")
        training = Training(recipe, nlp, checkpoint=tmp_path)
        training.background = background
        first, *_, last = [
            info["losses"]["ner"] for info in train_while_improving(training) if info["score"] is not None
        ]
        fit(nlp, training.dev.texts())
        np.savez(tmp_path / "arrays.npz", **take_arrays(training))
        training.state.updates = [training.optimizer.nr_update[slot.key] for slot in find_parameters(nlp)]
        for slot in find_parameters(nlp):
            slot.gradient()[...] = slot.gradient() * 0
        clear_gradients(nlp)
        nlp.config["training"]["max_steps"] += 2
        resumed = Training(recipe, nlp, training.state, tmp_path)
        resumed.background = background
        restore(resumed)
        assert len(list(train_while_improving(resumed))) == 2
        again = make_pipeline(fit_config(recipe))
        again.get_pipe("ner").from_bytes(ner.to_bytes())  # type: ignore[attr-defined]
        assert list(again.pipe(doc.text for doc in training.dev.texts()))
    assert last < first
