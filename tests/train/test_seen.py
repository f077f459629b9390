"""A pipeline has digests of the texts that it was trained on, and of those of the pipeline that it began with."""

import shutil
from pathlib import Path

import pytest
import spacy

from labelwise.corpus.seen_texts import SEEN_TEXTS, collect_seen, read_seen
from labelwise.errors import InputError
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.reader import read_docs
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import Merging
from tests.train.test_resume import CPU

SMALL = {"training.max_steps": 1, "training.eval_frequency": 1, "components.tok2vec.model.encode.width": 16}


def texts_of(split: Path) -> set[str]:
    return {doc.text for doc in read_docs(split, spacy.blank("en"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Corpora PER and LOC, of other texts, the second with both labels, and `first`, a pipeline trained on PER."""
    merging = Merging(tmp_path_factory.mktemp("seen"))
    for label, labels, numbers in (("PER", ["PER"], range(40)), ("LOC", ["PER", "LOC"], range(40, 80))):
        spans = [{"start": 0, "end": 3, "label": label}]
        merging.declared.clear()
        merging.add(label, labels, [{"text": f"Ann saw {n} dogs.", "spans": spans} for n in numbers])
        merging.run(label, dev_ratio=0.2, test_ratio=0.2)
    train_pipeline(Recipe(CPU, merging.root / "PER", overrides=SMALL), merging.root / "first", merging.root / "c.tsv")
    return merging.root


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_digests_are_united_with_those_of_the_pipeline_that_it_began_with(known, folder, tmp_path):
    first = Path(shutil.copytree(folder / "first", tmp_path / "first"))
    own, before = (set(collect_seen(folder / name, []).digests.tolist()) for name in ("LOC", "PER"))
    assert set(read_seen(first).digests.tolist()) == before
    if not known:
        (first / SEEN_TEXTS).unlink()
    recipe = Recipe(CPU, folder / "LOC", init_from=str(first), overrides=SMALL)
    train_pipeline(recipe, tmp_path / "model", tmp_path / "c.tsv")
    seen = read_seen(tmp_path / "model")
    assert set(seen.digests.tolist()) == (own | before if known else own)
    assert seen.whole == known


def test_digests_that_cannot_be_read_are_an_error_before_the_first_step(folder, tmp_path, monkeypatch):
    first = Path(shutil.copytree(folder / "first", tmp_path / "first"))
    (first / SEEN_TEXTS).write_bytes(b"damaged")
    monkeypatch.setattr("labelwise.train.run.make_pipeline", lambda *given: pytest.fail("it was begun"))
    recipe = Recipe(CPU, folder / "LOC", init_from=str(first), overrides=SMALL)
    with pytest.raises(InputError, match=SEEN_TEXTS):
        train_pipeline(recipe, tmp_path / "model", tmp_path / "c.tsv")


def test_a_test_set_of_another_salt_is_known_to_have_been_trained_on(merging, folder):
    """The same texts, split otherwise."""
    shutil.copytree(folder / "tasks", merging.root / "tasks")
    merging.declared = [{"name": "PER", "path": "PER.jsonl", "labels": ["PER"]}]
    merging.add("none", ["PER"], [])
    merging.run(dev_ratio=0.2, test_ratio=0.2, split_salt="another")
    before, test = folder / "PER", texts_of(merging.root / "corpus" / "test")
    seen = evaluate_pipeline(folder / "first", merging.root / "corpus" / "test").metrics.seen
    assert 0 < seen.texts == len(test & (texts_of(before / "train") | texts_of(before / "dev"))) < len(test)
    assert evaluate_pipeline(folder / "first", before / "test").metrics.seen.texts == 0
