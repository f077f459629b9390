"""Is there a more accurate CPU pipeline for three times the training, and 1.5 times the prediction?

    python -m benchmarks.recipes --wnut FOLDER --materials FOLDER      # folders as benchmarks.coverage takes them

Each recipe changes configs/cpu.cfg, and is trained with the recognizer per-label: `longer` takes three times the steps,
`larger` half as many more, with a wider and deeper tok2vec; `pretrained` first has spaCy's `pretrain` predict the
characters of the words of train; `vectors` has floret (`pip install floret`) train vectors on them, 64 numbers in
20,000 rows. Nothing but the corpus's own train texts is used. F is on the dev folder of wnut, and on a quarter of
materials, by hash.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from confection import Config
from spacy.training.pretrain import pretrain
from spacy.util import load_config

import labelwise.train.registry  # noqa: F401  registers what the config names
from benchmarks.coverage.data import OUT as CORPORA
from benchmarks.coverage.data import forget, prepare
from benchmarks.coverage.methods import Training, evaluate, merge, train
from benchmarks.measure import measure
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import partitions_of

CONFIG, OUT = Path("configs/cpu.cfg"), Path("benchmarks/out/recipes")
EPOCHS = 6  # of pretraining
LARGER = {
    "components.tok2vec.model.encode.width": 192,
    "components.tok2vec.model.encode.depth": 6,
    "components.per_label.model.hidden_width": 256,
    "training.dropout": 0.2,
}


class Recipe(NamedTuple):
    """Changes of the config, how many times the steps are taken, and what is made of the texts in train first.

    prepare (Callable): is given the config, which it changes, the corpus, and the folder that `write_texts` wrote.
    """

    overrides: Mapping[str, object] = {}
    longer: float = 1
    prepare: Callable[[Config, Path, Path], None] | None = None


def write_texts(corpus: Path) -> Path:
    """Write the texts of train as JSONL, for spaCy, and as one file of tokens, for floret."""
    folder = OUT / corpus.name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "texts.jsonl").open("w") as rows, (folder / "tokens.txt").open("w") as tokens:
        for file in partitions_of(corpus, "train"):
            for doc in read_stored_docs(file):
                rows.write(json.dumps({"text": doc.text}) + "\n")
                tokens.write(" ".join(" ".join(doc.strings[word] for word in doc.words.tolist()).split()) + "\n")
    return folder


def pretrain_tok2vec(config: Config, corpus: Path, folder: Path) -> None:
    """Train the tok2vec to predict the first and last characters of words."""
    config["pretraining"] = {
        "max_epochs": EPOCHS,
        "dropout": 0.2,
        "n_save_every": None,
        "n_save_epoch": EPOCHS,
        "component": "tok2vec",
        "layer": "",
        "corpus": "corpora.pretrain",
        "batcher": {"@batchers": "spacy.batch_by_words.v1", "size": 3000, "discard_oversize": False, "tolerance": 0.2},
        "objective": {
            "@architectures": "spacy.PretrainCharacters.v1",
            "maxout_pieces": 3,
            "hidden_size": 300,
            "n_characters": 4,
        },
        "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.001},
    }
    reader = {"@readers": "spacy.JsonlCorpus.v1", "path": str(folder / "texts.jsonl")}
    config["corpora"]["pretrain"] = {**reader, "min_length": 5, "max_length": 2000, "limit": 0}
    out = folder / "pretrained"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    config["paths"]["corpus"] = str(corpus)
    pretrain(config.interpolate(), out, use_gpu=-1, silent=True)
    config["paths"]["init_tok2vec"] = str(max(out.glob("model*.bin"), key=lambda file: file.stat().st_mtime_ns))


def train_vectors(config: Config, _: Path, folder: Path) -> None:
    """Train static vectors."""
    import floret  # type: ignore[import-not-found]

    options = {"mode": "floret", "hashCount": 2, "bucket": 20_000, "minn": 3, "maxn": 5, "dim": 64, "epoch": 20}
    model = floret.train_unsupervised(str(folder / "tokens.txt"), model="skipgram", minCount=2, thread=1, **options)
    model.save_floret_vectors(str(folder / "vectors.floret"))
    vectors = str(folder / "vectors")
    measure("spacy", "init", "vectors", "en", str(folder / "vectors.floret"), vectors, "--mode", "floret")
    config["paths"]["vectors"] = vectors
    config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = True


RECIPES = {
    "cpu.cfg": Recipe(),
    "longer": Recipe(longer=3),
    "larger": Recipe(LARGER, longer=1.5),
    "pretrained": Recipe(prepare=pretrain_tok2vec),
    "vectors": Recipe(prepare=train_vectors),
}


def main(
    wnut: Annotated[Path, typer.Option(help="Folder with train and dev")] = Path("assets/wnut2020_wlp"),
    materials: Annotated[Path, typer.Option(help="Folder of brat documents")] = Path("assets/materials_syntheses"),
    recipe: Annotated[list[str], typer.Option(help=" | ".join(RECIPES))] = list(RECIPES),  # noqa: B006
    steps: Annotated[int, typer.Option(help="Updates with configs/cpu.cfg")] = 400,
    seeds: Annotated[int, typer.Option(help="Trainings of each, with the seeds 0, 1, ...")] = 3,
) -> None:
    """Train each recipe on each corpus, and print F, the mean of the labels' F, and seconds, preparation included."""
    for seed in range(seeds):
        for name, folder in (("wnut", wnut), ("materials", materials)):
            corpus = CORPORA / f"{name}-all-by-label"
            merge(forget(prepare(name, folder), "all"), corpus, "--test-ratio", 0)
            texts = write_texts(corpus)
            for one in recipe:
                chosen, start = RECIPES[one], time.perf_counter()
                config = load_config(CONFIG, dict(chosen.overrides), interpolate=False)
                if chosen.prepare:
                    chosen.prepare(config, corpus, texts)
                config.to_disk(OUT / "recipe.cfg")
                training = Training(str(OUT / "recipe.cfg"), round(steps * chosen.longer), seed)
                trained = train(corpus, "per-label", training)
                seconds = time.perf_counter() - start
                metrics, _ = evaluate(trained.model, corpus / "test")
                scores = metrics["all_gold"]
                print(f"| {name} | {one} | {seed} | {scores['f']:.4f} | {scores['macro']['f']:.4f} | {seconds:.0f} |")


if __name__ == "__main__":
    typer.run(main)
