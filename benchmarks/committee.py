"""Is the mean of three pipelines' probabilities worth three trainings, and three times the work in use?

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.committee

Tested on the dev folder of the wet lab protocols, and on a quarter of the texts of the other corpora, by hash; the
Prodigy sets' evaluation set isn't looked at. A tenth of the texts, by hash, is dev, on which probabilities are
calibrated, those of a committee as one. There are three committees of each kind:

- `three seeds`: pipelines that differ in their seed only, each trained on all of train;
- `three folds`: each is trained without a third of train;
- `thrice the steps`: one pipeline that takes as long as a committee.

`one` are the nine of the first kind, each by itself. Trainings that are there, in benchmarks/out/committee, aren't
repeated.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
import yaml

from benchmarks.coverage.domains import DECLARED, declare
from benchmarks.coverage.methods import merge
from benchmarks.measure import Cell, write_result
from labelwise.check.folds import unseen
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.tokenizing import tokenize
from labelwise.evaluate.predict import join, predict_each
from labelwise.evaluate.scoring import Scoring
from labelwise.train.calibration import fit
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline

Option = typer.Option
OUT = Path("benchmarks/out/committee")
CONFIG = Path("configs/cpu.cfg")
CORPORA = ("prodigy_jsonl", "materials_syntheses", "wnut2020_wlp", "litbank")
KINDS = ("three seeds", "thrice the steps", "three folds")
SPLITS = ("dev", "test")
SIZE, COMMITTEES = 3, 3
COLUMNS = {
    **{"corpus": "", "pipelines": "", "F": ".3f", "macro F": ".3f", "F of each": "", "gained, points of F": "+.1f"},
    **{"CPU seconds of training": ",.0f", "MB on disk": ",.1f", "words per CPU second": ",.0f"},
}


class Member(NamedTuple):
    """A trained pipeline: its folder, and what it took: CPU seconds to train it, and to compute its probabilities."""

    folder: Path
    trained: float
    predicted: float
    words: int

    @property
    def megabytes(self) -> float:
        """What its files take."""
        return sum(file.stat().st_size for file in (self.folder / "model").rglob("*") if file.is_file()) / 2**20

    def probabilities(self, split: str) -> np.ndarray:
        """Read the logarithms of the tags' probabilities, of all texts of a split."""
        return np.load(self.folder / f"{split}.npy")


class Scored(NamedTuple):
    """F, and its mean over the labels."""

    f: float
    macro: float


def make_corpus(name: str, folder: Path) -> Path:
    """Merge a public corpus, unless that is done: its dev folder, or else a quarter of its texts, is the test split."""
    datasets = [each for each in yaml.safe_load(DECLARED.read_text(encoding="utf8")) if each["path"].startswith(name)]
    has_dev = any(each["path"].endswith("/dev") for each in datasets)
    datasets = [each for each in datasets if has_dev or each.get("split") != "test"]
    for each in datasets:
        each["path"] = str((folder / each["path"]).resolve())
    corpus = OUT / name / "corpus"
    merge([declare(OUT / name / "datasets.yml", datasets)], corpus, "--test-ratio", 0 if has_dev else 0.25)
    return corpus


def make_member(corpus: Path, kind: str, committee: int, number: int, steps: int) -> Member:
    """Train a pipeline, and let it predict, unless that is done."""
    folder = corpus.parent / f"{kind.replace(' ', '-')}-{committee}-{number}"
    if not (folder / "took.json").exists():
        overrides: dict[str, Any] = {"training.eval_frequency": steps}
        if kind == "three folds":
            overrides["corpora.train.leave_out"] = f"{number}/{SIZE}"
        recipe = Recipe(CONFIG, corpus, seed=SIZE * committee + number, max_steps=steps, overrides=overrides)
        folder.mkdir(parents=True, exist_ok=True)
        start = time.process_time()
        with unseen():
            train_pipeline(recipe, folder / "model", folder / "curve.tsv")
        trained = time.process_time() - start
        predicted, words = predict(corpus, folder)
        (folder / "took.json").write_text(json.dumps([trained, predicted, words]), encoding="utf8")
    return Member(folder, *json.loads((folder / "took.json").read_text(encoding="utf8")))


def read_texts(corpus: Path, split: str) -> list[StoredDoc]:
    """Read all texts of a split."""
    return [doc for file in find_partitions(corpus / split) for doc in read_stored_docs(file)]


def predict(corpus: Path, folder: Path) -> tuple[float, int]:
    """Keep the logarithms of a pipeline's probabilities; return the CPU seconds for its words, and their number."""
    nlp = load_pipeline(folder / "model")
    component: Any = nlp.get_pipe("ner")
    start, words = time.process_time(), 0
    for split in SPLITS:
        rows = []
        with nlp.select_pipes(disable="ner"):
            for stored in read_texts(corpus, split):
                doc = nlp(tokenize(nlp, stored.text))
                rows.append(component.log_probabilities([doc]))
        words += sum(map(len, rows))
        np.save(folder / f"{split}.npy", np.concatenate(rows))
    return time.process_time() - start, words


def score(corpus: Path, members: Sequence[Member]) -> Scored:
    """Score the mean of pipelines' probabilities on test, calibrated on dev as one pipeline."""
    nlp = load_pipeline(members[0].folder / "model")
    nlp.remove_pipe("tok2vec")
    component: Any = nlp.get_pipe("ner")
    component.uncalibrate()
    means: dict[str, np.ndarray] = {}
    for split in SPLITS:
        texts = read_texts(corpus, split)
        log_p = np.logaddexp.reduce([member.probabilities(split) for member in members]) - np.log(len(members))
        ends = np.cumsum([len(doc) for doc in texts])[:-1]
        means |= {doc.text: part for doc, part in zip(texts, np.split(log_p.astype("float32"), ends), strict=True)}
    component.log_probabilities = lambda docs: np.concatenate([means[doc.text] for doc in docs])
    if fitted := fit(nlp, PartitionedCorpus(corpus / "dev")(nlp)):
        component.cfg |= fitted.settings
    scoring = Scoring(read_manifest(corpus)["labels"])
    for stored, doc in predict_each(nlp, iter(read_texts(corpus, "test")), lambda doc: doc.text, len):
        scoring.add(join(stored, doc))
    found = scoring.metrics().all_gold
    return Scored(found.f or 0.0, found.macro.f or 0.0)


def as_row(
    corpus: str, name: str, groups: Sequence[Sequence[Member]], scores: Sequence[Scored], of_one: float
) -> list[Cell]:
    """Return what a kind of committee is worth, and what one of it takes."""
    f = mean(one.f for one in scores)
    words = mean(group[0].words / sum(member.predicted for member in group) for group in groups)
    return [
        *(corpus, name, f, mean(one.macro for one in scores), " ".join(f"{one.f:.3f}" for one in scores)),
        None if name == "one" else 100 * (f - of_one),
        mean(sum(member.trained for member in group) for group in groups),
        mean(sum(member.megabytes for member in group) for group in groups),
        words,
    ]


def main(
    assets: Annotated[Path, Option(help="Folder with the public corpora")] = Path("assets"),
    corpus: Annotated[list[str], Option(help="Names of folders")] = list(CORPORA),  # noqa: B006
    kind: Annotated[list[str], Option(help=" | ".join(KINDS))] = list(KINDS),  # noqa: B006
    steps: Annotated[int, Option(help="Updates of each pipeline")] = 300,
) -> None:
    """Train, average, and score."""
    rows: dict[tuple[str, str], list[Cell]] = {}
    for name in kind:
        for each in corpus:
            merged = make_corpus(each, assets)
            size, took = (1, SIZE * steps) if name == "thrice the steps" else (SIZE, steps)
            groups = [
                [make_member(merged, name, number, of, took) for of in range(size)] for number in range(COMMITTEES)
            ]
            if name == "three seeds":
                ones = [[member] for group in groups for member in group]
                singles = [score(merged, one) for one in ones]
                rows[each, "one"] = as_row(each, "one", ones, singles, 0)
            of_one: Any = rows[each, "one"][2]
            rows[each, name] = as_row(each, name, groups, [score(merged, group) for group in groups], of_one)
            print(rows[each, "one"], rows[each, name], sep="\n", flush=True)
    write_result("committee", COLUMNS, [rows[each, name] for each in corpus for name in ("one", *kind)])


if __name__ == "__main__":
    typer.run(main)
