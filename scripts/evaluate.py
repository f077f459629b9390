"""Evaluate a trained pipeline on a split of the corpus, label by label."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from labelwise.console import figure, msg, print_table, progress_texts, run, user_errors
from labelwise.environment import obey
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import SEEN_REMEDY, Metrics, Scores, tell_seen
from labelwise.evaluate.tables import Tables
from labelwise.files import staged_together
from labelwise.text import counted

Option = typer.Option


def evaluate_cli(
    model: Annotated[Path, typer.Argument(help="Folder of a trained pipeline")],
    split: Annotated[Path, typer.Argument(help="Split of a merged corpus, such as corpus/test")],
    metrics: Annotated[Path, typer.Argument(help="JSON file for the scores")],
    tables: Annotated[Path | None, Option(help="Folder for texts.parquet and pairs.parquet")] = None,
    predictions: Annotated[Path | None, Option(help="JSONL file for predictions, with the gold, to export")] = None,
    merge_metrics: Annotated[Path | None, Option(help="The merge's ledger, for the agreement of annotators")] = None,
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU")] = -1,
    workers: Annotated[int, Option(help="Processes that predict, on the CPU")] = 1,
    other_tokens: Annotated[
        bool, Option("--other-tokens", help="Score a pipeline whose tokens aren't the corpus's, too")
    ] = False,
) -> None:
    """Evaluate a trained pipeline on a split of the corpus, label by label."""
    with user_errors("Nothing was evaluated"):
        obey(model / "config.cfg")
        beside = [tables and tables / name for name in ("texts.parquet", "pairs.parquet")]
        with staged_together(metrics, predictions, *beside) as (scores, kept, texts, pairs):
            found = evaluate_pipeline(
                model,
                split,
                tables=Tables(texts, pairs) if tables else None,
                predictions=kept,
                merge_metrics=merge_metrics,
                gpu_id=gpu_id,
                workers=workers,
                other_tokens=other_tokens,
                progress=progress_texts,
            )
            scores.write_bytes(msgspec.json.format(msgspec.json.encode(found.metrics)) + b"\n")
    print_scores(found.metrics)
    if said := tell_seen(found.metrics):
        tell = msg.warn if found.metrics.seen and found.metrics.seen.texts else msg.info
        tell(said, SEEN_REMEDY)
    if found.metrics.unscored:
        msg.info(f"Not scored, as nobody knows whether it is right: {counted(found.metrics.unscored, 'prediction')}")
    read = f"{counted(found.metrics.texts, 'text')} of {counted(found.words, 'word')}"
    msg.good(f"Scores of {model} on {read} are in {metrics}; {found.words / found.seconds:,.0f} words per second")


def print_scores(metrics: Metrics) -> None:
    """Print the scores of each label, and of all."""
    all_spans = [metrics.all_spans] if metrics.all_spans else []
    header = ["Label", "P", "R", "F1", "95%", *("F1 all spans" for _ in all_spans), "Support"]
    rows = [
        [name, *_cells(row, *(one.labels[name] for one in all_spans))] for name, row in metrics.all_gold.labels.items()
    ]
    rows.append(["all (micro)", *_cells(metrics.all_gold, *all_spans)])
    rows.append(["mean (macro)", *_cells(metrics.all_gold.macro, *(one.macro for one in all_spans))])
    print_table(header, rows)


def _cells(row: Scores, *all_spans: Scores) -> list[str]:
    row = row.shown()
    between = f"{row.f_low:.3f}-{row.f_high:.3f}" if row.f_low is not None and row.f_high is not None else ""
    scores = [figure(row.p), figure(row.r), figure(row.f), between, *(figure(one.shown().f) for one in all_spans)]
    return [*scores, "" if row.support is None else f"{row.support:,}"]


if __name__ == "__main__":
    run(evaluate_cli)
