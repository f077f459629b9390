"""Predict any number of raw texts with a trained pipeline."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, progress, run, user_errors
from labelwise.base.text import counted
from labelwise.base.workers import choose_workers
from labelwise.corpus.pipeline import gpu_of
from labelwise.evaluate.predict import Done, predict_texts
from labelwise.evaluate.predict_files import predict_files
from labelwise.sources.raw_texts import count_raw_texts

Option = typer.Option


def predict_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a trained pipeline, such as cpu; or its folder")],
    inputs: Annotated[list[Path], typer.Argument(help="Folders, or .txt, .jsonl or .jsonl.gz files")],
    out: Annotated[
        Path, Option(help="JSONL file, such as raw.jsonl; or a folder, with a file for each input, to stop and resume")
    ],
    gpu_id: Annotated[int | None, Option(help="Number of the GPU; -1 for the CPU; default: the config's")] = None,
    workers: Annotated[int, Option(help="Processes that predict, on the CPU")] = 1,
) -> None:
    """Predict any number of raw texts with a trained pipeline."""
    problems: Counter[str] = Counter()
    texts = words = 0
    model = Path("training", pipeline, "model-best")
    model = model if model.is_dir() else Path(pipeline)
    with user_errors("Nothing was predicted"):
        gpu_id = gpu_of(model / "config.cfg") if gpu_id is None else gpu_id
        predict = predict_texts if out.suffix and not out.is_dir() else predict_files
        parts = predict(model, inputs, out, workers=choose_workers(workers, gpu_id), gpu_id=gpu_id)
        for done in progress(parts, "predict", count_raw_texts(inputs), Done.size):
            texts, words = texts + done.texts, words + done.words
            problems += done.problems
    print_counts("Texts that can't be used", problems)
    msg.good(f"{counted(texts, 'text')} of {counted(words, 'word')}: {out}")
    msg.info(f"For annotators: python -m scripts.export {out} FOLDER")


if __name__ == "__main__":
    run(predict_cli)
