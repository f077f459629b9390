"""Train a pipeline from the partitions of a corpus."""

import os
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, run, user_errors
from labelwise.base.text import counted, describe_seconds
from labelwise.base.workers import choose_workers
from labelwise.corpus.pipeline import corpus_of, gpu_of
from labelwise.train.goals import describe_points
from labelwise.train.gpu import check_gpu
from labelwise.train.ranks import is_launched, launch
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig

Option = typer.Option


def train_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a config, such as cpu: configs/cpu.cfg, training/cpu")],
    corpus: Annotated[Path | None, Option(help="Folder of the corpus; default: the config's")] = None,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Number of updates; 0 for the config's")] = 0,
    gpu_id: Annotated[int | None, Option(help="Number of the GPU; -1 for the CPU; default: the config's")] = None,
    gpus: Annotated[int, Option(help="GPUs that share each batch, numbered from 0")] = 1,
    workers: Annotated[int, Option(help="Processes that share each batch on the CPU")] = 1,
    resume: Annotated[bool, Option("--resume", help="Resume the same training from its last checkpoint")] = False,
) -> None:
    """Train a pipeline from the partitions of a corpus."""
    config, out = Path("configs", f"{pipeline}.cfg"), Path("training", pipeline, "model-best")
    corpus, curve = corpus or corpus_of(config), Path("plots", f"{pipeline}.tsv")
    with user_errors("Nothing was trained"):
        if gpu_id is None:
            gpu_id = gpu_of(config)
            if gpu_id >= 0:
                check_gpu(config)
        if gpu_id >= 0 and gpus > 1 and not is_launched():
            launch(gpus)
        if gpu_id >= 0 and is_launched():
            gpu_id = int(os.environ["LOCAL_RANK"])
        training_config = TrainingConfig(
            config,
            corpus,
            seed=seed,
            max_steps=max_steps,
            gpu_id=gpu_id,
            workers=choose_workers(workers, gpu_id),
            resume=resume,
        )
        trained = train_pipeline(training_config, out, curve, resources=out.with_name("resources.tsv"), log=msg.info)
    if trained is None:  # another rank than the first, which prints everything
        return
    print_counts("Each epoch" if trained.state.epoch else "First epoch, so far", trained.texts)
    words, seconds = trained.state.words, trained.state.seconds
    speed = f"{words / max(seconds, 1e-9):,.0f} per second"
    msg.info(f"{counted(words, 'word')} in {describe_seconds(seconds)}: {speed}")
    if trained.state.skipped:
        steps = counted(trained.state.skipped, "step")
        problem = f"Skipped {steps}: the loss wasn't a finite number"
        msg.warn(problem, "Lower learn_rate in the config; docs/gpu.md has more remedies for fp16")
    if trained.fitted:
        before, after = trained.fitted.before, trained.fitted.after
        msg.info(f"Expected calibration error on dev: {after:.3f} ({before:.3f} uncalibrated)")
    for description, remedy in describe_points(trained.points):
        (msg.warn if remedy else msg.info)(description, remedy)
    if trained.ended:
        msg.info(trained.ended)
    if max(trained.state.scores):
        msg.good(f"Best pipeline: {out}; curve: {curve}")
    else:
        more = "set more steps in project.yml, or max_steps in the config"
        longer = "raise the setting that ended it" if trained.ended else more
        msg.warn(f"The pipeline in {out} finds nothing in dev: its score is 0", f"Train longer: {longer}")


if __name__ == "__main__":
    run(train_cli)
