"""Train for some steps, and look at what the monitor saw in them: what the training benchmarks share."""

import csv
import shutil
from pathlib import Path

from spacy.util import load_config

from benchmarks.measure import Measured, measure

DEV = 300  # texts, roughly
WARM_UP = 10  # steps that aren't counted


def make_corpus(docs: int, out: Path) -> Path:
    """Make and merge data sets of 5 labels over `docs` texts, unless that is done."""
    corpus = out / f"corpus-{docs}"
    if not (corpus / "manifest.json").exists():
        tasks = out / f"tasks-{docs}"
        measure("scripts.make_demo", str(tasks), *f"--format prodigy --docs {docs} --labels 5 --words 790".split())
        options = f"--tokenizer project.yml --near-duplicates off --dev-ratio {DEV / docs} --test-ratio 0"
        measure("scripts.merge", str(tasks / "datasets.yml"), str(corpus), *options.split())
        shutil.rmtree(tasks)
        shutil.rmtree(corpus / ".cache")
    return corpus


def train_steps(
    config_file: Path, corpus: Path, out: Path, steps: int, *options: str, module: str = "scripts.train"
) -> tuple[Measured, list[dict[str, float]]]:
    """Train for `steps` steps, evaluating only at the first and the last.

    RETURNS (tuple): what the command took, and what the monitor saw in the steps after the warm-up, one row per sample.
    """
    config = load_config(config_file, interpolate=False)
    config["training"] |= {"max_steps": steps, "eval_frequency": steps}
    config.to_disk(out / "config.cfg")
    resources = out / "resources.tsv"
    files = [str(out / "config.cfg"), str(corpus), str(out / "model"), "--curve", str(out / "curve.tsv")]
    taken = measure(module, *files, "--resources", str(resources), *options)
    with resources.open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file, delimiter="\t")]
    # Samples come at equal intervals; while the last step is evaluated, the one before is the last that was taken.
    return taken, [row for row in rows if WARM_UP <= row["step"] < steps - 1]
