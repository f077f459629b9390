"""Evaluate a trained pipeline on a split of the corpus, label by label."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from labelwise.console import AddressOption, figure, msg, print_table, progress_texts, run, user_errors
from labelwise.corpus.ledger import tell_gold
from labelwise.environment import obey
from labelwise.evaluate.results import read_merge_counts
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
    address: AddressOption = "",
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
                address=address,
                progress=progress_texts,
            )
            scores.write_bytes(msgspec.json.format(msgspec.json.encode(found.metrics)) + b"\n")
    print_scores(found.metrics)
    print_seen(found.metrics)
    merge = read_merge_counts(merge_metrics) if merge_metrics else None
    if told := merge and tell_gold(merge.labels):
        msg.info(f"The corpus: {told}.")
    if found.metrics.unscored:
        unscored = counted(found.metrics.unscored, "prediction")
        msg.info(f"Not scored, as nobody knows whether it is right: {unscored}")
    if found.metrics.calibration_error is not None:
        msg.info(f"Probabilities are off by {found.metrics.calibration_error:.3f}, on average")
    read = f"{counted(found.metrics.texts, 'text')} of {counted(found.speed.words, 'word')}"
    msg.good(f"Scores of {model} on {read} are in {metrics}; {found.speed.words_per_second:,} words per second")


def print_scores(metrics: Metrics) -> None:
    """Print the scores of each label, and of all."""
    kinds = [metrics.all_gold, metrics.all_spans or metrics.all_gold]
    rows = []
    for name in sorted(metrics.all_gold.labels):
        row, spans = (kind.labels[name].shown() for kind in kinds)
        ceiling = figure(metrics.agreement[name].f) if name in metrics.agreement else ""
        rows.append([name, *_figures(row), figure(spans.f), ceiling, f"{row.support:,}"])
    total, spans = kinds
    rows.append(["all (micro)", *_figures(total), figure(spans.f), "", f"{total.support:,}"])
    rows.append(["mean (macro)", *_figures(total.macro), figure(spans.macro.f), "", ""])
    header = ["Label", "P", "R", "F1", "95%", "F1 all spans", "Agreement", "Support"]
    absent = {"F1 all spans": not metrics.all_spans, "Agreement": not metrics.agreement}
    kept = [[cell for name, cell in zip(header, row, strict=True) if not absent.get(name)] for row in (header, *rows)]
    print_table(kept[0], kept[1:])


def print_seen(metrics: Metrics) -> None:
    """Warn if the pipeline was trained on some of the texts, or say that this is unknown."""
    if said := tell_seen(metrics):
        tell = msg.warn if metrics.seen and metrics.seen.texts else msg.info
        tell(said, SEEN_REMEDY)


def _figures(row: Scores) -> list[str]:
    between = f"{row.f_low:.3f}-{row.f_high:.3f}" if row.f_low is not None and row.f_high is not None else ""
    return [figure(row.p), figure(row.r), figure(row.f), between]


if __name__ == "__main__":
    run(evaluate_cli)
