"""The logger of a training: a table and a bar, the curve for DVC, and the use of the machine."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import spacy
from spacy.language import Language

from labelwise.base.console import Bar
from labelwise.base.text import describe_seconds

Log = Callable[[dict[str, Any] | None], None]
ROW = "{:>6}  {:>6}  {:>8}  {:>11}"


@spacy.registry.loggers("labelwise.Logger.v1")
def make_logger(
    path: Path | None, resources: Path | None = None
) -> Callable[[Language, IO[str], IO[str]], tuple[Log, Callable[[], None]]]:
    """Make a logger that prints a row per evaluation, and a bar on terminals, and writes two files.

          STEP   SCORE   WORDS/S    TIME LEFT
           100   0.712     8,290    2 minutes

    path (Path | None): curve, a TSV file to append to; None under `spacy train`.
    resources (Path | None): TSV file for speed, memory, waits and the GPU's load over time.
    """

    def setup(nlp: Language, stdout: IO[str], stderr: IO[str]) -> tuple[Log, Callable[[], None]]:
        training = nlp.config["training"]
        losses = [name for name, component in nlp.pipeline if getattr(component, "is_trainable", False)]
        scores = sorted(name for name, weight in training["score_weights"].items() if weight is not None)
        last, began, steps = training["max_steps"], time.monotonic(), 0
        bar = Bar("steps", last + 1 if last else None)
        print(ROW.format("STEP", "SCORE", "WORDS/S", "TIME LEFT"), file=stdout)

        def log(info: dict[str, Any] | None) -> None:
            nonlocal steps
            if not info:
                return
            if not steps:  # a training that resumes doesn't begin at 0
                bar.initial = bar.n = info["step"]
            bar.update()
            steps += 1
            if info["score"] is None:
                return
            row = {name: info[name] for name in ("step", "epoch", "words")}
            row |= {f"loss_{name}": f"{info['losses'].get(name, 0.0):.6g}" for name in losses}
            row |= {"score": f"{info['score']:.4f}"}
            row |= {name: f"{info['other_scores'].get(name) or 0.0:.4f}" for name in scores}
            if path:
                append_row(Path(path), row)
            used = info.get("resources", {})
            if resources and used:
                append_row(Path(resources), used)
            seconds = (time.monotonic() - began) / steps * (last - info["step"])
            time_left = describe_seconds(seconds) if seconds > 0 else ""
            cells = info["step"], f"{info['score']:.3f}", f"{used.get('words_per_second', 0):,.0f}", time_left
            bar.clear()
            print(ROW.format(*cells).rstrip(), file=stdout)

        return log, bar.close

    return setup


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a line to a TSV file, after column names in a new file."""
    new = not path.exists()
    with path.open("a", encoding="utf8") as file:
        for fields in ([row.keys()] if new else []) + [row.values()]:
            file.write("\t".join(map(str, fields)) + "\n")
