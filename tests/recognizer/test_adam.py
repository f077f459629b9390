"""Adam for many parameters at a time, against thinc's for one after the other."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from thinc.api import Adam as ThincAdam  # noqa: E402

from labelwise.recognizer.adam import Adam, takes_at_once  # noqa: E402


def make_module(seed: int = 0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.LayerNorm(5), torch.nn.Linear(5, 3))


def learn(module, step: int) -> None:
    """Leave gradients, large and small ones; the last layer has none in every other step."""
    torch.manual_seed(step)
    hidden = module[1](module[0](torch.randn(4, 7)))
    (module[2](hidden) if step % 2 else hidden).pow(2).sum().mul(10.0 ** (step % 3 - 1)).backward()
    if not step % 2:
        for tensor in module[2].parameters():
            tensor.grad = None


def one_by_one(optimizer, module) -> None:
    for name, tensor in module.named_parameters():
        if tensor.grad is not None:
            weights, _ = optimizer((1, name), tensor.data.numpy(), tensor.grad.numpy())
            tensor.data = torch.from_numpy(weights)
            tensor.grad.zero_()


@pytest.mark.parametrize("decay", [True, False])
@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_steps_are_thincs(decay, clip):
    modules = make_module(), make_module()
    settings = {"L2": 0.1, "grad_clip": clip, "L2_is_weight_decay": decay, "use_averages": False}
    optimizers = ThincAdam(0.01, **settings), ThincAdam(0.01, **settings)
    adam = Adam()
    for step in range(8):
        learn(modules[0], step)
        for one, other in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
            other.grad = None if one.grad is None else one.grad.clone()
        one_by_one(optimizers[0], modules[0])
        adam.step(optimizers[1], 1, modules[1].named_parameters())
        for optimizer in optimizers:
            optimizer.step_schedules()
    assert optimizers[0].nr_update == optimizers[1].nr_update
    for one, other in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        np.testing.assert_allclose(other.detach(), one.detach(), rtol=2e-5, atol=2e-6)
        assert other.grad is None or not other.grad.any()
    for name in ("mom1", "mom2"):
        moments = [getattr(optimizer, name) for optimizer in optimizers]
        assert moments[0].keys() == moments[1].keys()
        for key, value in moments[0].items():
            np.testing.assert_allclose(moments[1][key], value, rtol=2e-5, atol=1e-6)


def test_moments_that_were_restored_go_on_to_the_bit():
    module, optimizer, adam = make_module(), ThincAdam(0.01, use_averages=False), Adam()
    for step in range(3):
        learn(module, step)
        adam.step(optimizer, 1, module.named_parameters())
    saved = {name: {key: value.copy() for key, value in getattr(optimizer, name).items()} for name in ("mom1", "mom2")}
    other, counts = copy.deepcopy(module), dict(optimizer.nr_update)
    learn(module, 3)
    adam.step(optimizer, 1, module.named_parameters())
    optimizer.mom1, optimizer.mom2 = saved["mom1"], saved["mom2"]
    optimizer.nr_update.update(counts)
    learn(other, 3)
    adam.step(optimizer, 1, other.named_parameters())
    for one, again in zip(module.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, again)


def test_what_is_something_else_is_left_to_thinc():
    assert takes_at_once(ThincAdam(0.01, use_averages=False))
    assert not takes_at_once(ThincAdam(0.01, use_averages=True))
    assert not takes_at_once(ThincAdam(0.01, beta1=0.0, use_averages=False))
