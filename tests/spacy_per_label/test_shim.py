"""What holds a transformer: its precision, how it is updated, and what it keeps."""

import gc
from typing import Any

import numpy as np
import psutil
import pytest
from thinc.api import Adam
from thinc.shims.pytorch_grad_scaler import PyTorchGradScaler

from tests.spacy_per_label.test_transformer import make_docs, ours

torch = pytest.importorskip("torch")


def shim_of(model: Any) -> Any:
    return next(shim for node in model.walk() for shim in node.shims)


def parameters(model: Any) -> dict[str, np.ndarray]:
    return {name: one.detach().numpy().copy() for name, one in shim_of(model)._model.named_parameters()}


@pytest.mark.parametrize(("scaled", "dtype"), [(True, "float16"), (False, "bfloat16")])
def test_what_is_trained_in_half_precision_predicts_in_it(scaled, dtype, tiny_bert, monkeypatch):
    """As if the CPU were a GPU; without that, it computes in single precision."""
    model, computed = ours(tiny_bert, mixed_precision=True, grad_scaler_config={"enabled": scaled}), []
    shim = shim_of(model)
    shim._model.encoder.layer[0].output.dense.register_forward_hook(lambda *told: computed.append(told[-1].dtype))
    for devices in (("cuda",), ("cuda", "cpu")):
        monkeypatch.setattr("spacy_per_label.shim.HALF", devices)
        model.predict(make_docs())
        model.begin_update(make_docs())
    assert computed == [torch.float32] * 2 + [getattr(torch, dtype)] * 2


def test_an_update_is_thincs_adam_in_place(tiny_bert):
    model, optimizer, other = ours(tiny_bert), Adam(0.01, L2=0.01), Adam(0.01, L2=0.01)
    shim, expected = shim_of(model), parameters(model)
    places = [one.data_ptr() for one in shim._model.parameters()]
    for _ in range(3):
        vectors, backprop = model.begin_update(make_docs())
        backprop([one * 0 + 1 for one in vectors])
        for name, one in shim._model.named_parameters():
            if one.grad is not None:
                other((shim.id, name), expected[name], one.grad.numpy().copy())
        model.finish_update(optimizer)
    assert places == [one.data_ptr() for one in shim._model.parameters()]
    for name, value in parameters(model).items():
        np.testing.assert_array_equal(value, expected[name])


def test_scaled_gradients_of_parts_are_unscaled_once_and_an_overflow_changes_nothing(tiny_bert, monkeypatch):
    """thinc's scaler is for GPUs, but for the check it works on the CPU as well."""
    monkeypatch.setattr(PyTorchGradScaler, "_scale_tensor", lambda self, tensor, *given: tensor.mul_(self._scale))
    plain, scaled = ours(tiny_bert), ours(tiny_bert, grad_scaler_config={"enabled": True, "init_scale": 1024.0})
    for model in (plain, scaled):
        optimizer = Adam(0.01)
        for number in range(3):
            for docs in (make_docs()[:3], make_docs()[3:]):
                vectors, backprop = model.begin_update(docs)
                # In the second step, a gradient is infinite.
                backprop([one * 0 + (np.inf if number == 1 and model is scaled else 1) for one in vectors])
            if number != 1 or model is scaled:
                model.finish_update(optimizer)
            for one in shim_of(model)._model.parameters():
                assert one.grad is None or number == 1 or not one.grad.any()
                one.grad = None
    for name, value in parameters(scaled).items():
        np.testing.assert_allclose(value, parameters(plain)[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert shim_of(scaled)._grad_scaler._scale.item() == 512


@pytest.mark.parametrize("steps", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_updates_keep_no_memory(steps, tiny_bert):
    """Less than a kilobyte a step, where there are 39 tensors."""
    model, optimizer, process = ours(tiny_bert), Adam(0.001), psutil.Process()
    shim = shim_of(model)

    def step() -> int:
        if steps > 300:
            vectors, backprop = model.begin_update(make_docs())
            backprop(vectors)
        else:
            for one in shim._model.parameters():
                one.grad = torch.zeros_like(one) if one.grad is None else one.grad
        model.finish_update(optimizer)
        return process.memory_full_info().uss

    for _ in range(100):
        step()
    gc.collect()
    before = step()
    used = [step() for _ in range(steps)]
    assert (used[-1] - before) / steps < 1024
