"""How much faster does any spaCy pipeline predict if numpy multiplies its matrices, and not BLIS?

    python -m benchmarks.plain_spacy en_core_web_sm texts/       # any pipeline, any folder of .txt files
    python -m benchmarks.plain_spacy training/cpu/model-best assets/wnut2020_wlp/dev

Each process has one thread, loads the pipeline, and predicts the texts; those with BLIS and those with numpy's OpenBLAS
take turns. Both must find the same entities.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

PREDICT = """
import sys, time
from pathlib import Path
import spacy
from thinc.api import NumpyOps, set_current_ops
set_current_ops(NumpyOps(use_blis=sys.argv[1] == "BLIS"))  # before the pipeline is loaded
nlp = spacy.load(sys.argv[2])
texts = [path.read_text(encoding="utf8") for path in sorted(Path(sys.argv[3]).rglob("*.txt"))]
list(nlp.pipe(texts[:5]))
start = time.perf_counter()
docs = list(nlp.pipe(texts))
seconds = time.perf_counter() - start
ents = [(ent.start_char, ent.end_char, ent.label_) for doc in docs for ent in doc.ents]
print(sum(map(len, docs)) / seconds, len(ents), hash(tuple(ents)))
"""


def main(
    model: Annotated[str, typer.Argument(help="Name or folder of a pipeline")],
    texts: Annotated[Path, typer.Argument(help="Folder with .txt files")],
    rounds: Annotated[int, typer.Option(help="How often each is measured")] = 5,
) -> None:
    """Predict in turn, and print the median speeds and the median of their ratios."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    speeds: dict[str, list[float]] = {"BLIS": [], "OpenBLAS": []}
    found = set()
    for _ in range(rounds):
        for name, measured in speeds.items():
            command = [sys.executable, "-c", PREDICT, name, model, str(texts)]
            printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            speed, *entities = printed.split()
            measured.append(float(speed))
            found.add(tuple(entities))
    ratio = median(new / old for old, new in zip(*speeds.values(), strict=True))
    medians = ", ".join(f"{name} {median(each):,.0f}" for name, each in speeds.items())
    print(f"{medians} tokens a second: {ratio:.2f} times")
    print("the same entities" if len(found) == 1 else f"entities differ: {found}")


if __name__ == "__main__":
    typer.run(main)
