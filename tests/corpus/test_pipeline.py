from types import SimpleNamespace

import msgspec
import pytest
from spacy.tokens import Doc

from labelwise.base.errors import InputError
from labelwise.corpus.pipeline import bounded_vocab, check_tokens, predict_each
from labelwise.corpus.tokenizer import LearningTokenizer, TokenizerRules, make_nlp, read_tokenizer
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.package.wheel import load_recognizer
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT, TINY
from tests.merge.test_merge_data import random_datasets


@pytest.mark.guarantee("tokenizer")
def test_the_first_difference_is_shown(merging):
    texts = [f"word{number} two, three" for number in range(8)]
    merging.add("a", ["A"], [{"text": text, "spans": []} for text in texts], split="train")
    merging.run(docs_per_partition=3)
    split = merging.root / "corpus/train"
    check_tokens(make_nlp("en", TokenizerRules()), split, "")
    with pytest.raises(InputError) as error:
        check_tokens(make_nlp("en", TokenizerRules(infixes=(r"(?<=d)(?=7)",))), split, "merge again")
    assert str(error.value).startswith(f"{split}/part-")
    assert str(error.value).endswith(
        "has the tokens ['word7', 'two', ',', 'three'], the pipeline makes ['word', '7', 'two', ',', 'three']; "
        "merge again"
    )


@pytest.mark.guarantee("tokenizer")
def test_spaces_are_compared(merging):
    merging.add("a", ["A"], [{"text": "a  b", "spans": []}], split="train")
    merging.run()
    nlp = make_nlp("zh", TokenizerRules())
    check_tokens(nlp, merging.root / "corpus/train", "")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=["a", " ", "b"], spaces=[False, True, False])
    with pytest.raises(InputError, match=r"has the tokens \['a', ' ', 'b'\], the pipeline makes \['a', ' ',"):
        check_tokens(nlp, merging.root / "corpus/train", "")


@pytest.mark.guarantee("tokenizer")
def test_training_evaluation_and_packaging_refuse_such_a_pipeline(demo_corpus, tmp_path, monkeypatch):
    lang, rules = read_tokenizer(demo_corpus / "tokenizer.json")
    nlp = make_nlp(lang, msgspec.structs.replace(rules, infixes=()))
    nlp.add_pipe("ner").add_label("A")
    nlp.initialize()
    nlp.to_disk(tmp_path / "model")
    with pytest.raises(InputError, match=r"test/part-.* the corpus has the tokens .* with --other-tokens"):
        evaluate_pipeline(tmp_path / "model", demo_corpus / "test")
    assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test", other_tokens=True).metrics.texts > 0
    with pytest.raises(InputError, match=r"test/part-.* the corpus has the tokens .* run all again"):
        load_recognizer(tmp_path / "model", demo_corpus)
    monkeypatch.setattr("labelwise.train.registry.extend_tokenizer", lambda nlp, rules: None)
    recipe = TrainingConfig(ROOT / "configs/cpu.cfg", demo_corpus, overrides=TINY)
    with pytest.raises(InputError, match=r"train/part-.* the corpus has the tokens .*; merge again"):
        train_pipeline(recipe, tmp_path / "other", tmp_path / "curve.tsv")


def test_a_large_vocabulary_forgets_what_later_texts_add_and_a_merge_gives_the_same_bytes(merging, monkeypatch):
    random_datasets(merging, 1)
    ledger = merging.run(docs_per_partition=10)
    monkeypatch.setattr("labelwise.corpus.pipeline.MAX_STRINGS", 0)
    assert merging.run("forgetful", docs_per_partition=10) == ledger
    assert merging.files() == merging.files("forgetful")
    tokenizer = LearningTokenizer(make_nlp("en", TokenizerRules()))
    tokenizer.nlp.tokenizer.max_cache_size = 0
    before = len(tokenizer.nlp.vocab.strings)
    for number in range(30):
        with bounded_vocab(tokenizer.nlp):
            assert tokenizer(f"unheard-of{number} words{number}")[-1].text == f"words{number}"
    assert len(tokenizer.nlp.vocab.strings) == before


@pytest.mark.parametrize(("strings", "times"), [(20_000, 1), (0, 6)])
def test_predicted_texts_have_the_pipelines_tokens_and_words_are_tokenized_once(strings, times, monkeypatch):
    """spaCy caches no word of a text that begins with a special case, nor in a memory zone."""
    monkeypatch.setattr("labelwise.corpus.pipeline.MAX_STRINGS", strings)
    nlp, tokenized = make_nlp("en", TokenizerRules()), []
    texts = [SimpleNamespace(text=f"Don't split (re-use) 5mg of it, e.g. in May{end}") for end in ("", "?", "") * 2]
    expected = [[(token.text, token.whitespace_) for token in nlp.make_doc(text.text)] for text in texts]
    find = nlp.tokenizer.infix_finditer
    nlp.tokenizer.infix_finditer = lambda word: (tokenized.append(word), find(word))[1]
    made = [
        [(token.text, token.whitespace_) for token in doc]
        for _, doc in predict_each(nlp, iter(texts), lambda one: len(one.text))
    ]
    assert made == expected
    assert tokenized.count("re-use") == times
