"""The layer of neighbors and means: a product on a GPU, thinc's kernel on the CPU."""

from typing import Any

import numpy as np
import pytest
from thinc.api import Linear, Model

from spacy_per_label.model import make_heads
from tests.pretend_gpu import Array, DeviceOps, pretended

SIZES = [7, 0, 1, 300, 2]


def around(to_device: Any, from_device: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the output for neighbors and means, and the gradients of the input."""
    rng = np.random.default_rng(0)
    inputs, gradients = ([rng.normal(size=(size, width)).astype("float32") for size in SIZES] for width in (4, 24))
    tok2vec: Model = Linear(4, 4)
    layer: Any = next(node for node in make_heads(tok2vec).walk() if node.name == "around")
    outputs, backprop = layer(list(map(to_device, inputs)), True)
    return [*map(from_device, outputs)], [*map(from_device, backprop(list(map(to_device, gradients))))]


def test_a_gpu_computes_what_the_cpu_does_without_a_thread_for_each_text(monkeypatch):
    expected = around(np.copy, np.copy)
    monkeypatch.setattr(DeviceOps, "reduce_mean", lambda *args: pytest.fail("thinc's kernel"))
    with pretended():
        found = around(Array, lambda array: array.get())
    for ours, theirs in zip(found, expected, strict=True):
        for size, one, other in zip(SIZES, ours, theirs, strict=True):
            assert one.shape == other.shape
            assert len(one) == size
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
