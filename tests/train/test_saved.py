"""What a training fits, chooses and is given is in the pipeline that it saves, and changes what that finds."""

import json
import shutil
import string
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model, fix_random_seed

from labelwise.corpus.annotation import Annotation, annotate
from labelwise.evaluate.predict import all_found
from labelwise.train.held_out import fit
from labelwise.train.run import TrainResult
from spacy_per_label.calibrate import Fitted
from tests.conftest import read_docs, stored
from tests.spacy_per_label.test_vectors import WORDPIECE, write_transformer
from tests.train.training import STEPS, train_in

STEPS = {**STEPS, "training.max_steps": 60, "training.eval_frequency": 30, "training.optimizer.learn_rate": 0.005}
SHIFTS = (0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -4.0, -5.0, -6.0)


@pytest.fixture(scope="module")
def trained(demo_corpus, tmp_path_factory) -> tuple[Path, TrainResult]:
    """A folder with a pipeline that was trained with vectors of letters, `model`; and what the training told."""
    folder = tmp_path_factory.mktemp("saved")
    letters = [*string.ascii_letters, *(f"##{letter}" for letter in string.ascii_letters)]
    vocab = {letter: row for row, letter in enumerate(letters)}
    vectors = write_transformer(folder / "letters", WORDPIECE | {"vocab": vocab})
    told = train_in(folder, demo_corpus, STEPS | {"components.tok2vec.model.embed.vectors": str(vectors)})
    shutil.rmtree(vectors)
    return folder, told


@pytest.fixture
def nlp(trained) -> Language:
    return spacy.load(trained[0] / "model")


@pytest.fixture
def dev(demo_corpus, nlp) -> list[Doc]:
    return list(read_docs(demo_corpus / "dev", nlp))


def found(nlp: Language, docs: list[Doc]) -> list[Doc]:
    return list(nlp.pipe([nlp.make_doc(doc.text) for doc in docs]))


def spans(doc: Doc, group: str) -> set[tuple]:
    return {(span.start, span.end, span.label_) for span in (doc.spans[group] if group else doc.ents)}


def scores_of(docs: list[Doc], dev: list[Doc]) -> tuple[float, float, float]:
    """F1 of all entities, the mean of the labels' that have gold, and precision."""
    counts: dict[str, np.ndarray] = {}
    for doc, gold in zip(docs, dev, strict=True):
        for group, side in ((spans(doc, ""), 0), (spans(gold, ""), 1), (spans(doc, "") & spans(gold, ""), 2)):
            for *_, label in group:
                counts.setdefault(label, np.zeros(3))[side] += 1
    total = sum(counts.values())
    with_gold = [one for one in counts.values() if one[1]]
    micro, *by_label = (2 * one[2] / one[:2].sum() for one in (total, *with_gold))
    return micro, sum(by_label) / len(by_label), total[2] / total[0]


@pytest.mark.parametrize("by", ["ents_f", "ents_macro_f", "ents_p"])
def test_the_shift_of_outside_that_scores_best_on_dev_is_saved_and_moves_what_is_found(by, demo_corpus, dev, tmp_path):
    """By the config's weights."""
    weights = {f"training.score_weights.{name}": float(name == by) for name in ("ents_f", "ents_macro_f", "ents_p")}
    train_in(tmp_path, demo_corpus, STEPS | weights)
    cfg = (nlp := spacy.load(tmp_path / "model")).get_pipe("ner").cfg
    saved, scores, counts = cfg["outside"], [], []
    for name in ("slopes", "intercepts"):  # it is chosen before they are fitted
        del cfg[name]
    for cfg["outside"] in SHIFTS:
        docs = found(nlp, dev)
        scores.append(dict(zip(weights, scores_of(docs, dev), strict=True))[f"training.score_weights.{by}"])
        counts.append(sum(len(doc.spans["labels"]) for doc in docs))
    assert saved == SHIFTS[scores.index(max(scores))]
    assert all(one <= other for one, other in pairwise(counts))
    assert counts[0] < counts[-1]


def test_dev_is_predicted_once(nlp, dev, monkeypatch):
    """Whatever the number of shifts."""
    model, predict, given = nlp.get_pipe("ner").model, Model.predict, []

    def counted(self, X):
        given.extend(X if self is model else ())
        return predict(self, X)

    monkeypatch.setattr(Model, "predict", counted)
    fit(nlp, iter(map(stored, dev)), SHIFTS, [], lambda counts: 0.0)
    assert len(given) == len(dev)


def test_the_calibration_is_saved_and_makes_dev_more_probable(trained, nlp, dev):
    folder, told = trained
    cfg = nlp.get_pipe("ner").cfg
    saved = json.loads((folder / "model/ner/cfg").read_text())
    for name, values in told.fitted.settings.items():
        assert saved[name] == values == pytest.approx(cfg[name])
    columns = []
    for fitted in (True, False):
        if not fitted:
            del cfg["slopes"], cfg["intercepts"]
        docs = found(nlp, dev)
        columns.append(np.concatenate([doc.spans["labels"].attrs["scores"] for doc in docs]).astype("float64"))
    gold = [spans(doc, "gold") for doc in dev]
    named = [
        (span, (span.start, span.end, span.label_) in marked)
        for doc, marked in zip(docs, gold, strict=True)
        for span in doc.spans["labels"]
    ]
    slopes = np.array([told.fitted.settings["slopes"][span.label_] for span, _ in named])
    after, before = columns
    odds = np.log(before / (1 - before))
    np.testing.assert_allclose(after, 1 / (1 + np.exp(-slopes * odds)), atol=1e-4)  # one temperature: dev is small
    right = np.array([bool(yes) for _, yes in named])
    losses = [-np.log(np.where(right, p, 1 - p)).mean() for p in (after, before)]
    assert losses[0] < losses[1]


def test_what_is_judged_is_fitted_on_and_the_error_is_of_texts_that_were_not(nlp, demo_corpus):
    """Of texts in turn, all that is found is right, and nothing: what half of them fit is as wrong as can be."""
    cfg = nlp.get_pipe("ner").cfg
    del cfg["slopes"], cfg["intercepts"]
    docs = [doc for doc in found(nlp, list(read_docs(demo_corpus / "train", nlp))) if doc.spans["labels"]]

    def fit_on(state: str) -> Fitted | None:
        texts = []
        for number, doc in enumerate(docs):
            gold = [(one.start_char, one.end_char, one.label_, []) for one in doc.spans["labels"] if number % 2]
            uncovered = dict.fromkeys(nlp.get_pipe("ner").labels, state) if state else {}
            annotate(copy := nlp.make_doc(doc.text), Annotation(gold, [], uncovered))
            copy.spans["gold"] = [copy.char_span(*one[:3]) for one in gold]
            texts.append(stored(copy))
        return fit(nlp, iter(texts), [cfg["outside"]], [], lambda counts: 0.0)

    every, part = fit_on(""), fit_on("partial")
    assert every.after > 0.9 > every.before > 0.2
    assert part.settings["slopes"]["DATE"] > 1 > every.settings["slopes"]["DATE"]  # right ones alone
    assert fit_on("none") is None
    cfg["outside"] = 50.0
    assert fit_on("") is None


def test_predictions_have_all_spans_wherever_the_pipeline_keeps_them(nlp, dev):
    expected = [all_found(nlp, doc) for doc in found(nlp, dev)]
    assert sum(map(len, expected)) > 10
    nlp.get_pipe("ner").spans_key = "elsewhere"
    assert [all_found(nlp, doc) for doc in found(nlp, dev)] == expected


@pytest.mark.parametrize(("drop", "differ"), [(0.5, True), (0.0, False)])
@pytest.mark.parametrize("name", ["tok2vec", "ner"])
def test_each_component_drops_out_in_updates_alone(name, drop, differ, nlp, dev):
    """Two updates without a step between them, whose random numbers differ."""
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
