"""The work that a GPU waits for: CPU time of a training and an evaluation outside of what it would compute meanwhile.

    .venv-dev/bin/python -m benchmarks.gpu_work [CORPUS]

MiniLM is trained on the CPU, in one thread, on the tests' pretended GPU: what it computes, the transformer and the
optimizer are left out of the thread's CPU time; so is what isn't done in each step: the last step's pipeline is
evaluated and saved. The rest is serial. To ask a real GPU for something takes some 10 microseconds each time, which
aren't in it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from thinc.api import Optimizer, PyTorchShim, fix_random_seed

from benchmarks.measure import write_result
from benchmarks.minilm import OUT, write_config
from labelwise.evaluate import run as evaluate_run
from labelwise.evaluate.predict import predict_split
from labelwise.train import loop as train_loop
from labelwise.train import run as train_run
from labelwise.train.checkpoint import Checkpoints
from labelwise.train.loop import Loop
from labelwise.train.recipe import Recipe
from tests import pretend_gpu
from tests.pretend_gpu import Array, Cupy, DeviceOps, pretended

SECONDS: Counter[str] = Counter()
ONCE = "once"  # what isn't done in each step
LAST: dict[str, float] = {}  # what SECONDS was at the end of what was timed


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Add the CPU time of a block to a name's; of blocks within each other, the outer one counts."""
    if SECONDS["depth"]:
        yield
        return
    SECONDS["depth"] += 1
    start = time.thread_time()
    try:
        yield
    finally:
        SECONDS[name] += time.thread_time() - start  # type: ignore[assignment]
        SECONDS["depth"] -= 1


def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function's CPU time counted, and that of the callback that it returns for a backward pass."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with counted(name):
            result = function(*args, **kwargs)
        if isinstance(result, tuple) and len(result) == 2 and callable(result[1]):
            return result[0], wrapped(name, result[1])
        return result

    return call


def count_methods(name: str, owner: type, *methods: str) -> None:
    """Have the time counted that methods of a class take."""
    for method in methods:
        function = wrapped(name, getattr(owner, method))
        setattr(
            owner, method, staticmethod(function) if isinstance(vars(owner).get(method), staticmethod) else function
        )


def count_pretended() -> None:
    """Have the time counted that the pretended GPU takes."""
    pretend_gpu.here = lambda: ""  # to look for the line would take longer than all else
    count_methods("GPU", Array, "__array_ufunc__", "__array_function__", "__getitem__", "__setitem__")
    count_methods("GPU", DeviceOps, "clip_gradient", "get_dropout_mask", *pretend_gpu.KERNELS.split())
    count_methods("GPU", Cupy, "scatter_add")
    for owner in (Array, Cupy):
        setattr(owner, "__getattr__", giving_counted(owner.__getattr__))  # noqa: B010


def giving_counted(getter: Callable[..., Any]) -> Callable[..., Any]:
    """Have the time counted that the functions take which a getter gives."""

    def get(*args: Any) -> Any:
        value = getter(*args)
        return wrapped("GPU", value) if callable(value) and not isinstance(value, type) else value

    return get


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have SECONDS begin with a function, and end with it."""

    def call(*args: Any) -> Any:
        SECONDS.clear()
        start = time.thread_time()
        result = function(*args)
        SECONDS["all"] = time.thread_time() - start  # type: ignore[assignment]
        LAST.update(SECONDS)
        return result

    return call


def row(phase: str, words: int) -> tuple[str | float, ...]:
    """Tell what the last timed function took for 1,000 words, in milliseconds."""
    names = ("all", ONCE, "transformer", "GPU", "optimizer")
    all_of_it, left_out, *others = (1e6 * LAST.pop(name, 0) / words for name in names)
    return phase, words, all_of_it - left_out - sum(others), *others


def main(
    corpus: Annotated[Path, typer.Argument(help="Merged corpus")] = OUT / "corpus",
    steps: Annotated[int, typer.Option(help="Training steps")] = 10,
    size: Annotated[int, typer.Option(help="Words per batch; those of configs/gpu.cfg")] = 6000,
) -> None:
    """Train and predict; print what each took for 1,000 words, in CPU milliseconds."""
    torch.set_num_threads(1)
    count_pretended()
    count_methods("transformer", PyTorchShim, "begin_update", "predict")
    count_methods("optimizer", PyTorchShim, "finish_update")
    count_methods("optimizer", Optimizer, "__call__")
    count_methods(ONCE, Loop, "score", "save_best")
    count_methods(ONCE, Checkpoints, "save")
    Loop.run = timed(Loop.run)  # type: ignore[method-assign]
    train_loop.give_back = wrapped(ONCE, train_loop.give_back)
    train_run.use_gpu = evaluate_run.use_gpu = lambda gpu_id: None
    config = write_config(OUT / "gpu_work.cfg", steps, size)
    overrides = {"training.max_steps": steps, "training.eval_frequency": 10 * steps}
    model = OUT / "gpu_work"
    with pretended():
        fix_random_seed(0)
        trained = train_run.train_pipeline(Recipe(config, corpus, overrides=overrides), model, OUT / "gpu_work.tsv")
        assert trained
        rows = [row("training", trained.words)]
        parts = predict_split(model, corpus / "dev", OUT / "gpu_work.jsonl")
        rows.append(row("evaluation", timed(lambda: sum(part.words for part in parts))()))
    columns = {"": "", "words": ",", "serial": ".1f", "transformer": ".1f", "GPU": ".1f", "optimizer": ".1f"}
    write_result("gpu_work", columns, rows, note="CPU milliseconds for 1,000 words.")


if __name__ == "__main__":
    typer.run(main)
