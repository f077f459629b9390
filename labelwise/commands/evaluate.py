"""Evaluate a trained pipeline on a split of the corpus, label by label."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from labelwise.commands.console import (
    AddressOption,
    figure,
    msg,
    print_table,
    progress_texts,
    user_errors,
)
from labelwise.common.files import staged_together
from labelwise.common.portable import obey
from labelwise.common.wording import counted
from labelwise.corpus.merge_counts import tell_gold
from labelwise.evaluate.results import read_merge_counts
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import Details, Metrics, Scores
from labelwise.evaluate.seen import REMEDY, tell_seen
from labelwise.evaluate.uncovered import Rate, implausible

Option = typer.Option
WIDEST = 40  # characters of a span in a table


def evaluate_cli(
    model: Annotated[Path, typer.Argument(help="Folder of a trained pipeline")],
    split: Annotated[Path, typer.Argument(help="Split of a merged corpus, such as corpus/test")],
    metrics: Annotated[Path, typer.Argument(help="JSON file for the scores")],
    predictions: Annotated[Path | None, Option(help="JSONL file for what was predicted, with the gold")] = None,
    details: Annotated[Path | None, Option(help="JSON file for the confusion of labels, and mistakes")] = None,
    merge_metrics: Annotated[Path | None, Option(help="The merge's ledger, for the agreement of annotators")] = None,
    speed: Annotated[Path | None, Option(help="JSON file for words per second, which vary")] = None,
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
        with staged_together(metrics, details, speed, predictions) as (*files, staged_predictions):
            found = evaluate_pipeline(
                model,
                split,
                predictions=staged_predictions,
                merge_metrics=merge_metrics,
                gpu_id=gpu_id,
                workers=workers,
                other_tokens=other_tokens,
                address=address,
                progress=progress_texts,
            )
            for file, content in zip(files, (found.metrics, found.details, found.speed._asdict()), strict=True):
                if file:
                    text = json.dumps(msgspec.to_builtins(content), indent=2, ensure_ascii=False)
                    file.write_text(text + "\n", encoding="utf8")
    print_scores(found.metrics)
    print_seen(found.metrics)
    merge = read_merge_counts(merge_metrics) if merge_metrics else None
    if told := merge and tell_gold(merge.labels):
        msg.info(f"The corpus: {told}.")
    print_mistakes(found.details)
    if found.metrics.unscored:
        unscored = counted(found.metrics.unscored, "prediction")
        msg.info(f"Not scored, as nobody knows whether it is right: {unscored}")
    warn_implausible(found.details.uncovered)
    if found.metrics.calibration_error is not None:
        msg.info(f"Probabilities are off by {found.metrics.calibration_error:.3f}, on average")
    read = f"{counted(found.metrics.texts, 'text')} of {counted(found.speed.words, 'word')}"
    msg.good(f"Scores of {model} on {read} are in {metrics}; {found.speed.words_per_second:,} words per second")


def print_scores(metrics: Metrics) -> None:
    """Print the scores of each label, and of all."""
    kinds = [metrics.all_gold, metrics.flat_gold, metrics.all_spans or metrics.all_gold]
    rows = []
    for name in sorted(metrics.all_gold.labels):
        row, flat, spans = (kind.labels[name].shown() for kind in kinds)
        ceiling = figure(metrics.agreement[name].f) if name in metrics.agreement else ""
        rows.append([name, *_figures(row), figure(spans.f), figure(flat.f), ceiling, f"{row.support:,}"])
    total, flat, spans = kinds
    rows.append(["all (micro)", *_figures(total), figure(spans.f), figure(flat.f), "", f"{total.support:,}"])
    rows.append(["mean (macro)", *_figures(total.macro), figure(spans.macro.f), figure(flat.macro.f), "", ""])
    header = ["Label", "P", "R", "F", "95%", "F all spans", "F flat gold", "Agreement", "Support"]
    absent = {"F all spans": not metrics.all_spans, "Agreement": not metrics.agreement}
    kept = [[cell for name, cell in zip(header, row, strict=True) if not absent.get(name)] for row in (header, *rows)]
    print_table(kept[0], kept[1:])


def print_seen(metrics: Metrics) -> None:
    """Warn if the pipeline was trained on some of the texts, or say that this is unknown."""
    if said := tell_seen(metrics):
        tell = msg.warn if metrics.seen and metrics.seen.texts else msg.info
        tell(said, REMEDY)


def print_mistakes(details: Details, most: int = 3) -> None:
    """Print the most frequent mistakes of each kind."""
    rows = []
    for kind, mistakes in details.frequent.items():
        for mistake in mistakes[:most]:
            sides = [(mistake.gold, mistake.gold_label), (mistake.predicted, mistake.predicted_label)]
            named = " for ".join(f"{text[:WIDEST]} ({label})" for text, label in sides if label)
            rows.append([f"{kind}: {named}", f"{mistake.count:,}"])
    print_table(["Frequent mistakes, gold before predicted", ""], rows)


def _figures(row: Scores) -> list[str]:
    between = f"{row.f_low:.3f}-{row.f_high:.3f}" if row.f_low is not None and row.f_high is not None else ""
    return [figure(row.p), figure(row.r), figure(row.f), between]


def warn_implausible(rates: Iterable[Rate]) -> None:
    """Warn of labels that are found far more or less often where nobody looked than where somebody did.

    Data sets with the same figures, as they have the same texts, share a warning.
    """
    by_text: dict[str, list[str]] = {}
    for name, found in implausible(rates).items():
        found.sort(key=lambda rate: (-rate.per_1000, rate.label))
        listed = ", ".join(
            f"{rate.label} {rate.per_1000:.1f} ({rate.known_per_1000:.1f}, gold {rate.gold_per_1000:.1f})"
            for rate in found
        )
        by_text.setdefault(listed, []).append(name)
    for listed, names in by_text.items():
        msg.warn(
            f"{', '.join(names)}: labels that these texts aren't annotated for are found far more or less often than "
            "where they are known",
            f"Spans per 1,000 words (where known): {listed}. If a label doesn't occur in these texts, declare it as "
            "`absent` in datasets.yml; if it does, annotate some of them for it",
        )
