"""A pipeline has digests of the texts that it was trained on."""

from pathlib import Path

import spacy

from labelwise.evaluate.run import evaluate_pipeline
from tests.conftest import read_docs
from tests.train.training import STEPS, train_in


def texts_of(split: Path) -> set[str]:
    return {doc.text for doc in read_docs(split, spacy.blank("en"))}


def test_a_test_set_of_another_salt_is_known_to_have_been_trained_on(merging):
    """The same texts, split otherwise."""
    spans = [{"start": 0, "end": 3, "label": "PER"}]
    merging.add("people", ["PER"], [{"text": f"Ann saw {n} dogs.", "spans": spans} for n in range(40)])
    merging.run("before", dev_ratio=0.2, test_ratio=0.2)
    merging.run("after", dev_ratio=0.2, test_ratio=0.2, split_salt="another")
    before, after = merging.root / "before", merging.root / "after"
    train_in(merging.root, before, {**STEPS, "training.max_steps": 1})
    test = texts_of(after / "test")
    seen = evaluate_pipeline(merging.root / "model", after / "test").metrics.seen
    assert 0 < seen.texts == len(test & (texts_of(before / "train") | texts_of(before / "dev"))) < len(test)
    assert evaluate_pipeline(merging.root / "model", before / "test").metrics.seen.texts == 0
