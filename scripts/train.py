"""Train a pipeline with spaCy's own loop, from the partitions of a corpus."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.cli.train import train as spacy_train
from spacy.util import load_config
from wasabi import msg

import labelwise.registry  # noqa: F401  what the configs name
from labelwise.device import use_gpu
from labelwise.errors import InputError
from labelwise.manifest import check_whole
from labelwise.output import replace, staged, workspace
from labelwise.tokenizer import read_tokenizer
from scripts.console import user_errors

Option = typer.Option


def train_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the trained pipeline, such as training/cpu/model-best")],
    curve: Annotated[Path, Option(help="TSV file for the training curve")],
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU, in full precision")] = -1,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Updates; 0 for what the config says")] = 0,
    transformer_name: Annotated[str, Option(help="Name on the hub, or folder, of the transformer")] = "",
) -> None:
    """Train a pipeline with spaCy's own loop, from the partitions of a corpus."""
    with user_errors("Nothing was trained"):
        if max_steps < 0:
            raise InputError(f"--max-steps {max_steps}: give a number of updates, or 0 for what the config says")
        overrides: dict[str, Any] = {"system.seed": seed}
        if max_steps:
            overrides["training.max_steps"] = max_steps
            # Some step but the first is evaluated, or the best pipeline would be an untrained one.
            every = load_config(config)["training"]["eval_frequency"]
            overrides["training.eval_frequency"] = min(every, max_steps)
        if transformer_name:
            overrides["components.transformer.model.name"] = transformer_name
        train(config, corpus, out, curve, gpu_id=gpu_id, overrides=overrides)
    msg.good(f"The best pipeline is in {out}, its curve in {curve}")


def train(
    config: Path, corpus: Path, out: Path, curve: Path, *, gpu_id: int = -1, overrides: dict[str, Any] | None = None
) -> None:
    """Train a pipeline; what stood at `out` stays until training has ended well.

    overrides (dict): values of the config, by dotted name.
    RAISES (InputError): the GPU can't be used, or the corpus isn't whole.
    """
    use_gpu(gpu_id)
    check_whole(corpus)
    lang, _ = read_tokenizer(corpus / "tokenizer.json")
    overrides = {**(overrides or {}), "paths.corpus": str(corpus), "nlp.lang": lang}
    settings = load_config(config, interpolate=False)
    if "transformer" in settings["nlp"]["pipeline"] and find_spec("spacy_transformers") is None:
        raise InputError(f"{config} needs spacy-transformers; use the environment of `make gpu`")
    if gpu_id < 0:
        overrides |= full_precision(settings)
    with workspace(out) as folder:
        folder.mkdir()
        overrides["paths.curve"] = str(folder / "curve.tsv")
        spacy_train(config, folder, use_gpu=gpu_id, overrides=overrides)
        tidy_pipeline(folder / "model-best", curve)
        with staged(curve) as path:
            shutil.copyfile(folder / "curve.tsv", path)
            replace(folder / "model-best", out)


def tidy_pipeline(folder: Path, curve: Path) -> None:
    """Make equal trainings equal bytes: spaCy saves scores in a set's order, and where the curve was being written."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    meta["performance"] = sorted_deeply(meta["performance"])
    (folder / "meta.json").write_text(json.dumps(meta, indent=2, ensure_ascii=False), encoding="utf8")
    config = load_config(folder / "config.cfg", interpolate=False)
    config["paths"]["curve"] = str(curve)
    config.to_disk(folder / "config.cfg")


def sorted_deeply(value: Any) -> Any:
    """Copy nested dicts with their keys in alphabetical order."""
    return {key: sorted_deeply(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def full_precision(config: dict[str, Any]) -> dict[str, Any]:
    """Make the overrides that switch mixed precision off: PyTorch's gradient scaler needs a GPU."""
    model = config["components"].get("transformer", {}).get("model", {})
    if not model.get("mixed_precision"):
        return {}
    return {
        "components.transformer.model.mixed_precision": False,
        "components.transformer.model.grad_scaler_config.enabled": False,
    }


if __name__ == "__main__":
    typer.run(train_cli)
