"""Train with other seeds, to measure how much F1 varies; `compare` needs this for its stars."""

import hashlib
from itertools import chain
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from pyarrow import parquet
from spacy.util import load_config

from labelwise.base.console import msg, print_table, progress, run, user_errors
from labelwise.base.device import use_gpu
from labelwise.base.files import atomic, digest_folder, remove, sibling
from labelwise.base.text import encode_json, figure
from labelwise.base.workers import choose_workers
from labelwise.compare.comparison import count_against
from labelwise.compare.seeds import Seeds, digest_inputs, make_table, score_seeds
from labelwise.corpus.manifest import digest_merge, read_manifest, unchanged
from labelwise.corpus.pipeline import corpus_of, gpu_of
from labelwise.corpus.record import check_corpus
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.tables import Tables
from labelwise.train.train_pipeline import train_once
from labelwise.train.training_config import TrainingConfig

Option = typer.Option


def seeds_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a trained pipeline, such as cpu")],
    corpus: Annotated[Path | None, Option(help="Folder of the corpus; default: the config's")] = None,
    seeds: Annotated[
        int, Option(min=2, help="Number of trainings: the pipeline's, and others with the next seeds")
    ] = 3,
    workers: Annotated[int, Option(help="Processes that share each batch, and predict")] = 1,
) -> None:
    """Train with other seeds, to measure how much F1 varies; `compare` needs this for its stars."""
    config, model = Path("configs", f"{pipeline}.cfg"), Path("training", pipeline, "model-best")
    corpus = corpus or corpus_of(config)
    table, scores = model.with_name("seeds.parquet"), Path("metrics", f"{pipeline}_seeds.json")
    with user_errors("No seed was trained"):
        check_corpus(model, corpus)
        gpu_id = gpu_of(config)
        use_gpu(gpu_id)
        workers, first = choose_workers(workers, gpu_id), load_config(model / "config.cfg", interpolate=True)
        seed, steps = first["system"]["seed"], first["training"]["max_steps"]
        labels, digest = read_manifest(corpus).labels, digest_folder(model)
        inputs = digest_inputs(config.read_bytes(), digest_merge(read_manifest(corpus)), digest)
        with unchanged(corpus), atomic(scores, table) as [scores_file, table_file]:
            folder, counts = sibling(table, "seeds"), []
            folder.mkdir(exist_ok=True)
            for one in range(seed, seed + seeds):
                own = model if one == seed else folder / f"{one}"
                if one > seed:
                    msg.info(f"Training with seed {one}")
                    training_config = TrainingConfig(
                        config, corpus, seed=one, max_steps=steps, gpu_id=gpu_id, workers=workers, resume=True
                    )
                    train_once(training_config, own, msg.info)
                tables = Tables.of(folder)
                evaluate_pipeline(
                    own,
                    corpus / "test",
                    dev=corpus / "dev",
                    tables=folder,
                    gpu_id=gpu_id,
                    workers=workers,
                    progress=progress,
                )
                for split in ("dev", "test"):
                    docs = chain.from_iterable(tables._replace(split=split).docs())
                    texts = ((doc.key, count_against(doc, doc, labels)) for doc in docs)
                    counts.append(make_table(split, one, labels, texts))
            every = pa.concat_tables(counts).unify_dictionaries()
            parquet.write_table(every, table_file)
            made = Seeds(inputs, hashlib.sha256(table_file.read_bytes()).hexdigest(), **score_seeds(every, labels))
            scores_file.write_bytes(encode_json(made))
            remove(folder)
    rows = [
        [split, seed, figure(f), figure(made.macro[split][seed])]
        for split, own in made.micro.items()
        for seed, f in own.items()
    ]
    print_table(["Split", "Seed", "F1 (micro)", "F1 (macro)"], rows)
    msg.good(f"{scores} has F1 of {seeds} trainings; `compare` computes their variance from {table}")


if __name__ == "__main__":
    run(seeds_cli)
