"""spaCy's ner, all states of a batch at a time, against spaCy's own, state by state."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import get_current_ops, set_current_ops
from thinc.backends import NumpyOps

from labelwise.recognizer.batched_ner import BatchedNer, batched_ner
from labelwise.train.parameters import find_slots

WORDS = ["mix", "2", "ml", "of", "buffer", "\n", "spin", "it", "at", "900", "g", "."]
ATTRS = ["ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID"]
LABELS = ["Amount", "Reagent", "Action-Verb"]


@pytest.fixture(autouse=True)
def plain_ops() -> Iterator[None]:
    """Let all be computed by thinc's own ops, so that both ways draw the same masks of dropout."""
    before = get_current_ops()
    set_current_ops(NumpyOps())
    yield
    set_current_ops(before)


def make_example(nlp: Language, length: int, draw: random.Random) -> Example:
    """Make a text with random entities, tokens of which nothing is known, rejected spans, and sentences."""
    doc = Doc(nlp.vocab, [draw.choice(WORDS) for _ in range(length)])
    borders = sorted(draw.sample(range(length), length // 3))
    spans = [
        Span(doc, start, draw.randint(start + 1, min(start + 4, end)), draw.choice(LABELS))
        for start, end in zip(borders, [*borders[1:], length][: len(borders)], strict=True)
    ]
    parts = ["missing", "nothing", "known", "known", "rejected"]
    part = [draw.choice(parts[:2] if span[0].is_space else parts) for span in spans]
    chosen = {name: [span for span, one in zip(spans, part, strict=True) if one == name] for name in part}
    if draw.random() < 0.8:
        doc.set_ents(chosen.get("known", []), missing=chosen.get("missing", []), default="outside")
    doc.spans["incorrect_spans"] = chosen.get("rejected", [])
    predicted = Doc(nlp.vocab, [token.text for token in doc])
    for token in predicted[1:]:
        inside = doc[token.i].ent_iob == 1
        token.is_sent_start = True if draw.random() < 0.1 and not inside else None
    return Example(predicted, doc)


def make_batch(nlp: Language, lengths: Sequence[int], seed: int) -> list[Example]:
    """Make a batch of texts of some lengths."""
    draw = random.Random(seed)
    return [make_example(nlp, length, draw) for length in lengths]


def pipeline(cut: int = 12, **model: object) -> Language:
    """Make a pipeline whose ner has learnt a little from spaCy, has a label that no text has had, and finds a lot."""
    np.random.seed(1)
    random.seed(1)
    nlp = spacy.blank("en")
    settings = {"hidden_width": 16, "maxout_pieces": 2, "use_upper": True, "extra_state_tokens": False, **model}
    tok2vec = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 200, "window_size": 1}
    tok2vec |= {"maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None}
    architecture = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner", **settings}
    config = {"update_with_oracle_cut_size": cut, "incorrect_spans_key": "incorrect_spans"}
    ner = nlp.add_pipe("ner", config={**config, "model": {**architecture, "tok2vec": tok2vec}})
    for label in LABELS:
        ner.add_label(label)
    optimizer = nlp.initialize(lambda: make_batch(nlp, [20, 30], 0))
    for step in range(5):
        nlp.update(make_batch(nlp, [20, 30, 7], step), sgd=optimizer)
    ner.add_label("Never seen")
    _, lower, upper = ner.model.layers
    top = upper if settings["use_upper"] else lower
    for name in ("W", "b"):
        shape = top.get_param(name).shape
        top.set_param(name, top.get_param(name) + np.random.normal(0, 1, shape).astype("f"))
    for node in ner.model.walk():
        node.ops = get_current_ops()  # the upper layer asks for the CPU's, which are labelwise's once they are imported
    return nlp


def gradients(nlp: Language, texts: list[Example]) -> tuple[list[np.ndarray], float, set[int]]:
    """Compute the gradients of an update, the loss, and the actions still unseen; then let all be as before."""
    attrs = nlp.get_pipe("ner").model.attrs
    before = set(attrs["unseen_classes"])
    np.random.seed(2)
    random.seed(2)
    losses = nlp.update(texts, drop=0.0, sgd=False)
    unseen, attrs["unseen_classes"] = set(attrs["unseen_classes"]), before
    slots = find_slots(nlp)
    found = [np.array(slot.gradient()) for slot in slots]
    for slot in slots:
        slot.set_gradient(np.zeros_like(slot.gradient()))
    return found, losses["ner"], unseen


def compare(nlp: Language, texts: list[Example]) -> None:
    """Check that an update does what spaCy's does."""
    expected, expected_loss, expected_unseen = gradients(nlp, texts)
    with batched_ner(nlp):
        found, loss, unseen = gradients(nlp, texts)
    assert loss == pytest.approx(expected_loss, rel=1e-5, abs=1e-5)
    assert unseen == expected_unseen
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=2e-5)


@pytest.fixture
def left_to_spacy(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of each update whether it was left to spaCy."""
    noted = []
    learn = BatchedNer.learn

    def note(self: BatchedNer, examples: Sequence[Example], drop: float) -> float:
        noted.append(True)
        loss = learn(self, examples, drop)
        noted[-1] = False
        return loss

    monkeypatch.setattr(BatchedNer, "learn", note)
    return noted


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_upper": False},
        {"extra_state_tokens": True},
        {"maxout_pieces": 3},
        {"cut": 0},
        {"cut": 3},
        {"cut": 40},
    ],
    ids=str,
)
def test_the_gradients_and_the_loss_are_those_of_spacy(settings: dict[str, Any], left_to_spacy: list[bool]):
    nlp = pipeline(**settings)
    for seed in range(25):
        draw = random.Random(seed)
        compare(nlp, make_batch(nlp, draw.choices([1, 2, 3, 5, 8, 20, 40], k=draw.randint(1, 6)), seed))
    assert left_to_spacy == [False] * 25


def entity_over_sentences(nlp: Language, draw: random.Random) -> Example:
    """Make a text whose entity can't go on after two tokens, where it is wrong and rejected to end it."""
    doc = Doc(nlp.vocab, draw.choices(WORDS, k=9))
    start, label = draw.randrange(5), draw.choice(LABELS)
    doc.set_ents([Span(doc, start, start + 4, label)])
    doc.spans["incorrect_spans"] = [Span(doc, start, start + 2, label)]
    predicted = Doc(nlp.vocab, [token.text for token in doc])
    predicted[start + 2].is_sent_start = True
    return Example(predicted, doc)


def rejected_at_the_end(nlp: Language, draw: random.Random) -> Example:
    """Make a text of whose last tokens nothing is known but a span that is rejected."""
    length = draw.randint(2, 6)
    doc = Doc(nlp.vocab, draw.choices(WORDS, k=length))
    end = draw.randint(length - 1, length)
    doc.spans["incorrect_spans"] = [Span(doc, draw.randrange(end), end, draw.choice(LABELS))]
    return Example(Doc(nlp.vocab, [token.text for token in doc]), doc)


@pytest.mark.parametrize("make", [entity_over_sentences, rejected_at_the_end])
def test_the_gradients_of_rare_texts_are_those_of_spacy(make, left_to_spacy: list[bool]):
    nlp = pipeline(cut=0)
    for seed in range(10):
        draw = random.Random(seed)
        compare(nlp, [make(nlp, draw) for _ in range(30)])
    assert left_to_spacy == [False] * 10


@pytest.mark.parametrize(
    "settings", [{}, {"use_upper": False}, {"extra_state_tokens": True}, {"maxout_pieces": 3}], ids=str
)
def test_the_entities_that_are_found_are_those_of_spacy(settings: dict[str, Any]):
    nlp = pipeline(**settings)
    count = 0
    for seed in range(10):
        lengths = random.Random(seed).choices([0, 1, 2, 3, 20, 90], k=9)
        docs = [eg.predicted for eg in make_batch(nlp, lengths, seed)]
        expected = [doc.to_array(ATTRS) for doc in nlp.pipe((doc.copy() for doc in docs), batch_size=4)]
        with batched_ner(nlp):
            found = [doc.to_array(ATTRS) for doc in nlp.pipe((doc.copy() for doc in docs), batch_size=4)]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        count += sum((one[:, 0] == 3).sum() for one in found if one.size)
    assert count > 15


def test_entities_that_a_doc_has_are_kept():
    nlp = pipeline()
    doc = make_batch(nlp, [30], 5)[0].predicted
    doc.set_ents([Span(doc, 3, 6, "Never seen")], default="unmodified")
    expected = nlp.get_pipe("ner")(doc.copy()).to_array(ATTRS)
    with batched_ner(nlp):
        (found,) = nlp.get_pipe("ner").pipe([doc])
    np.testing.assert_array_equal(found.to_array(ATTRS), expected)
    assert "Never seen" in [ent.label_ for ent in found.ents]


def test_the_gradients_say_something():
    nlp = pipeline()
    expected, loss, unseen = gradients(nlp, make_batch(nlp, [40, 3, 18], 7))
    assert loss > 1
    assert unseen
    assert sum(np.abs(one).max() > 0.01 for one in expected) == len(expected)


def other_tokens(eg: Example) -> Example:
    first, second, *rest = (token.text for token in eg.predicted)
    return Example(Doc(eg.predicted.vocab, [first + second, *rest]), eg.reference)


def entities_already(eg: Example) -> Example:
    eg.predicted.set_ents([Span(eg.predicted, 3, 5, "Amount")])
    return eg


def without_tokens(eg: Example) -> Example:
    return Example(Doc(eg.predicted.vocab), Doc(eg.predicted.vocab))


@pytest.mark.parametrize("change", [other_tokens, entities_already])
def test_what_is_unusual_is_left_to_spacy(change, left_to_spacy: list[bool]):
    nlp = pipeline()
    first, second = make_batch(nlp, [10, 10], 3)
    compare(nlp, [change(first), second])
    assert left_to_spacy == [True]


def test_an_unknown_label_is_left_to_spacy_which_then_knows_it(left_to_spacy: list[bool]):
    nlp = pipeline()
    (eg,) = make_batch(nlp, [10], 3)
    eg.reference.set_ents([Span(eg.reference, 2, 4, "New")])
    with batched_ner(nlp):
        nlp.update([eg], sgd=False)
        nlp.update([eg], sgd=False)
    assert "New" in nlp.get_pipe("ner").labels
    assert left_to_spacy == [True, False]


def test_a_span_that_is_accepted_and_rejected_is_spacy_s_error():
    nlp = pipeline()
    (eg,) = make_batch(nlp, [10], 3)
    eg.reference.set_ents([Span(eg.reference, 2, 4, "Amount")])
    eg.reference.spans["incorrect_spans"] = [Span(eg.reference, 2, 4, "Amount")]
    with batched_ner(nlp), pytest.raises(ValueError, match="E868"):
        nlp.update([eg], sgd=False)


@pytest.mark.parametrize("lengths", [[], [10]])
def test_a_text_without_tokens_is_no_matter(lengths: list[int], left_to_spacy: list[bool]):
    nlp = pipeline()
    texts = make_batch(nlp, lengths, 3)
    with batched_ner(nlp):
        loss = nlp.update([without_tokens(make_batch(nlp, [3], 0)[0]), *texts], sgd=False)["ner"]
    assert (loss > 0) == bool(lengths)
    assert left_to_spacy == [False]


def test_the_ner_is_replaced_for_the_block_alone_and_saved_as_spacy_s():
    nlp = pipeline()
    ner, saved = nlp.get_pipe("ner"), nlp.to_bytes()
    with batched_ner(nlp):
        assert type(nlp.get_pipe("ner")) is BatchedNer
        assert nlp.to_bytes() == saved
    assert nlp.get_pipe("ner") is ner


def test_other_models_are_left_alone():
    nlp = pipeline(maxout_pieces=1)
    nlp.add_pipe("beam_ner")
    nlp.add_pipe("sentencizer")
    own = nlp.components
    with batched_ner(nlp):
        assert nlp.components == own
