"""A pipeline that makes other tokens than its corpus has is refused, where they first differ."""

import msgspec
import pytest
from spacy.tokens import Doc

from labelwise.common.errors import InputError
from labelwise.corpus import same_tokens
from labelwise.corpus.same_tokens import check_tokens
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp, read_tokenizer
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.package.contents import inspect_contents
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

TEXTS = [f"word{number} two, three" for number in range(8)]


@pytest.fixture
def corpus(merging):
    merging.add("a", ["A"], [{"text": text, "spans": []} for text in TEXTS], split="train")
    merging.run(docs_per_partition=3)
    return merging.root / "corpus"


def test_the_first_difference_is_shown(corpus):
    nlp = make_nlp("en", TokenizerRules(infixes=(r"(?<=d)(?=7)",)))
    with pytest.raises(InputError) as error:
        check_tokens(nlp, corpus / "train", "merge again")
    assert (
        "has the tokens ['word7', 'two', ',', 'three'], where the pipeline makes ['word', '7', 'two', ',', 'th"
        in str(error.value)
    )
    assert str(error.value).startswith(f"{corpus}/train/part-")
    assert str(error.value).endswith("Remedy: merge again")


def test_spaces_are_compared(merging):
    merging.add("a", ["A"], [{"text": "a  b", "spans": []}], split="train")
    merging.run()
    nlp = make_nlp("zh", TokenizerRules())
    check_tokens(nlp, merging.root / "corpus/train", "")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=["a", " ", "b"], spaces=[False, True, False])
    with pytest.raises(InputError, match=r"has the tokens \['a', ' ', 'b'\], where the pipeline makes \['a', ' ',"):
        check_tokens(nlp, merging.root / "corpus/train", "")


def test_texts_are_compared_up_to_a_number_of_them_or_of_words(corpus, monkeypatch):
    nlp = make_nlp("en", TokenizerRules())
    made = nlp.tokenizer
    asked = []
    nlp.tokenizer = lambda text: asked.append(text) or made(text)
    check_tokens(nlp, corpus / "train", "")
    assert sorted(asked) == TEXTS
    monkeypatch.setattr(same_tokens, "WORDS", 9)
    check_tokens(nlp, corpus / "train", "")
    monkeypatch.setattr(same_tokens, "TEXTS", 2)
    check_tokens(nlp, corpus / "train", "")
    assert len(asked) == 8 + 3 + 2


def test_training_evaluation_and_packaging_refuse_such_a_pipeline(demo_corpus, tmp_path, monkeypatch):
    """That of the corpus is trained, then packages, so to say, are other ones."""
    options = {"training.max_steps": 2, "training.eval_frequency": 2}
    recipe = Recipe(ROOT / "configs/cpu.cfg", demo_corpus, overrides=options)
    train_pipeline(recipe, tmp_path / "model", tmp_path / "curve.tsv")
    lang, rules = read_tokenizer(demo_corpus / "tokenizer.json")
    make_nlp(lang, msgspec.structs.replace(rules, infixes=())).tokenizer.to_disk(tmp_path / "model/tokenizer")
    with pytest.raises(InputError, match=r"test/part-.* the corpus has the tokens .* with --other-tokens"):
        evaluate_pipeline(tmp_path / "model", demo_corpus / "test")
    assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test", other_tokens=True).metrics.texts > 0
    with pytest.raises(InputError, match=r"test/part-.* the corpus has the tokens .* run all again"):
        inspect_contents(tmp_path / "model", demo_corpus)
    monkeypatch.setattr("labelwise.train.registry.extend_tokenizer", lambda nlp, rules: None)
    with pytest.raises(InputError, match=r"train/part-.* the corpus has the tokens .* Remedy: merge again"):
        train_pipeline(recipe, tmp_path / "other", tmp_path / "curve.tsv")
