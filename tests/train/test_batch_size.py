import json

import pytest
from spacy.util import load_config

from labelwise.common.errors import InputError
from labelwise.train.batch_size import (
    fill,
    find_batch_size,
    pipeline_digest,
    read_batch_size,
    search,
    worst_texts,
)
from labelwise.train.batches import Batch, Cost
from labelwise.train.recipe import Recipe
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"


@pytest.mark.parametrize("text", [1, 7, 100, 1023])
@pytest.mark.parametrize("limit", [1, 99, 100, 5000, 33_333, 500_000])
def test_the_search_comes_near_to_what_fits(text, limit):
    """Texts cost the same; a batch has one at least, and fits if it costs no more than the limit."""
    tried = []

    def fits(cost):
        taken = max(1, cost // text) * text
        tried.append(taken)
        return taken <= limit, taken

    found = search(fits)
    best = limit // text * text
    assert found <= best
    assert found >= best / 1.06 - text
    assert len(tried) < 40


def test_the_search_ends_where_everything_fits():
    assert 2**19 <= search(lambda cost: (True, cost)) <= 2**20


@pytest.mark.parametrize(("cost", "count"), [(0, 1), (10, 1), (19, 1), (20, 2), (59, 5), (60, 6)])
def test_texts_are_repeated_until_the_cost_is_reached(cost, count):
    worst = Batch(["a", "b"], [Cost(2, 5), Cost(2, 5)])
    batch = fill(worst, cost)
    assert list(batch) == ["a", "b", "a", "b", "a", "b"][:count]
    assert batch.cost == 10 * count


def test_the_worst_texts_are_the_widest_and_of_those_the_longest():
    costs = [Cost(1, 3), Cost(9, 2), Cost(2, 3), Cost(1, 1)]
    worst = worst_texts(costs, lambda cost: cost)
    assert worst.costs == [Cost(2, 3), Cost(1, 3), Cost(9, 2), Cost(1, 1)]


@pytest.mark.slow
@pytest.mark.long
def test_what_fits_into_a_limited_memory_is_found(demo_corpus, monkeypatch):
    monkeypatch.setattr("labelwise.train.batch_size.PRECISE", 2)
    tried = []
    recipe = Recipe(CPU, demo_corpus)
    found = find_batch_size(recipe, lambda cost, fitted: tried.append((cost, fitted)), memory=900 * 2**20)
    assert (found.device, found.unit) == ("CPU", "words")
    assert found.largest == max(cost for cost, fitted in tried if fitted)
    assert found.largest < min(cost for cost, fitted in tried if not fitted)
    assert found.size == int(0.85 * found.largest)


@pytest.mark.long
def test_too_little_memory_is_an_error(demo_corpus):
    with pytest.raises(InputError, match="memory ran out before any text was read: the pipeline alone needs more"):
        find_batch_size(Recipe(CPU, demo_corpus), lambda cost, fitted: None, memory=300 * 2**20)


def test_a_trial_that_fails_otherwise_is_an_error(demo_corpus):
    recipe = Recipe(CPU, demo_corpus, overrides={"training.batcher.unit": "pages"})
    with pytest.raises(InputError, match=r"(?s)a trial failed: .*cpu\.cfg: .*'pages' is not"):
        find_batch_size(recipe, lambda cost, fitted: None)


def test_a_size_is_used_for_its_device_and_its_pipeline(tmp_path):
    settings = load_config(CPU, interpolate=False)
    path = tmp_path / "batch_size.json"
    assert read_batch_size(path, -1, settings) == 0
    path.write_text(json.dumps({"device": "CPU", "pipeline": pipeline_digest(settings), "size": 7}))
    assert read_batch_size(path, -1, settings) == 7
    settings["components"]["ner"]["model"]["hidden_width"] = 65
    assert read_batch_size(path, -1, settings) == 0
    path.write_text(json.dumps({"device": "a GPU", "pipeline": pipeline_digest(settings), "size": 7}))
    assert read_batch_size(path, -1, settings) == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100_000])
def test_a_size_that_is_none_is_named(tmp_path, content):
    path = tmp_path / "batch_size.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"batch_size\.json: not what find-batch-size writes .*; run it again"):
        read_batch_size(path, -1, load_config(CPU, interpolate=False))
