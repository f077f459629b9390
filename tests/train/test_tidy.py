"""What a saved pipeline holds of its training: nothing but what it needs."""

import json
import re

import pytest
import spacy
from spacy.tokens import DocBin

from labelwise.train import run
from labelwise.train.checkpoint import copy
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

SMALL = {
    "training.max_steps": 20,
    "training.eval_frequency": 20,
    "training.batcher.size": 400,
    "training.optimizer.learn_rate": 0.005,
}


@pytest.fixture(scope="module")
def both(demo_corpus, tmp_path_factory):
    """A folder with `model`, which is tidy, and `untidy`, as spaCy saved it."""
    folder = tmp_path_factory.mktemp("tidy")
    tidy = run.tidy_pipeline
    with pytest.MonkeyPatch.context() as patched:

        def watch(saved, *given):
            copy(saved, folder / "linked")
            spacy.load(folder / "linked").to_disk(folder / "untidy")
            tidy(saved, *given)

        patched.setattr(run, "tidy_pipeline", watch)
        train_pipeline(
            Recipe(ROOT / "configs" / "cpu.cfg", demo_corpus, overrides=SMALL), folder / "model", folder / "c.tsv"
        )
    return folder


@pytest.fixture(scope="module")
def docs(demo_corpus):
    vocab = spacy.blank("en").vocab
    return [doc for path in (demo_corpus / "train").glob("*.spacy") for doc in DocBin().from_disk(path).get_docs(vocab)]


def strings(folder) -> set[str]:
    return set(json.loads((folder / "vocab" / "strings.json").read_text()))


def test_the_words_of_the_texts_are_not_saved(both, docs):
    """Of long words, which aren't in bytes by chance, nor are the config's; spaCy itself would save them."""
    config = (both / "untidy" / "config.cfg").read_text() + (both / "untidy" / "meta.json").read_text()
    language = {*spacy.blank("en").vocab.strings, *re.findall(r"\w+", config)}
    words = {token.text for doc in docs for token in doc if len(token.text) > 6} - language
    assert len(words) > 20
    assert words <= strings(both / "untidy")
    content = b"\n".join(path.read_bytes() for path in (both / "model").rglob("*") if path.is_file())
    assert [word for word in words if word.encode() in content] == []


def test_predictions_are_those_of_the_untidy_pipeline(both, docs):
    tidy, untidy = spacy.load(both / "model"), spacy.load(both / "untidy")
    texts = [doc.text for doc in docs]
    one, other = (
        [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in nlp.pipe(texts)] for nlp in (tidy, untidy)
    )
    assert one == other
    assert any(one)
