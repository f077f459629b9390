"""Train a pipeline from the partitions of a corpus."""

import os
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, run, user_errors
from labelwise.base.environment import require_portable
from labelwise.base.text import counted, describe_seconds
from labelwise.train.ranks import is_launched, launch
from labelwise.train.run import train_pipeline
from labelwise.train.training_config import Precision, Recognizer, TrainingConfig

Option = typer.Option


def train_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the trained pipeline, such as training/cpu/model-best")],
    curve: Annotated[Path, Option(help="TSV file for the training curve")],
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU")] = -1,
    gpus: Annotated[int, Option(help="GPUs of this machine that share each batch, those numbered from 0")] = 1,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Number of updates; 0 for what the config says")] = 0,
    limit: Annotated[int, Option(help="Texts of train, those with the lowest keys; 0 for all")] = 0,
    transformer_name: Annotated[str, Option(help="Name (on the hub) or folder of the transformer")] = "",
    precision: Annotated[
        Precision, Option(help="fp16 | bf16 | fp32, of a transformer on a GPU; the CPU computes in fp32")
    ] = "",
    recognizer: Annotated[Recognizer, Option(help="A head for each label, or spaCy's ner")] = "per-label",
    vectors: Annotated[Path | None, Option(help="Table that `vectors` has made; an empty one adds none")] = None,
    workers: Annotated[int, Option(help="Processes that share each batch on the CPU")] = 1,
    resume: Annotated[bool, Option("--resume", help="Resume where the same training was killed")] = False,
) -> None:
    """Train a pipeline from the partitions of a corpus."""
    with user_errors("Nothing was trained"):
        require_portable(config)
        if gpu_id >= 0 and gpus > 1 and not is_launched():
            launch(gpus)
        if gpu_id >= 0 and is_launched():
            gpu_id = int(os.environ["LOCAL_RANK"])
        wanted = TrainingConfig(
            config,
            corpus,
            seed=seed,
            max_steps=max_steps,
            limit=limit,
            gpu_id=gpu_id,
            transformer_name=transformer_name,
            precision=precision,
            recognizer=recognizer,
            vectors=vectors,
            workers=workers,
            resume=resume,
        )
        trained = train_pipeline(wanted, out, curve, resources=out.with_name("resources.tsv"), log=msg.info)
    if trained is None:  # one of several processes, of which the first says everything
        return
    print_counts("Texts of an epoch", trained.texts)
    words, seconds = trained.state.words, trained.state.seconds
    speed = f"{words / max(seconds, 1e-9):,.0f} per second"
    msg.info(f"{counted(words, 'word')} in {describe_seconds(seconds)}: {speed}")
    if trained.state.skipped:
        steps = counted(trained.state.skipped, "step")
        msg.warn(f"{steps} changed nothing, as the loss wasn't a finite number; precision bf16 or fp32 avoids that")
    if trained.fitted:
        before, after = trained.fitted.before, trained.fitted.after
        msg.info(f"Expected calibration error on dev: {after:.3f} ({before:.3f} uncalibrated)")
    msg.good(f"The best pipeline is in {out}, its curve in {curve}")


if __name__ == "__main__":
    run(train_cli)
