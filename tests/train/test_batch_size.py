"""How many words a device can be given at a time, where updates fail beyond some."""

import json

import pytest
from spacy.language import Language
from spacy.util import load_config

from labelwise.errors import InputError
from labelwise.train.batch_size import find_batch_size, pipeline_digest, read_batch_size
from labelwise.train.config import read_settings
from labelwise.train.recipe import Recipe
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"


@pytest.mark.parametrize("most", [0, 300, 1200])
def test_trials_double_until_memory_runs_out(most, demo_corpus, monkeypatch, tmp_path):
    def update(self, examples, **options):
        if sum(map(len, examples)) > most:
            raise MemoryError

    monkeypatch.setattr(Language, "update", update)
    recipe, told = Recipe(CPU, demo_corpus), []
    if most:
        found = find_batch_size(recipe, lambda *trial: told.append(trial))
        assert (found["device"], found["words"]) == ("CPU", told[-2][0])
        path = tmp_path / "batch_size.json"
        path.write_text(json.dumps(found))
        assert read_batch_size(path, -1, read_settings(recipe)) == found["words"]
    else:
        with pytest.raises(InputError, match="not even one text fits into memory; set max_words"):
            find_batch_size(recipe, lambda *trial: told.append(trial))
    assert [fits for _, fits in told] == [True] * (len(told) - 1) + [False]
    assert [words for words, _ in told] == [told[0][0] * 2**number for number in range(len(told))]


def test_a_size_is_used_for_its_device_and_its_pipeline(tmp_path):
    settings = load_config(CPU, interpolate=False)
    path = tmp_path / "batch_size.json"
    assert read_batch_size(path, -1, settings) == 0
    for device, digest, words in (("CPU", pipeline_digest(settings), 7), ("CPU", "x", 0), ("a GPU", "x", 0)):
        path.write_text(json.dumps({"device": device, "pipeline": digest, "words": 7}))
        assert read_batch_size(path, -1, settings) == words
    for content in ("", "[]", "{}", "[" * 100_000):
        path.write_text(content)
        with pytest.raises(InputError, match=r"batch_size\.json: not what find-batch-size writes .*; run it again"):
            read_batch_size(path, -1, settings)
