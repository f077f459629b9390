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
from collections.abc import Callable, Sequence
from itertools import count as count_up
from itertools import product, takewhile
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
import yaml

from benchmarks.coverage.domains import DECLARED, declare
from benchmarks.coverage.methods import merge
from benchmarks.measure import Cell, write_result
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Split, find_partitions, read_manifest
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.tokenizing import tokenize
from labelwise.evaluate.predict import join, predict_each
from labelwise.evaluate.scores import count, score_table
from labelwise.train.calibration import fit
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from labelwise.train.side_by_side import unseen

Option = typer.Option
OUT = Path("benchmarks/out/committee")
CONFIG = Path("configs/cpu.cfg")
CORPORA = ("prodigy_jsonl", "materials_syntheses", "wnut2020_wlp", "litbank")
SPLITS: tuple[Split, ...] = ("dev", "test")
TOOK = "took.json"
COLUMNS = {
    **{"corpus": "", "pipelines": "", "F": ".3f", "macro F": ".3f", "F of each": ""},
    **{"CPU seconds to train": ",.0f", "MB": ",.1f", "words per CPU second": ",.0f"},
}


class Kind(NamedTuple):
    """How many pipelines a committee has, and how many times the steps each takes."""

    size: int
    times: int = 1


KINDS = {"three seeds": Kind(3), "three folds": Kind(3), "thrice the steps": Kind(1, 3)}


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


def folder_of(corpus: Path, kind: str, committee: int, number: int) -> Path:
    """Name the folder of a member."""
    return corpus.parent / f"{kind.replace(' ', '-')}-{committee}-{number}"


def find_groups(corpus: Path, kind: str) -> list[list[Member]]:
    """Find the committees of a kind that are there."""
    folders = (
        [folder_of(corpus, kind, committee, number) for number in range(KINDS[kind].size)] for committee in count_up()
    )
    whole = takewhile(lambda group: all((folder / TOOK).exists() for folder in group), folders)
    return [list(map(read_member, group)) for group in whole]


def make_member(corpus: Path, kind: str, committee: int, number: int, steps: int) -> None:
    """Train a pipeline, and let it predict, unless that is done."""
    size, times = KINDS[kind]
    steps *= times
    overrides: dict[str, Any] = {"training.eval_frequency": steps}
    if kind == "three folds":
        overrides["corpora.train.leave_out"] = f"{number}/{size}"
    recipe = Recipe(CONFIG, corpus, seed=size * committee + number, max_steps=steps, overrides=overrides)
    train_member(recipe, folder_of(corpus, kind, committee, number))


def train_member(
    recipe: Recipe, folder: Path, train: Callable[..., Any] = train_pipeline, splits: Sequence[Split] = SPLITS
) -> Member:
    """Train a pipeline, and let it predict splits, unless that is done."""
    if not (folder / TOOK).exists():
        folder.mkdir(parents=True, exist_ok=True)
        start = time.process_time()
        with unseen():
            train(recipe, folder / "model", folder / "curve.tsv")
        trained = time.process_time() - start
        predicted, words = predict(recipe.corpus, folder, splits)
        (folder / TOOK).write_text(json.dumps([trained, predicted, words]), encoding="utf8")
    return read_member(folder)


def read_member(folder: Path) -> Member:
    """Read what a training took."""
    return Member(folder, *json.loads((folder / TOOK).read_text(encoding="utf8")))


def read_texts(corpus: Path, split: str) -> list[StoredDoc]:
    """Read all texts of a split."""
    return [doc for file in find_partitions(corpus / split) for doc in read_stored_docs(file)]


def predict(corpus: Path, folder: Path, splits: Sequence[Split]) -> tuple[float, int]:
    """Keep the logarithms of a pipeline's probabilities; return the CPU seconds for its words, and their number."""
    nlp = load_pipeline(folder / "model")
    component: Any = nlp.get_pipe("ner")
    start, words = time.process_time(), 0
    for split in splits:
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
    labels = read_manifest(corpus)["labels"]
    counts = np.zeros((len(labels), 3), int)
    for stored, found in predict_each(nlp, iter(read_texts(corpus, "test")), lambda doc: doc.text, len):
        doc = join(stored, found)
        counts += count(doc.scored(doc.predicted), doc.scored(doc.gold), labels)
    scores = score_table(counts, labels)
    return Scored(scores.f or 0.0, scores.macro.f or 0.0)


def as_row(corpus: Path, name: str, groups: Sequence[Sequence[Member]]) -> list[Cell]:
    """Return what a kind is worth, and what one of it takes."""
    scores = [score(corpus, group) for group in groups]
    return [
        *(corpus.parent.name, name, mean(one.f for one in scores), mean(one.macro for one in scores)),
        " ".join(f"{one.f:.3f}" for one in scores),
        mean(sum(member.trained for member in group) for group in groups),
        mean(sum(member.megabytes for member in group) for group in groups),
        mean(group[0].words / sum(member.predicted for member in group) for group in groups),
    ]


def main(
    assets: Annotated[Path, Option(help="Folder with the public corpora")] = Path("assets"),
    corpus: Annotated[list[str], Option(help="Names of folders")] = list(CORPORA),  # noqa: B006
    kind: Annotated[list[str], Option(help=" | ".join(KINDS))] = list(KINDS),  # noqa: B006
    committees: Annotated[int, Option(help="Of each kind; 0 to write what is there")] = 3,
    steps: Annotated[int, Option(help="Updates of each pipeline")] = 300,
) -> None:
    """Train, unless that is done, average, score, and write all that is there."""
    for name, committee, each in product(kind, range(committees), corpus):
        merged = make_corpus(each, assets)
        for number in range(KINDS[name].size):
            make_member(merged, name, committee, number, steps)
    rows = []
    for each in CORPORA:
        merged = OUT / each / "corpus"
        found = {name: find_groups(merged, name) for name in KINDS}
        ones = {"one": [[member] for group in found["three seeds"] for member in group]}
        rows += [as_row(merged, name, groups) for name, groups in {**ones, **found}.items() if groups]
    write_result("committee", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)
