"""A pipeline has digests of the texts that it was trained on, and of those of the pipeline that it began with."""

import shutil
from pathlib import Path

import pytest
import spacy
from spacy.util import load_config

from labelwise.corpus.seen_texts import SEEN_TEXTS, collect_seen, read_seen
from labelwise.errors import InputError
from labelwise.evaluate.run import evaluate_pipeline
from tests.conftest import Merging, read_docs
from tests.train.training import CPU, STEPS, train_in

SMALL = {**STEPS, "training.max_steps": 1}
BATCH = {name: value for name, value in SMALL.items() if "width" not in name}  # which the source has


def texts_of(split: Path) -> set[str]:
    return {doc.text for doc in read_docs(split, spacy.blank("en"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Corpora PER and LOC, of other texts, the second with both labels, and `model`, a pipeline trained on PER."""
    merging = Merging(tmp_path_factory.mktemp("seen"))
    for label, labels, numbers in (("PER", ["PER"], range(40)), ("LOC", ["PER", "LOC"], range(40, 80))):
        spans = [{"start": 0, "end": 3, "label": label}]
        merging.declared.clear()
        merging.add(label, labels, [{"text": f"Ann saw {n} dogs.", "spans": spans} for n in numbers])
        merging.run(label, dev_ratio=0.2, test_ratio=0.2)
    train_in(merging.root, merging.root / "PER", SMALL)
    return merging.root


def config_from(first: Path, folder: Path) -> Path:
    """Write configs/cpu.cfg with tok2vec from a pipeline, by spaCy's own `source`."""
    settings = load_config(CPU, interpolate=False)
    settings["components"]["tok2vec"] = {"source": str(first)}
    settings["components"]["per_label"]["model"]["tok2vec"]["width"] = 32
    settings.to_disk(folder / "own.cfg")
    return folder / "own.cfg"


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_digests_are_united_with_those_of_the_pipeline_that_it_began_with(known, folder, tmp_path):
    first = Path(shutil.copytree(folder / "model", tmp_path / "first"))
    own, before = (set(collect_seen(folder / name, []).digests.tolist()) for name in ("LOC", "PER"))
    assert set(read_seen(first).digests.tolist()) == before
    if not known:
        (first / SEEN_TEXTS).unlink()
    train_in(tmp_path, folder / "LOC", BATCH, config_from(first, tmp_path))
    seen = read_seen(tmp_path / "model")
    assert set(seen.digests.tolist()) == (own | before if known else own)
    assert seen.whole == known


def test_what_cannot_be_begun_with_is_an_error_before_the_first_step(folder, tmp_path, monkeypatch):
    first = Path(shutil.copytree(folder / "model", tmp_path / "first"))
    (first / SEEN_TEXTS).write_bytes(b"damaged")
    monkeypatch.setattr("labelwise.train.loop.Loop.run", lambda self: pytest.fail("it was begun"))
    config = config_from(first, tmp_path)
    with pytest.raises(InputError, match=SEEN_TEXTS):
        train_in(tmp_path, folder / "LOC", BATCH, config)
    shutil.rmtree(first)
    with pytest.raises(InputError, match=r"own\.cfg: .*first"):
        train_in(tmp_path, folder / "LOC", BATCH, config)
    text = config.read_text().replace('factory = "per_label"', f'source = "{folder / "model"}"')
    config.write_text(text)
    with pytest.raises(InputError, match=r"\[components\.per_label\] has a source: train it anew"):
        train_in(tmp_path, folder / "LOC", BATCH, config)


def test_a_test_set_of_another_salt_is_known_to_have_been_trained_on(merging, folder):
    """The same texts, split otherwise."""
    shutil.copytree(folder / "tasks", merging.root / "tasks")
    merging.declared = [{"name": "PER", "path": "PER.jsonl", "labels": ["PER"]}]
    merging.add("none", ["PER"], [])
    merging.run(dev_ratio=0.2, test_ratio=0.2, split_salt="another")
    before, test = folder / "PER", texts_of(merging.root / "corpus" / "test")
    seen = evaluate_pipeline(folder / "model", merging.root / "corpus" / "test").metrics.seen
    assert 0 < seen.texts == len(test & (texts_of(before / "train") | texts_of(before / "dev"))) < len(test)
    assert evaluate_pipeline(folder / "model", before / "test").metrics.seen.texts == 0
