import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelwise.corpus.record import RECORD
from labelwise.train.train_pipeline import TrainResult, train_pipeline
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT, TINY
from tests.spacy_per_label.bert import NO_DROPOUT

CPU, SMALL, GPU, NER = (ROOT / "configs" / f"{name}.cfg" for name in ("cpu", "small", "gpu", "ner"))
STEPS = {**TINY, "training.max_steps": 6, "training.eval_frequency": 2}


def with_bert(bert: Path, **steps: Any) -> dict[str, Any]:
    """Overrides of configs/gpu.cfg: a tiny transformer without its own dropout."""
    own = {"max_steps": 4, "eval_frequency": 2, "batcher.size": 900, "optimizer.learn_rate.warmup": 0.25, **steps}
    block = "components.ner.model.tok2vec"
    config = {f"{block}.name": str(bert), f"{block}.transformer_config": NO_DROPOUT, "labelwise.few_words": 0}
    return {**config, **{f"training.{name}": value for name, value in own.items()}}


def train_in(
    folder: Path,
    corpus: Path,
    overrides: dict[str, Any] = STEPS,
    config: Path = CPU,
    log: Callable[[str], Any] = lambda message: None,
    resources: Path | None = None,
    **options: Any,
) -> TrainResult | None:
    folder.mkdir(parents=True, exist_ok=True)
    recipe = TrainingConfig(config, corpus, overrides=overrides, **options)
    gc.freeze()  # a training collects garbage first, and pytest has much that is none; at its end, it unfreezes all
    return train_pipeline(recipe, folder / "model", folder / "curve.tsv", resources=resources, log=log)


def curve(folder: Path, *columns: str) -> list[list[str]]:
    header, *rows = [line.split("\t") for line in (folder / "curve.tsv").read_text().splitlines()]
    return [[row[header.index(name)] for name in columns] for row in rows]


def losses(folder: Path) -> list[float]:
    return [float(loss) for (loss,) in curve(folder, "loss_ner")]


def files(folder: Path) -> dict[str, bytes]:
    """Return a training's files by path, except its config (it names the curve's path), its record, and links."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("config.cfg", RECORD)]
    paths = [path for path in paths if "model.checkpoint" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
