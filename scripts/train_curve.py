"""Train on a quarter and on half of train, to estimate the gain from doubling the texts."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_table, progress, run, user_errors
from labelwise.base.files import atomic, remove, sibling
from labelwise.base.text import counted, encode_json, figure
from labelwise.base.workers import choose_workers
from labelwise.compare.train_curve import ALL, HALF, measure_curve
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.pipeline import corpus_of
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.tables import Tables
from labelwise.train.config import fit_config, share_of
from labelwise.train.steps import count_train
from labelwise.train.train_pipeline import train_once
from labelwise.train.training_config import TrainingConfig

Option = typer.Option


def train_curve_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a trained pipeline, such as cpu")],
    corpus: Annotated[Path | None, Option(help="Folder of the corpus; default: the config's")] = None,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Number of updates; 0 for the config's")] = 0,
    workers: Annotated[int, Option(help="Processes that share each batch, and predict")] = 1,
) -> None:
    """Train on a quarter and on half of train, to estimate the gain from doubling the texts."""
    config, model = Path("configs", f"{pipeline}.cfg"), Path("training", pipeline, "model-best")
    corpus, out = corpus or corpus_of(config), Path("metrics/train_curve.json")
    with user_errors("No curve was measured"):
        on_all = TrainingConfig(
            config, corpus, seed=seed, max_steps=max_steps, workers=choose_workers(workers), resume=True
        )
        every = count_train(corpus, fit_config(on_all).settings)
        texts = {HALF: every // 2, "a quarter": every // 4, ALL: every}
        recipes = {share: share_of(on_all, n) for share, n in texts.items() if share != ALL}  # before any is trained
        with atomic(out) as [path]:
            folder = sibling(out, "curve")
            folder.mkdir(exist_ok=True)
            predicted = {share: Tables.of(folder / f"{share}-tables") for share in texts}
            for share, tables in predicted.items():
                trained = folder / share if share in recipes else model
                if share in recipes:
                    msg.info(f"Training on {share} of train: {texts[share]:,} of {counted(every, 'text')}")
                    train_once(recipes[share], trained, msg.info)
                evaluation = evaluate_pipeline(
                    trained, corpus / "dev", tables=tables.texts.parent, workers=workers, progress=progress
                )
            digest = evaluation.metrics.pipeline_digest
            curve = measure_curve(predicted, texts, read_manifest(corpus).labels, digest)
            path.write_bytes(encode_json(curve))
            remove(folder)
    rows = sorted((texts[share], share, figure(f)) for share, f in curve.micro.f.items())
    print_table(["Of train", "Texts", "F1 on dev"], [[share, f"{n:,}", f] for n, share, f in rows])
    for label, gain in curve.gains():
        msg.info(f"{label}: {gain.difference:+.3f} (interval over texts: {gain.low:+.3f} to {gain.high:+.3f})")
    msg.good(curve.describe())


if __name__ == "__main__":
    run(train_curve_cli)
