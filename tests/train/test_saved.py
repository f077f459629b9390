import json
import shutil
import string
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from labelwise.corpus.annotation import Annotation, annotate
from labelwise.evaluate.predict import all_found
from labelwise.train.held_out import fit
from labelwise.train.train_pipeline import TrainResult
from spacy_per_label.calibrate import Fitted
from tests.conftest import read_docs, stored
from tests.spacy_per_label.test_vectors import WORDPIECE, write_transformer
from tests.train.training import STEPS, train_in

STEPS = {**STEPS, "training.max_steps": 60, "training.eval_frequency": 30, "training.optimizer.learn_rate": 0.005}


@pytest.fixture(scope="module")
def trained(demo_corpus, tmp_path_factory) -> tuple[Path, TrainResult]:
    folder = tmp_path_factory.mktemp("saved")
    letters = [*string.ascii_letters, *(f"##{letter}" for letter in string.ascii_letters)]
    vocab = {letter: row for row, letter in enumerate(letters)}
    vectors = write_transformer(folder / "letters", WORDPIECE | {"vocab": vocab})
    result = train_in(folder, demo_corpus, STEPS | {"components.tok2vec.model.embed.vectors": str(vectors)})
    shutil.rmtree(vectors)
    return folder, result


@pytest.fixture
def nlp(trained) -> Language:
    return spacy.load(trained[0] / "model")


@pytest.fixture
def dev(demo_corpus, nlp) -> list[Doc]:
    return list(read_docs(demo_corpus / "dev", nlp))


def predict_docs(nlp: Language, docs: list[Doc]) -> list[Doc]:
    return list(nlp.pipe([nlp.make_doc(doc.text) for doc in docs]))


def spans(doc: Doc, group: str) -> set[tuple]:
    return {(span.start, span.end, span.label_) for span in (doc.spans[group] if group else doc.ents)}


def test_the_calibration_is_saved_and_makes_dev_more_probable(trained, nlp, dev):
    folder, result = trained
    cfg = nlp.get_pipe("ner").cfg
    saved = json.loads((folder / "model/ner/cfg").read_text())
    for name, values in result.fitted.settings.items():
        assert saved[name] == values == pytest.approx(cfg[name])
    columns = []
    for fitted in (True, False):
        if not fitted:
            del cfg["slopes"], cfg["intercepts"]
        docs = predict_docs(nlp, dev)
        columns.append(np.concatenate([doc.spans["labels"].attrs["scores"] for doc in docs]).astype("float64"))
    gold = [spans(doc, "gold") for doc in dev]
    named = [
        (span, (span.start, span.end, span.label_) in marked)
        for doc, marked in zip(docs, gold, strict=True)
        for span in doc.spans["labels"]
    ]
    settings = [result.fitted.settings[name] for name in ("slopes", "intercepts")]
    slopes, intercepts = (np.array([one[span.label_] for span, _ in named]) for one in settings)
    after, before = columns
    odds = np.log(before / (1 - before))
    np.testing.assert_allclose(after, 1 / (1 + np.exp(-slopes * odds - intercepts)), atol=1e-4)
    right = np.array([bool(yes) for _, yes in named])
    losses = [-np.log(np.where(right, p, 1 - p)).mean() for p in (after, before)]
    assert losses[0] < losses[1]


def test_calibration_error_is_cross_validated_over_scored_spans(nlp, demo_corpus):
    """All spans are right in one half of the texts, none in the other: the other half's fit has the largest error."""
    cfg = nlp.get_pipe("ner").cfg
    del cfg["slopes"], cfg["intercepts"]
    docs = [doc for doc in predict_docs(nlp, list(read_docs(demo_corpus / "train", nlp))) if doc.spans["labels"]]

    def fit_on(state: str) -> Fitted | None:
        texts = []
        for number, doc in enumerate(docs):
            gold = [(span.start_char, span.end_char, span.label_, []) for span in doc.spans["labels"] if number % 2]
            uncovered = dict.fromkeys(nlp.get_pipe("ner").labels, state) if state else {}
            annotate(copy := nlp.make_doc(doc.text), Annotation(gold, [], uncovered))
            copy.spans["gold"] = [copy.char_span(*span[:3]) for span in gold]
            texts.append(stored(copy))
        return fit(nlp, iter(texts))

    every, part = fit_on(""), fit_on("partial")
    assert every.after > 0.9 > every.before > 0.2
    assert part.settings["slopes"]["DATE"] > 1 > every.settings["slopes"]["DATE"]  # right ones alone
    assert fit_on("none") is None
    cfg["outside"] = 50.0
    assert fit_on("") is None


def test_predictions_have_all_spans_wherever_the_pipeline_keeps_them(nlp, dev):
    expected = [all_found(nlp, doc) for doc in predict_docs(nlp, dev)]
    assert sum(map(len, expected)) > 10
    nlp.get_pipe("ner").spans_key = "elsewhere"
    assert [all_found(nlp, doc) for doc in predict_docs(nlp, dev)] == expected


@pytest.mark.parametrize(("drop", "differ"), [(0.5, True), (0.0, False)])
@pytest.mark.parametrize("name", ["tok2vec", "ner"])
def test_each_component_drops_out_in_updates_alone(name, drop, differ, nlp, dev):
    losses = []
    for seed in (1, 2):
        fix_random_seed(seed)
        examples = [Example(nlp.make_doc(doc.text), doc) for doc in dev]
        for pipe in ("tok2vec", "ner"):
            told = nlp.get_pipe(pipe).update(examples, drop=drop if pipe == name else 0.0)
        losses.append(told["ner"])
    assert (losses[0] != losses[1]) == differ


def test_vectors_are_saved_and_change_what_each_word_is(trained, nlp):
    embed = nlp.get_pipe("tok2vec").model.get_ref("embed")
    doc = nlp.make_doc("Ann saw Bob 12")
    before = embed.predict([doc])[0].copy()
    assert np.isfinite(before).all()
    embed.attrs["vectors"] = 0 * embed.attrs["vectors"]
    assert (embed.predict([doc])[0] != before).any(axis=1).tolist() == [True, True, True, False]  # no letter is in 12
