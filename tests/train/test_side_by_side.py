"""Trainings side by side are those that each would be alone."""

import time
from pathlib import Path

from labelwise.train import side_by_side as module
from labelwise.train.recipe import Recipe
from labelwise.train.side_by_side import train_one, train_side_by_side
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"


def waiting(recipe: Recipe, out: Path, curve: Path) -> None:
    """Be a training that takes a minute, but for the first."""
    if out.name != "pipeline-0":
        time.sleep(60)


def test_each_has_a_process_and_what_is_trained_in_vain_is_ended(demo_corpus, tmp_path, monkeypatch):
    """Where the work on the first pipeline fails, nobody waits for the second one."""
    monkeypatch.setattr(module, "train_pipeline", waiting)
    models = train_side_by_side([Recipe(CPU, demo_corpus)] * 2, tmp_path, workers=2)
    assert next(models) == tmp_path / "pipeline-0"
    start = time.monotonic()
    models.close()
    assert time.monotonic() - start < 30


def test_the_first_shows_its_progress_for_all(demo_corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "train_pipeline", lambda recipe, out, curve: print(recipe.seed, out.name))
    recipes = [Recipe(CPU, demo_corpus, seed=seed) for seed in (7, 8)]
    assert [train_one(recipes, tmp_path, number).name for number in (0, 1)] == ["pipeline-0", "pipeline-1"]
    assert capsys.readouterr().out == "7 pipeline-0\n"
