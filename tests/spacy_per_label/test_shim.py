from typing import Any

import numpy as np
import pytest
from thinc.api import Adam, Optimizer
from thinc.shims.pytorch_grad_scaler import PyTorchGradScaler

from spacy_per_label.transformer import halve, make_transformer
from tests.spacy_per_label.test_transformer import make_docs, ours

torch = pytest.importorskip("torch")


def shim_of(model: Any) -> Any:
    return next(shim for node in model.walk() for shim in node.shims)


def parameters(model: Any) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy().copy() for name, parameter in shim_of(model)._model.named_parameters()}


@pytest.mark.parametrize(("scaled", "dtype"), [(True, "float16"), (False, "bfloat16")])
def test_what_is_trained_in_half_precision_predicts_in_it(scaled, dtype, tiny_bert, monkeypatch):
    model, computed = ours(tiny_bert, mixed_precision=True, grad_scaler_config={"enabled": scaled}), []
    shim = shim_of(model)
    shim._model.encoder.layer[0].output.dense.register_forward_hook(lambda *told: computed.append(told[-1].dtype))
    for devices, expected in ((("cuda",), torch.float32), (("cuda", "cpu"), getattr(torch, dtype))):
        monkeypatch.setattr("spacy_per_label.shim.HALF", devices)
        for compute in (model.predict, model.begin_update):
            computed.clear()
            compute(make_docs())
            assert set(computed) == {expected}


ADAMW = {"L2": 0.01, "L2_is_weight_decay": True, "use_averages": False, "grad_clip": 1.0}


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        (ADAMW, 1e-5),  # PyTorch's, which decays before
        (ADAMW | {"use_averages": True}, 0),
        (ADAMW | {"L2_is_weight_decay": False}, 0),
        (ADAMW | {"use_radam": True}, 0),
        (ADAMW | {"beta2": 0.0}, 0),
        ({"use_averages": False, "grad_clip": 0.0}, 1e-5),
    ],
)
def test_an_update_is_thincs_in_place(options, tolerance, tiny_bert):
    optimizer, other = (Optimizer(0.01, **{"beta1": 0.9, "beta2": 0.99} | options) for _ in range(2))
    model, rng = ours(tiny_bert, rate=0.5, decay=0.25), np.random.default_rng(0)
    shim, expected = shim_of(model), parameters(model)
    rates = {"encoder.layer.1": 0.5, "encoder.layer.0": 0.125, "embeddings": 0.03125}
    places = [parameter.data_ptr() for parameter in shim._model.parameters()]
    for size in (0.001, 1.0, 0.1):  # some are clipped
        for name, parameter in shim._model.named_parameters():
            if not name.startswith("pooler"):  # which has no gradient
                gradient = rng.normal(0, size, parameter.shape).astype("float32")
                parameter.grad = torch.from_numpy(gradient.copy())
                [rate] = [rates[part] for part in rates if name.startswith(part)]
                other((shim.id, name), expected[name], gradient, lr_scale=rate)
        model.finish_update(optimizer)
    assert places == [parameter.data_ptr() for parameter in shim._model.parameters()]
    for name, value in parameters(model).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=tolerance, err_msg=name)
    assert dict(optimizer.nr_update) == dict(other.nr_update)


def test_an_update_goes_on_with_the_moments_that_an_optimizer_is_given(tiny_bert):
    learned = []
    for again in (False, True):
        model, optimizer = ours(tiny_bert), Optimizer(0.01, beta1=0.9, beta2=0.99, use_averages=False)
        for number in range(4):
            vectors, backprop = model.begin_update(make_docs())
            backprop([vector * 0 + number - 1 for vector in vectors])
            if again and number == 2:
                before, optimizer = optimizer, Optimizer(0.01, beta1=0.9, beta2=0.99, use_averages=False)
                optimizer.nr_update.update(before.nr_update)
                for name in ("mom1", "mom2"):
                    getattr(optimizer, name).update({key: one.copy() for key, one in getattr(before, name).items()})
            model.finish_update(optimizer)
        learned.append(parameters(model))
    for name, value in learned[0].items():
        np.testing.assert_array_equal(value, learned[1][name], err_msg=name)


def test_half_weights_take_half_the_space_and_vectors_hardly_change(tiny_bert, tmp_path):
    saved = []
    model = ours(tiny_bert)
    with torch.no_grad():
        shim_of(model)._model.pooler.dense.bias[0] = 1e6
    model.to_disk(tmp_path / "model")
    for _ in range(2):
        loaded = make_transformer("other").from_disk(tmp_path / "model")
        assert {parameter.dtype for parameter in shim_of(loaded)._model.parameters()} == {torch.float32}
        assert shim_of(loaded)._model.pooler.dense.bias[0] == 1e6
        saved.append(((tmp_path / "model").stat().st_size, np.concatenate(loaded.predict(make_docs()))))
        halve(model, tmp_path / "model")
        np.testing.assert_array_equal(
            np.concatenate(model.predict(make_docs())),
            np.concatenate(make_transformer("other").from_disk(tmp_path / "model").predict(make_docs())),
        )
    (whole, vectors), (half, rounded) = saved
    tensors = 4 * sum(parameter.numel() for parameter in shim_of(model)._model.parameters())
    assert whole - half == pytest.approx(tensors / 2, rel=0.05)
    np.testing.assert_allclose(rounded, vectors, atol=0.02)
    assert np.abs(rounded - vectors).max() > 1e-5


def test_scaled_gradients_of_parts_are_unscaled_once_and_an_overflow_changes_nothing(tiny_bert, monkeypatch):
    """thinc's scaler works on the CPU as well, except for a check."""
    monkeypatch.setattr(PyTorchGradScaler, "_scale_tensor", lambda self, tensor, *args: tensor.mul_(self._scale))
    plain, scaled = ours(tiny_bert), ours(tiny_bert, grad_scaler_config={"enabled": True, "init_scale": 1024.0})
    for model in (plain, scaled):
        optimizer = Adam(0.01)
        for number in range(3):
            for docs in (make_docs()[:3], make_docs()[3:]):
                vectors, backprop = model.begin_update(docs)
                # In the second step, a gradient is infinite.
                backprop([vector * 0 + (np.inf if number == 1 and model is scaled else 1) for vector in vectors])
            if number != 1 or model is scaled:
                model.finish_update(optimizer)
            for parameter in shim_of(model)._model.parameters():
                assert parameter.grad is None or number == 1 or not parameter.grad.any()
                parameter.grad = None
    for name, value in parameters(scaled).items():
        np.testing.assert_allclose(value, parameters(plain)[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert shim_of(scaled)._grad_scaler._scale.item() == 512


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("steps", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_updates_keep_no_memory(steps, averages, tiny_bert):
    """Less than a kilobyte a step, with 39 tensors; the long test is of whole steps."""
    process, parallel = pytest.importorskip("psutil").Process(), pytest.importorskip("labelwise.base.parallel")
    model, optimizer = ours(tiny_bert), Adam(0.001, use_averages=averages)
    tensors = list(shim_of(model)._model.parameters())

    def used_after(count: int) -> int:
        for number in range(count):
            if steps > 300:
                vectors, backprop = model.begin_update(make_docs()[:1])
                backprop(vectors)
            for tensor in tensors:
                tensor.grad = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
            model.finish_update(optimizer)
            if number % 50 == 49:
                parallel.trim_heap()  # as a training does
        return process.memory_full_info().uss

    used = [used_after(steps // 5) for _ in range(6)]
    assert np.median(np.diff(used)) / (steps // 5) < 1024  # a single jump is garbage that waits
