"""The work that a GPU waits for: CPU time of a training and an evaluation outside of transformer and optimizer.

    .venv-dev/bin/python -m benchmarks.gpu_work [CORPUS]

MiniLM is trained on the CPU, in one thread. What PyTorch computes, and the optimizer, is left out of the process's CPU
time, as a GPU would do it meanwhile; so are memory that is given back, of which there is little with a GPU, and the
evaluation of the last step. The rest is serial. With `--ahead`, another process prepares the batches, as for a GPU.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from spacy.language import Language
from thinc.api import Optimizer, PyTorchShim, fix_random_seed

from benchmarks.measure import write_result
from benchmarks.minilm import OUT, write_config
from labelwise.common.device import use_gpu
from labelwise.common.memory import Trimmer
from labelwise.evaluate.predict import hold_pipeline, predict_split
from labelwise.recognizer import per_label
from labelwise.train import loop as train_loop
from labelwise.train.checkpoints import Checkpoints
from labelwise.train.loop import Run
from labelwise.train.recipe import Recipe
from labelwise.train.run import train

SECONDS: Counter[str] = Counter()
LAYERS = ("around", "context", "dropout", "expand_window", "heads", "layernorm", "maxout", "reduce_mean")
LAST: dict[str, float] = {}  # what SECONDS was at the end of what was timed


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Add the CPU time of a block to a name's; of blocks within each other, the outer one counts."""
    if SECONDS["depth"]:
        yield
        return
    SECONDS["depth"] += 1
    start = time.process_time()
    try:
        yield
    finally:
        SECONDS[name] += time.process_time() - start  # type: ignore[assignment]
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
        setattr(owner, method, wrapped(name, getattr(owner, method)))


def count_layers(nlp: Language) -> None:
    """Have the time counted that the layers of a pipeline's recognizer take."""
    for node in nlp.get_pipe("ner").model.walk():  # type: ignore[attr-defined]
        if node.name in LAYERS:
            node._func = wrapped("recognizer", node._func)


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have SECONDS begin with a function, and end with it."""

    def call(*args: Any) -> Any:
        SECONDS.clear()
        start = time.process_time()
        result = function(*args)
        SECONDS["all"] = time.process_time() - start  # type: ignore[assignment]
        LAST.update(SECONDS)
        return result

    return call


def row(phase: str, words: int) -> tuple[str | float, ...]:
    """Tell what the last timed function took for 1,000 words, in milliseconds."""
    names = ("all", "the last step's evaluation", "transformer", "recognizer", "optimizer")
    all_of_it, left_out, *others = (1e6 * LAST.pop(name, 0) / words for name in names)
    return phase, words, all_of_it - left_out - sum(others), *others


def main(
    corpus: Annotated[Path, typer.Argument(help="Merged corpus")] = OUT / "corpus",
    steps: Annotated[int, typer.Option(help="Training steps")] = 40,
    ahead: Annotated[bool, typer.Option("--ahead", help="Prepare batches in another process")] = False,
) -> None:
    """Train and predict; print what each took for 1,000 words, in CPU milliseconds."""
    torch.set_num_threads(1)
    count_methods("transformer", PyTorchShim, "begin_update", "predict")
    count_methods("optimizer", PyTorchShim, "finish_update")
    count_methods("optimizer", Optimizer, "__call__")
    count_methods("the last step's evaluation", Run, "score", "save_best")
    count_methods("the last step's evaluation", Checkpoints, "save")
    count_methods("the last step's evaluation", Trimmer, "look")
    if ahead:
        own = train_loop.open_batches
        train_loop.open_batches = lambda nlp, reading, joint, clock, gpu_id: own(nlp, reading, joint, clock, 0)
    per_label.loss_and_gradient = wrapped("recognizer", per_label.loss_and_gradient)
    loop = timed(Run.train)

    def train_counted(run: Run, nlp: Language, *args: Any) -> None:
        """Train; what the recognizer's layers compute is left out."""
        count_layers(nlp)
        loop(run, nlp, *args)

    Run.train = train_counted  # type: ignore[assignment, method-assign]
    use_gpu(-1)
    fix_random_seed(0)
    config = write_config(OUT / "gpu_work.cfg", steps)
    overrides = {"training.max_steps": steps, "training.eval_frequency": 10 * steps}
    model = OUT / "gpu_work"
    trained = train(Recipe(config, corpus, overrides=overrides), model, OUT / "gpu_work.tsv")
    assert trained
    rows = [row("training", trained.words)]
    parts = predict_split(model, corpus / "dev", OUT / "gpu_work.jsonl")
    count_layers(hold_pipeline(model))
    rows.append(row("evaluation", timed(lambda: sum(part.words for part in parts))()))
    columns = {"": "", "words": ",", "serial": ".1f", "transformer": ".1f", "recognizer": ".1f", "optimizer": ".1f"}
    write_result("gpu_work", columns, rows, note="CPU milliseconds for 1,000 words.")


if __name__ == "__main__":
    typer.run(main)
