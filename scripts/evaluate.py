"""Evaluate a trained pipeline on a split of the corpus, label by label."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from tqdm import tqdm
from wasabi import msg

from labelwise.counts import Scores, agreement_scores
from labelwise.device import use_gpu
from labelwise.errors import InputError
from labelwise.inference import predict_split
from labelwise.manifest import read_manifest, read_split
from labelwise.output import staged
from labelwise.predictions import new_digest, read_predictions
from labelwise.results import read_merge_counts
from labelwise.scoring import Scoring
from scripts.console import print_table, user_errors

Option = typer.Option
WIDEST = 40  # characters of a span in a table


def evaluate_cli(
    model: Annotated[Path, typer.Argument(help="Folder of a trained pipeline")],
    split: Annotated[Path, typer.Argument(help="Split of a merged corpus, such as corpus/test")],
    metrics: Annotated[Path, typer.Argument(help="JSON file for the scores")],
    predictions: Annotated[Path | None, Option(help="JSONL file for what was predicted, with the gold")] = None,
    details: Annotated[Path | None, Option(help="JSON file for partial schemes by label, confusion, mistakes")] = None,
    merge_metrics: Annotated[Path | None, Option(help="The merge's books, for the agreement of annotators")] = None,
    speed: Annotated[Path | None, Option(help="JSON file for words a second, which varies")] = None,
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU")] = -1,
    workers: Annotated[int, Option(help="Processes that predict, on the CPU")] = 1,
) -> None:
    """Evaluate a trained pipeline on a split of the corpus, label by label."""
    with user_errors("Nothing was evaluated"):
        scores, more, rate = evaluate(
            model, split, predictions=predictions, merge_metrics=merge_metrics, gpu_id=gpu_id, workers=workers
        )
        for path, content in ((metrics, scores), (details, more), (speed, rate)):
            if path:
                with staged(path) as file:
                    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf8")
    print_scores(scores)
    print_mistakes(more)
    if scores["unscored"]:
        msg.info(f"{scores['unscored']:,} predictions weren't scored: nobody knows whether they are right")
    f, texts, words = scores["all_gold"]["f"] or 0.0, scores["texts"], rate["words"]
    msg.good(f"F {f:.4f} against all gold, on {texts:,} texts of {words:,} words")
    msg.info(f"Pipeline: {model}, for spacy.load. Scores: {metrics}. {rate['words_per_second']:,} words a second")


def evaluate(
    model: Path,
    split: Path,
    *,
    predictions: Path | None = None,
    merge_metrics: Path | None = None,
    gpu_id: int = -1,
    workers: int = 1,
) -> tuple[Scores, dict[str, Any], dict[str, int]]:
    """Let a pipeline predict a split, and score what it predicted.

    predictions (Path | None): the file for what was predicted, if it is to be kept.
    RETURNS (tuple): what `score` returns, and what `predict` returns.
    RAISES (InputError): what the two raise.
    """
    counts = read_merge_counts(merge_metrics) if merge_metrics else None
    if merge_metrics and counts is None:
        raise InputError(f"{merge_metrics}: there is no such file; run the merge")
    with TemporaryDirectory() as folder:
        file = predictions or Path(folder) / "predictions.jsonl"
        speed = predict(model, split, file, gpu_id=gpu_id, workers=workers)
        return *score(file, split, counts.agreement if counts else {}), speed


def predict(model: Path, split: Path, predictions: Path, *, gpu_id: int = -1, workers: int = 1) -> dict[str, int]:
    """Let a pipeline predict a split; memory doesn't grow with the number of texts.

    RETURNS (dict): the number of words, and words a second.
    RAISES (InputError): there is no model, no partition, or no such GPU; workers and a GPU.
    """
    if workers < 1 or (workers > 1 and gpu_id >= 0):
        raise InputError(f"--workers {workers}: give 1 or more, and 1 on a GPU, which processes would contend for")
    use_gpu(gpu_id)
    texts = read_split(split)["texts"]
    partitions = predict_split(model, split, predictions, workers=workers)
    words, start = 0, time.perf_counter()
    with tqdm(desc="evaluate", total=texts, unit=" texts", disable=None, dynamic_ncols=True) as bar:
        for done in partitions:
            words += done.words
            bar.update(done.texts)
    return {"words_per_second": round(words / (time.perf_counter() - start)), "words": words}


def score(predictions: Path, split: Path, agreement: Mapping[str, Any]) -> tuple[Scores, dict[str, Any]]:
    """Score what was predicted for a split.

    agreement (Mapping): what the merge counted of it.
    RETURNS (tuple): scores, the same for equal predictions, and details.
    RAISES (InputError): a file isn't there, or isn't what it should be.
    """
    scoring = Scoring(read_manifest(split.resolve().parent)["labels"])
    digest = new_digest()
    for doc in read_predictions(predictions, digest):
        scoring.add(doc)
    scores = scoring.scores()
    scores["texts_digest"] = read_split(split)["digest"]
    scores["predictions_digest"] = digest.hexdigest()
    scores["agreement"] = agreement_scores(agreement)
    return scores, scoring.details()


def print_scores(scores: Scores) -> None:
    """Print the scores of each label, and of all."""
    agreement = scores["agreement"]
    rows = []
    for name, row in scores["all_gold"]["labels"].items():
        flat, ceiling = scores["flat_gold"]["labels"][name], agreement.get(name, {})
        rows.append([name, *_figures(row), _figure(flat["f"]), _figure(ceiling.get("f")), f"{row['support']:,}"])
    rows.sort(key=lambda row: row[0])
    total, flat = scores["all_gold"], scores["flat_gold"]
    rows.append(["all (micro)", *_figures(total), _figure(flat["f"]), "", f"{total['support']:,}"])
    rows.append(["mean (macro)", *_figures(total["macro"]), _figure(flat["macro"]["f"]), "", ""])
    header = ["Label", "P", "R", "F", "95%", "F flat gold", "Agreement", "Support"]
    empty = [] if agreement else [header.index("Agreement")]
    kept = [[cell for place, cell in enumerate(row) if place not in empty] for row in (header, *rows)]
    print_table(kept[0], kept[1:])
    schemes = [[name, *(_figure(row[key]) for key in "prf")] for name, row in scores["schemes"].items()]
    print_table(["SemEval 2013", "P", "R", "F"], schemes)


def print_mistakes(details: dict[str, Any], most: int = 3) -> None:
    """Print the most frequent mistakes of each kind."""
    rows = []
    for kind, forms in details["frequent"].items():
        for form in forms[:most]:
            sides = [(form[side], form[f"{side}_label"]) for side in ("gold", "predicted")]
            named = " for ".join(f"{text[:WIDEST]} ({label})" for text, label in sides if label)
            rows.append([f"{kind}: {named}", f"{form['count']:,}"])
    print_table(["Frequent mistakes, gold before predicted", ""], rows)


def _figures(row: Scores) -> list[str]:
    between = f"{row['f_low']:.3f}-{row['f_high']:.3f}" if row["f_low"] is not None else ""
    return [*(_figure(row[key]) for key in "prf"), between]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    typer.run(evaluate_cli)
