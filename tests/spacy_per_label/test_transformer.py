"""The layer that a transformer is, against spacy-transformers' own, which aligns text by text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model

from spacy_per_label.transformer import make_transformer
from tests.spacy_per_label.bert import NO_DROPOUT

pytest.importorskip("spacy_transformers")
NLP = spacy.blank("en")
TEXTS = ["Ann met Bob.", "", "  \n ", "a", "word " * 200, "\u200b", "Zoë paid 30 EUR 😀.", "a" * 300, "e\u0301 " * 3]
TOKENIZER = {"model_max_length": 140, "use_fast": True}


def make_docs() -> list[Doc]:
    return [NLP.make_doc(text) for text in TEXTS]


def ours(bert: Path, **options: Any) -> Model:
    model = make_transformer(str(bert), tokenizer_config=TOKENIZER, transformer_config=NO_DROPOUT, **options)
    model.initialize(X=[NLP.make_doc("Ann met Bob.")])
    return model


def stock(bert: Path) -> Model:
    make: Any = registry.architectures.get("spacy-transformers.Tok2VecTransformer.v3")
    get_spans = registry.span_getters.get("spacy-transformers.strided_spans.v1")(window=128, stride=96)
    pooling = registry.layers.get("reduce_mean.v1")()
    model = make(str(bert), get_spans, TOKENIZER, pooling, transformer_config=dict(NO_DROPOUT))
    model.initialize(X=[NLP.make_doc("Ann met Bob.")])
    return model


def gradients(model: Model) -> dict[str, np.ndarray]:
    """Those of a step, of each parameter of the transformer."""
    vectors, backprop = model.begin_update(make_docs())
    rng = np.random.default_rng(0)
    backprop([rng.normal(size=one.shape).astype("float32") for one in vectors])
    [shim] = [shim for node in model.walk() for shim in node.shims]
    tensors = shim._model.named_parameters()
    return {name: tensor.grad.numpy() for name, tensor in tensors if tensor.grad is not None}


def test_vectors_and_gradients_are_spacys(tiny_bert):
    own, theirs = ours(tiny_bert), stock(tiny_bert)
    for doc, one, other in zip(make_docs(), own.predict(make_docs()), theirs.predict(make_docs()), strict=True):
        assert len(one) == len(other)
        np.testing.assert_allclose(one.ravel(), other.ravel(), atol=1e-5)
        np.testing.assert_allclose(one, own.predict([doc])[0], atol=1e-5)  # white space alone, too
    one, other = gradients(own), gradients(theirs)
    assert one.keys() == other.keys()
    for name, value in other.items():
        np.testing.assert_allclose(one[name], value, rtol=1e-4, atol=1e-5 * np.abs(value).max() + 1e-6, err_msg=name)
