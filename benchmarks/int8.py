"""Is a transformer whose matrices are whole numbers of 8 bits worth it on the CPU? Size, words a second, and F.

    .venv-dev/bin/python -m benchmarks.int8 benchmarks/out/wnut2020_wlp/minilm benchmarks/out/wnut2020_wlp/corpus/test

PyTorch's dynamic quantization: weights of linear layers are rounded once, activations by batch. One thread; the
original and the rounded one predict the same texts in turn.
"""

import io
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer
from spacy.language import Language

from labelwise.common.device import use_gpu
from labelwise.evaluate.predict import load_pipeline
from labelwise.train.reader import read_docs


def shim_of(nlp: Language) -> Any:
    """Find what holds the PyTorch model of a pipeline's transformer, as its attribute `_model`."""
    model = nlp.get_pipe("transformer").model  # type: ignore[attr-defined]
    (shim,) = (shim for node in model.walk() for shim in node.shims)
    return shim


def size_of(model: torch.nn.Module) -> float:
    """Tell how large a model is where it is saved, in MB."""
    torch.save(model.state_dict(), file := io.BytesIO())
    return file.tell() / 2**20


def predict(nlp: Language, docs: list[Any]) -> tuple[float, float]:
    """Predict texts; returns words a second, and F over entities without overlap."""
    start = time.perf_counter()
    found = list(nlp.pipe([doc.text for doc in docs]))
    seconds = time.perf_counter() - start
    right = predicted = gold = 0
    for one, other in zip(found, docs, strict=True):
        here, there = ({(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents} for doc in (one, other))
        right, predicted, gold = right + len(here & there), predicted + len(here), gold + len(there)
    return sum(map(len, found)) / seconds, 2 * right / max(predicted + gold, 1)


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a pipeline with a transformer")],
    split: Annotated[Path, typer.Argument(help="Split of a merged corpus")],
    texts: Annotated[int, typer.Option(help="How many texts of it")] = 60,
    rounds: Annotated[int, typer.Option(help="How often each is measured")] = 3,
) -> None:
    """Predict in turn, and print the medians."""
    use_gpu(-1)
    torch.set_num_threads(1)
    pipelines = {name: load_pipeline(model, name) for name in ("fp32", "int8")}
    shim = shim_of(pipelines["int8"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch announces that it will go
        shim._model = torch.ao.quantization.quantize_dynamic(shim._model, {torch.nn.Linear})
    docs = list(read_docs(split, pipelines["fp32"]))[:texts]
    speeds: dict[str, list[float]] = {name: [] for name in pipelines}
    scores = {}
    for _ in range(rounds):
        for name, nlp in pipelines.items():
            speed, scores[name] = predict(nlp, docs)
            speeds[name].append(speed)
    print("| weights | MB | words a second | F |\n|---|---|---|---|")
    for name, nlp in pipelines.items():
        size = size_of(shim_of(nlp)._model)
        print(f"| {name} | {size:.0f} | {median(speeds[name]):,.0f} | {scores[name]:.4f} |")
    ratio = median(new / old for old, new in zip(speeds["fp32"], speeds["int8"], strict=True))
    print(f"{ratio:.2f} times the speed, median of {rounds}, on {len(docs)} texts")


if __name__ == "__main__":
    typer.run(main)
