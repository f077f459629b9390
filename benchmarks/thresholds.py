"""What calibration and thresholds are worth: fitted on dev, tested on test.

    python -m benchmarks.thresholds benchmarks/out/wnut2020_wlp/corpus

The corpus is one that a merge has made, such as that of `python -m benchmarks.wnut2020_wlp`. One pipeline is trained;
then its thresholds are fitted for each purpose, in copies of it.
"""

import shutil
from pathlib import Path
from typing import Annotated

import spacy
import typer

from benchmarks.measure import measure
from labelwise.common.device import use_gpu
from labelwise.evaluate.run import evaluate
from labelwise.train.calibration import BETA, fit, write_fitted
from labelwise.train.reader import PartitionedCorpus

OUT = Path("benchmarks/out/thresholds")


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    steps: Annotated[int, typer.Option(help="Training steps")] = 400,
    seed: Annotated[int, typer.Option(help="Random seed")] = 0,
) -> None:
    """Train, fit, evaluate, and print a table."""
    trained = OUT / "trained"
    options = ["--curve", str(OUT / "curve.tsv"), "--max-steps", str(steps), "--seed", str(seed)]
    measure("scripts.train", "configs/cpu.cfg", str(corpus), str(trained), *options)
    use_gpu(-1)
    print("| `optimize` | P | R | F | mean of the labels' F | calibration error on dev (before) | on test |")
    print("|---|---|---|---|---|---|---|")
    for optimize in ("", *BETA):
        nlp, copy = spacy.load(trained), OUT / "fitted"
        nlp.get_pipe("ner").uncalibrate()  # type: ignore[attr-defined]
        fitted = fit(nlp, PartitionedCorpus(corpus / "dev")(nlp), optimize)  # type: ignore[arg-type]
        assert fitted is not None
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(trained, copy)
        write_fitted(copy, fitted)
        found = evaluate(copy, corpus / "test").metrics
        scores = [found.all_gold.p, found.all_gold.r, found.all_gold.f, found.all_gold.macro.f]
        cells = [optimize or "none", *(f"{score:.3f}" for score in scores if score is not None)]
        error = found.calibration_error or 0.0
        print("|", " | ".join([*cells, f"{fitted.after:.3f} ({fitted.before:.3f})", f"{error:.3f}"]), "|", flush=True)


if __name__ == "__main__":
    typer.run(main)
