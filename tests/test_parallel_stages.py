"""Each stage that has jobs gives the same bytes in one process and in two.

All paths are relative.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy

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


def do_both_ways(stage: Stage, folder: Path) -> tuple[dict[str, bytes], dict[str, bytes], list[Path]]:
    """Do a stage in one process and in two, each time to another folder; return what is there, and what is left."""
    for name, options in (("alone", {}), ("two", {"workers": 2})):
        (folder / name).mkdir()
        stage(Path(name), **options)
    left = [path for path in folder.glob("*/.*") if path.name != ".cache"]
    return files(folder / "alone"), files(folder / "two"), left


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_merge(there, merging):
    random_datasets(merging, 1)
    declared = [Path("tasks/datasets.yml")]

    def stage(out, **options):
        merge_data(declared, out, Settings(docs_per_partition=7), **options)

    alone, two, left = do_both_ways(stage, there)
    assert alone == two != {}
    assert left == []


def test_evaluate(there, ruler, demo_corpus):
    split = Path(os.path.relpath(demo_corpus / "train", there))

    def stage(out, **options):
        evaluate_pipeline(ruler, split, predictions=out / "predictions.jsonl", other_tokens=True, **options)

    alone, two, left = do_both_ways(stage, there)
    assert alone == two != {}
    assert left == []


def test_predict(there, ruler, monkeypatch):
    monkeypatch.setattr("labelwise.evaluate.predict.PART", 3)
    (there / "texts").mkdir()
    for number in range(10):
        (there / "texts" / f"{number}.txt").write_text(f"Text {number}")

    def stage(out, **options):
        list(predict_texts(ruler, [Path("texts")], out / "predicted.jsonl", **options))

    alone, two, left = do_both_ways(stage, there)
    assert alone == two != {}
    assert left == []


def test_check(there, demo_corpus):
    recipe = Recipe(ROOT / "configs" / "cpu.cfg", Path(os.path.relpath(demo_corpus, there)), seed=1, overrides=SMALL)
    alone, two, left = do_both_ways(
        lambda out, **options: check(recipe.corpus, out / "check", Folds(recipe, 2, **options)), there
    )
    assert alone == two != {}
    assert left == []
