"""Does training give the same bytes on another processor?

    python -m benchmarks.portable

The demo corpus is trained on and evaluated, as this processor does it and as it does with `portable = true` in the
config, and each also with the code that other processors would have chosen. A line has the digests of the pipeline's
weights and of what it predicts for the test texts. On another machine, the lines of `portable` should be the same.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated

import typer
from spacy.util import load_config

from benchmarks.measure import measure, write_result
from labelwise.common.portable import BEYOND_V3, DISABLED, KERNELS

OUT = Path("benchmarks/out/portable")
# As a processor without AVX-512 or AVX2 would choose; what this one lacks changes nothing.
OTHERS = {
    "this": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell", DISABLED: BEYOND_V3},
    "Sandy Bridge": {"OPENBLAS_CORETYPE": "Sandybridge", DISABLED: f"{BEYOND_V3} X86_V3"},
}


def main(
    steps: Annotated[int, typer.Option(help="Training steps")] = 200,
    recognizer: Annotated[list[str], typer.Option(help="per-label | ner")] = ["per-label", "ner"],  # noqa: B006
) -> None:
    """Train, evaluate, and write a table."""
    corpus, model, scores = OUT / "corpus", OUT / "model", OUT / "scores.json"
    if not corpus.exists():
        measure("scripts.make_demo", str(OUT / "brat"))
        measure("scripts.convert_brat", str(OUT / "brat"), str(OUT / "tasks"))
        measure("scripts.merge", str(OUT / "tasks" / "datasets.yml"), str(corpus), "--project", "project.yml")
    rows = []
    for name in recognizer:
        for portable in ("no", "yes"):
            for other, environment in OTHERS.items():
                if portable == "yes" and "X86_V3" in environment.get(DISABLED, ""):
                    continue  # it is refused there
                for variable in KERNELS:
                    os.environ.pop(variable, None)
                os.environ.update(environment)
                config = load_config("configs/cpu.cfg", {"labelwise.portable": portable == "yes"}, interpolate=False)
                config.to_disk(OUT / "own.cfg")
                options = ["--curve", str(OUT / "c.tsv"), "--max-steps", str(steps), "--recognizer", name]
                measure("scripts.train", str(OUT / "own.cfg"), str(corpus), str(model), *options)
                measure("scripts.evaluate", str(model), str(corpus / "test"), str(scores))
                found = json.loads(scores.read_text(encoding="utf8"))
                weights = hashlib.sha256((model / "tok2vec" / "model").read_bytes())
                weights.update((model / "ner" / "model").read_bytes())
                digests = [weights.hexdigest()[:12], found["predictions_digest"][:12]]
                rows.append([name, portable, other, *digests])
    names = ("recognizer", "portable", "code for", "weights", "predictions")
    write_result("portable", dict.fromkeys(names, ""), rows)


if __name__ == "__main__":
    typer.run(main)
