"""Evaluate a trained pipeline on test, label by label, and on dev; or on another split."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, progress, run, user_errors
from labelwise.base.text import counted, figure
from labelwise.base.workers import choose_workers
from labelwise.corpus.pipeline import gpu_of
from labelwise.corpus.warnings import warnings_about_excluded_labels
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.print_scores import print_groups, print_scores
from labelwise.evaluate.results import GROUPS_FILE
from labelwise.evaluate.scores import SEEN_REMEDY, describe_seen

Option = typer.Option


def evaluate_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a config, such as cpu: training/cpu, metrics/cpu.json")],
    split: Annotated[
        Path | None, Option(help="Split of a merged corpus; default: corpus/test, with corpus/dev")
    ] = None,
    model: Annotated[Path | None, Option(help="Folder of another pipeline")] = None,
    predictions: Annotated[Path | None, Option(help="JSONL file for predictions and gold, to export")] = None,
    gpu_id: Annotated[int | None, Option(help="Number of the GPU; -1 for the CPU; default: the config's")] = None,
    workers: Annotated[int, Option(help="Processes that predict, on the CPU")] = 1,
    other_tokens: Annotated[
        bool, Option("--other-tokens", help="Accept a pipeline whose tokens aren't the corpus's")
    ] = False,
) -> None:
    """Evaluate a trained pipeline on test, label by label, and on dev; or on another split."""
    tables, metrics = Path("training", pipeline), Path("metrics", f"{pipeline}.json")
    model = model or tables / "model-best"
    with user_errors("Nothing was evaluated"):
        gpu_id = gpu_of(model / "config.cfg") if gpu_id is None else gpu_id
        evaluation = evaluate_pipeline(
            model,
            split or Path("corpus/test"),
            metrics,
            dev=None if split else Path("corpus/dev"),
            tables=tables,
            predictions=predictions,
            gpu_id=gpu_id,
            workers=choose_workers(workers, gpu_id),
            other_tokens=other_tokens,
            progress=progress,
        )
    print_scores(evaluation.metrics, str(metrics))
    print_groups(evaluation.metrics, evaluation.groups, str(tables / GROUPS_FILE))
    if warning_about_seen := describe_seen(evaluation.metrics):
        tell = msg.warn if evaluation.metrics.seen and evaluation.metrics.seen.texts else msg.info
        tell(warning_about_seen, SEEN_REMEDY)
    for warning in warnings_about_excluded_labels(evaluation.metrics.excluded_labels):
        msg.warn(*warning)
    if evaluation.edited:
        msg.warn(
            f"{model} has changed since its training: {', '.join(evaluation.edited)}",
            "The scores are of the pipeline as it is now; train again to score the trained pipeline",
        )
    if evaluation.metrics.unscored:
        unscored = counted(evaluation.metrics.unscored, "prediction")
        msg.info(f"Not scored: {unscored} in texts that aren't fully annotated for their label")
    texts = evaluation.metrics.texts
    if dev := evaluation.metrics.dev:
        texts += dev.texts
        msg.info(
            f"F1 on dev, where training selected the best step: {figure(dev.all_gold.f)}, "
            f"macro {figure(dev.all_gold.macro.f)}"
        )
    speed = f"{counted(evaluation.words, 'word')} predicted, {evaluation.words / evaluation.seconds:,.0f} per second"
    msg.good(f"Scores on {counted(texts, 'text')}: {metrics}; {speed}")


if __name__ == "__main__":
    run(evaluate_cli)
