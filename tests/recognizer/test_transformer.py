"""A transformer that the recognizer runs, against spacy-transformers, which aligns text by text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from labelwise.recognizer.precision import META, PrecisionShim, predict_as_trained
from labelwise.recognizer.transformer import JoinedTransformer, joined
from labelwise.recognizer.wordpieces import PaddedPieces, Wordpieces, wordpieces_of

TEXTS = ["Ann met Bob.", "", "  \n ", "a", "word " * 200, "\u200b", "Zoë paid 30 EUR 😀.", "a" * 300, "e\u0301 " * 3]


def make_pipeline(bert: Path, *, listeners: int = 1, grad_factor: float = 1.0, **options: Any) -> Language:
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-transformers.TransformerModel.v3", "name": str(bert)}
    model["transformer_config"] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model["tokenizer_config"] = {"model_max_length": 140, "use_fast": True}
    nlp.add_pipe("transformer", config={"model": model, **options})
    listener = {"@architectures": "spacy-transformers.TransformerListener.v1", "grad_factor": grad_factor}
    listener["pooling"] = {"@layers": "reduce_mean.v1"}
    for number in range(listeners):
        heads = {"@architectures": "labelwise.PerLabelHeads.v1", "tok2vec": listener}
        nlp.add_pipe("labelwise_per_label", name=f"ner{number or ''}", config={"model": heads}).add_label("A")
    nlp.initialize(lambda: examples(nlp, ["Ann met Bob."]))
    return nlp


def examples(nlp: Language, texts: list[str]) -> list[Example]:
    made = []
    for text in texts:
        gold = nlp.make_doc(text)
        gold.ents = [gold.char_span(0, 3, label="A")] if text.startswith("Ann ") else []
        made.append(Example(nlp.make_doc(text), gold))
    return made


def learnt(nlp: Language) -> dict[str, Any]:
    """The losses and gradients of a step."""
    losses: dict[str, float] = {}
    for _, component in nlp.pipeline:
        component.update(examples(nlp, TEXTS), losses=losses)
    tensors = nlp.get_pipe("transformer").model.transformer.named_parameters()
    found = {name: tensor.grad.numpy().copy() for name, tensor in tensors if tensor.grad is not None}
    for _, tensor in nlp.get_pipe("transformer").model.transformer.named_parameters():
        tensor.grad = None
    return losses | found


@pytest.mark.parametrize("grad_factor", [1.0, 0.5])
def test_losses_and_gradients_are_spacys(tiny_bert, grad_factor):
    nlp = make_pipeline(tiny_bert, grad_factor=grad_factor)
    own = learnt(nlp)
    with joined(nlp) as joint:
        assert isinstance(joint, JoinedTransformer)
        ours = learnt(nlp)
    again = learnt(nlp)
    assert ours.keys() == own.keys() == again.keys()
    for name, value in own.items():
        np.testing.assert_array_equal(again[name], value)  # the block has left nothing
        np.testing.assert_allclose(ours[name], value, rtol=1e-4, atol=1e-5 * np.abs(value).max(), err_msg=name)


@pytest.mark.parametrize("most", [1, 4096])
def test_probabilities_are_spacys_however_texts_are_divided(tiny_bert, most):
    nlp = make_pipeline(tiny_bert, max_batch_items=most)
    ner: Any = nlp.get_pipe("ner")
    docs = [nlp.make_doc(text) for text in TEXTS]
    list(nlp.get_pipe("transformer").pipe(docs))
    own = ner.log_probabilities(docs)
    with joined(nlp):
        fresh = [nlp.make_doc(text) for text in TEXTS]
        np.testing.assert_allclose(ner.log_probabilities(fresh), own, atol=1e-5)
        assert [doc._.trf_data for doc in nlp.pipe(fresh)] == [None] * len(TEXTS)


def test_a_transformer_that_does_more_is_left_alone(tiny_bert):
    assert joined_to(make_pipeline(tiny_bert, listeners=2)) is None
    assert joined_to(spacy.blank("en")) is None
    annotating = make_pipeline(tiny_bert)
    annotating.get_pipe("transformer").set_extra_annotations = lambda docs, batch: None  # type: ignore[attr-defined]
    assert joined_to(annotating) is None
    left = make_pipeline(tiny_bert)
    left.get_pipe("transformer").model.tokenizer.padding_side = "left"  # type: ignore[attr-defined]
    assert joined_to(left) is None


def joined_to(nlp: Language) -> JoinedTransformer | None:
    with joined(nlp) as joint:
        return joint


def test_wordpieces_of_a_batch_are_those_that_spacy_transformers_makes(tiny_bert):
    nlp = make_pipeline(tiny_bert)
    wordpieces = wordpieces_of(nlp)
    assert wordpieces
    docs = [nlp.make_doc(text) for text in TEXTS if text]
    batch = nlp.get_pipe("transformer").predict(docs)
    padded: PaddedPieces = wordpieces.pad([wordpieces.of(doc) for doc in docs])
    np.testing.assert_array_equal(padded.ids, batch.wordpieces.input_ids)
    np.testing.assert_array_equal(padded.mask, batch.wordpieces.attention_mask)
    np.testing.assert_array_equal(padded.types, batch.wordpieces.token_type_ids)
    np.testing.assert_array_equal(padded.places, batch.align.dataXd)
    np.testing.assert_array_equal(padded.lengths, batch.align.lengths)


def test_wordpieces_are_found_once_as_long_as_there_is_room(tiny_bert, monkeypatch):
    nlp = make_pipeline(tiny_bert)
    asked: list[Doc] = []
    own = Wordpieces._find
    monkeypatch.setattr(Wordpieces, "_find", lambda self, doc: asked.append(doc) or own(self, doc))
    wordpieces = wordpieces_of(nlp)
    assert wordpieces
    for text in ("one", "two", "one", "two"):
        wordpieces.of(nlp.make_doc(text))
    assert [doc.text for doc in asked] == ["one", "two"]
    wordpieces.room = 0
    for _ in range(2):
        wordpieces.of(nlp.make_doc("three"))
    assert [doc.text for doc in asked] == ["one", "two", "three", "three"]


@pytest.mark.parametrize(
    ("precision", "device", "swapped"), [("bf16", "cuda", True), ("bf16", "cpu", False), ("fp32", "cuda", False)]
)
def test_what_was_trained_in_bf16_predicts_in_it_where_the_gpu_can(tiny_bert, monkeypatch, precision, device, swapped):
    torch = pytest.importorskip("torch")
    nlp = make_pipeline(tiny_bert)
    nlp.meta[META] = precision
    monkeypatch.setattr("labelwise.recognizer.precision.get_torch_default_device", lambda: torch.device(device))
    monkeypatch.setattr("labelwise.recognizer.precision.GradScaler.to_", lambda self, device: None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    predict_as_trained(nlp)
    [shim] = nlp.get_pipe("transformer").model.layers[0].shims  # type: ignore[attr-defined]
    assert isinstance(shim, PrecisionShim) == swapped
    assert not swapped or shim.dtype == torch.bfloat16
