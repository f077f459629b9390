"""Each stage that has jobs gives the same bytes in one process, in two, and on a cluster.

All paths are relative.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy
from distributed import LocalCluster

from labelwise.check.folds import Folds
from labelwise.check.run import check
from labelwise.evaluate.predict import predict_texts
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.train.recipe import Recipe
from tests.conftest import ROOT, TINY
from tests.merge.test_run import random_datasets

pytestmark = pytest.mark.long
SMALL = {**TINY, "training.max_steps": 4, "training.eval_frequency": 2}
Stage = Callable[..., Any]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a cluster with two workers, in other folders than the tests."""
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def ruler(tmp_path: Path) -> Path:
    """A pipeline that finds capitalized words."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler", name="ner").add_patterns([{"label": "PLACE", "pattern": [{"IS_TITLE": True}]}])
    nlp.to_disk(tmp_path / "model")
    return Path("model")


def files(folder: Path) -> dict[str, bytes]:
    """The files by path, but for those in hidden folders."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".")}


def check_all_ways(address: str, stage: Stage, folder: Path) -> None:
    """Do a stage in each way, each time to another folder, and compare what is there."""
    ways: dict[str, dict[str, Any]] = {"alone": {}, "two": {"workers": 2}, "cluster": {"address": address}}
    for name, options in ways.items():
        (folder / name).mkdir()
        stage(Path(name), **options)
        assert files(folder / name) == files(folder / "alone") != {}, name
        assert not [path for path in (folder / name).iterdir() if path.name.startswith(".") and path.name != ".cache"]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_merge(address, there, merging):
    random_datasets(merging, 1)
    declared = [Path("tasks/datasets.yml")]

    def stage(out, **options):
        merge_data(declared, out, Settings(docs_per_partition=7), **options)

    check_all_ways(address, stage, there)


def test_evaluate(address, there, ruler, demo_corpus):
    split = Path(os.path.relpath(demo_corpus / "train", there))

    def stage(out, **options):
        evaluate_pipeline(ruler, split, predictions=out / "predictions.jsonl", other_tokens=True, **options)

    check_all_ways(address, stage, there)


def test_predict(address, there, ruler, monkeypatch):
    monkeypatch.setattr("labelwise.evaluate.predict.PART", 3)
    (there / "texts").mkdir()
    for number in range(10):
        (there / "texts" / f"{number}.txt").write_text(f"Text {number}")

    def stage(out, **options):
        list(predict_texts(ruler, [Path("texts")], out / "predicted.jsonl", **options))

    check_all_ways(address, stage, there)


def test_check(address, there, demo_corpus):
    recipe = Recipe(ROOT / "configs" / "cpu.cfg", Path(os.path.relpath(demo_corpus, there)), seed=1, overrides=SMALL)
    check_all_ways(
        address, lambda out, **options: check(recipe.corpus, out / "check", Folds(recipe, 2, **options)), there
    )
