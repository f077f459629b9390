import json
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Model, fix_random_seed

from spacy_per_label import set_known
from spacy_per_label.hub_files import NoModelError
from spacy_per_label.transformer import make_small_transformer, make_transformer, window_finder
from spacy_per_label.transformer_v1 import make_transformer_v1
from tests.spacy_per_label.bert import NO_DROPOUT

pytest.importorskip("spacy_transformers")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
NLP = spacy.blank("en")
TEXTS = ["Ann met Bob.", "", "  \n ", "a", "word " * 200, "\u200b", "Zoë paid 30 EUR 😀.", "a" * 300, "e\u0301 " * 3]
SAVED = Path(__file__).parent / "saved"


def make_docs() -> list[Doc]:
    return [NLP.make_doc(text) for text in TEXTS]


def ours(bert: Path | str, **options: Any) -> Model:
    model = make_transformer(str(bert), **{"transformer_config": NO_DROPOUT, "rate": 1.0, "decay": 1.0} | options)
    model.initialize()
    return model


def numpys(bert: Path | str, **options: Any) -> Model:
    model = make_small_transformer(str(bert), **options)
    model.initialize()
    return model


def transformer_block(make: Any) -> dict[str, Any]:
    if make is numpys:
        return {"@architectures": "spacy-per-label.SmallTransformer.v1"}
    return {"@architectures": "spacy-per-label.Transformer.v2", "transformer_config": NO_DROPOUT}


BACKENDS = pytest.mark.parametrize("make", [numpys, ours])


def gradients(model: Model) -> list[np.ndarray]:
    """Return the gradients of the highest layer's biases, which have one shape in all backends."""
    vectors, backprop = model.begin_update(make_docs())
    rng = np.random.default_rng(0)
    backprop([rng.normal(size=vector.shape).astype("float32") for vector in vectors])
    if model.param_names:
        return [model.get_grad(f"1.{name}") for name in ("up_b", "down_b", "norm2_b")]
    tensors = dict(model.shims[0]._model.named_parameters())  # type: ignore[attr-defined]
    names = ("intermediate.dense", "output.dense", "output.LayerNorm")
    return [tensors[f"encoder.layer.1.{name}.bias"].grad.numpy() for name in names]


def test_both_backends_have_the_same_vectors_and_gradients(tiny_bert):
    """Except for gelu, which numpy approximates."""
    one, other = numpys(tiny_bert), ours(tiny_bert)
    assert len(window_finder(one)(make_docs()[4])) > 1  # type: ignore[misc]
    for mine, theirs in zip(one.predict(make_docs()), other.predict(make_docs()), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, atol=0.005)
    for mine, theirs in zip(gradients(one), gradients(other), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=0.005 * np.abs(theirs).max())


@BACKENDS
def test_a_text_has_the_vectors_that_it_has_alone_and_white_space_has_none(make, tiny_bert):
    model = make(tiny_bert)
    together, (learned, _) = model.predict(make_docs()), model.begin_update(make_docs())
    for doc, one, other in zip(make_docs(), together, learned, strict=True):
        assert one.shape == (len(doc), 32)
        np.testing.assert_allclose(one, model.predict([doc])[0], atol=1e-5)
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert not together[2].any()


@BACKENDS
def test_it_is_loaded_without_its_folder_and_saved_again_to_the_same_bytes(make, tiny_bert):
    model = make(tiny_bert)
    saved = model.to_bytes()
    make_again = make_small_transformer if make is numpys else make_transformer
    loaded = make_again("gone").from_bytes(saved)
    assert np.array_equal(np.concatenate(loaded.predict(make_docs())), np.concatenate(model.predict(make_docs())))
    again = loaded.to_bytes()  # spacy-transformers reads an eps of 1e-12 as 0
    assert make_again("gone").from_bytes(again).to_bytes() == again
    assert str(tiny_bert).encode() not in saved


@BACKENDS
@pytest.mark.parametrize("half", [False, True])
def test_layers_that_are_not_kept_are_not_saved(make, tiny_bert, half):
    whole, cut = (make(tiny_bert, layers=layers) for layers in (0, 1))
    if half:
        whole.shims[0].halve()
        cut.shims[0].halve()
    reference = transformers.AutoModel.from_pretrained(tiny_bert)
    numbers = sum(parameter.numel() for name, parameter in reference.named_parameters() if "layer.1." in name)
    saved = cut.to_bytes()
    assert len(saved) <= len(whole.to_bytes()) - (2 if half else 4) * numbers
    make_again = make_small_transformer if make is numpys else make_transformer
    loaded = make_again("gone", layers=1).from_bytes(saved)
    assert np.array_equal(np.concatenate(loaded.predict(make_docs())), np.concatenate(cut.predict(make_docs())))


@BACKENDS
def test_layers_train_and_load_like_a_transformer_cut_by_hand(make, tiny_bert, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(tiny_bert, folder)
    reference = transformers.AutoModel.from_pretrained(tiny_bert)
    del reference.encoder.layer[1:]
    reference.config.num_hidden_layers = 1
    reference.save_pretrained(folder)
    predictions = []
    for own in ({"name": str(tiny_bert), "layers": 1}, {"name": str(folder)}):
        nlp = spacy.blank("en")
        heads = {"@architectures": "spacy-per-label.Heads.v2", "tok2vec": transformer_block(make) | own}
        ner: Any = nlp.add_pipe("per_label", config={"model": heads})
        doc = nlp.make_doc("Ann met Bob in Rome .")
        set_known(doc, gold=[Span(doc, 0, 1, "A"), Span(doc, 4, 5, "B")], coverage={})
        fix_random_seed(0)
        optimizer = nlp.initialize(lambda: [Example(nlp.make_doc(doc.text), doc)])  # noqa: B023
        for _ in range(30):
            ner.update([Example(nlp.make_doc(doc.text), doc)], sgd=optimizer)
        nlp.to_disk(tmp_path / "saved")
        for pipeline in (nlp, spacy.load(tmp_path / "saved")):
            marked = pipeline(doc.text)
            spans = marked.spans["labels"]
            predictions.append([(span.start, span.end, span.label_) for span in spans])
            predictions[-1] += spans.attrs["scores"].tolist()
    assert predictions[0][:2] == [(0, 1, "A"), (4, 5, "B")]
    for other in predictions[1:]:
        assert other == predictions[0]


@BACKENDS
@pytest.mark.parametrize("layers", [-1, 3])
def test_layers_that_a_transformer_does_not_have_are_refused(make, tiny_bert, layers):
    with pytest.raises(NoModelError, match=rf"^layers = {layers}: .* has 2 layers; write 1 to 2, or 0 for all$"):
        make(tiny_bert, layers=layers)


@BACKENDS
def test_it_is_found_in_a_package(make, tiny_bert, tmp_path, monkeypatch):
    shutil.copytree(tiny_bert, tmp_path / "tiny_bert_package/model")
    (tmp_path / "tiny_bert_package/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    one, other = (np.concatenate(make(name).predict(make_docs())) for name in (tiny_bert, "tiny-bert-package"))
    assert np.array_equal(one, other)


@BACKENDS
@pytest.mark.parametrize(("window", "context"), [(32, 15), (5000, 16)])
def test_a_window_without_room_or_beyond_the_positions_is_refused(make, tiny_bert, window, context):
    most = 512 - 24  # wordpieces of the longest token, which is never cut
    with pytest.raises(
        NoModelError, match=f"window = {window}: with context = {context}, .* needs {2 * context + 3} to {most}"
    ):
        make(tiny_bert, window=window, context=context)


def test_a_transformer_without_a_fast_tokenizer_is_refused(tiny_bert, tmp_path):
    for file in tiny_bert.glob("*[!r].*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "CanineTokenizer"}')
    with pytest.raises(NoModelError, match=r"has no fast tokenizer \(tokenizer\.json\); take another transformer"):
        ours(tmp_path)


@BACKENDS
def test_prepared_texts_teach_what_their_examples_do_to_the_bit(make, tiny_bert):
    transformer = transformer_block(make) | {"name": str(tiny_bert)}
    nlp = spacy.blank("en")
    config = {"model": {"@architectures": "spacy-per-label.Heads.v2", "tok2vec": transformer}}
    ner: Any = nlp.add_pipe("per_label", config=config)
    examples = []
    for text in TEXTS:
        reference = nlp.make_doc(text)
        spans = [Span(reference, 0, 1, "A")] if len(reference) > 3 else []
        set_known(reference, gold=spans, rejected=spans[:1], coverage={"B": "partial"})
        examples.append(Example(nlp.make_doc(text), reference))
    ner.initialize(lambda: examples, nlp=nlp, labels=["A", "B"])
    learned = []
    for batch in (examples, pickle.loads(pickle.dumps([*map(pickle.loads(pickle.dumps(ner.preparer())), examples)]))):
        fix_random_seed(0)
        loss = ner.update(batch, drop=0.2)["per_label"]
        [shim] = [shim for node in ner.model.walk() for shim in node.shims]
        tensors = () if make is numpys else shim._model.parameters()
        of_bert = [tensor.grad.numpy().copy() for tensor in tensors if tensor.grad is not None]
        own = [node.get_grad(name).copy() for node in ner.model.walk() for name in node.grad_names]
        learned.append([np.array(loss), *own, *of_bert])
        for node in ner.model.walk():
            for name in node.grad_names:
                node.get_grad(name)[...] = 0
        if make is ours:
            shim._model.zero_grad()
    assert learned[0][0] > 0
    assert all(np.array_equal(one, other) for one, other in zip(*learned, strict=True))
    assert [len(text) for text in batch] == [len(eg.reference) for eg in examples]
    assert spacy.blank("en").add_pipe("per_label").preparer() is None


def test_tables_are_copied_before_they_are_computed_and_weights_are_cast_once(tiny_bert, monkeypatch):
    """A copy to a GPU would wait for the table before it; the CPU stands for one."""
    from torch.utils._python_dispatch import TorchDispatchMode

    model = ours(tiny_bert, mixed_precision=True)
    shim: Any = model.shims[0]
    weights = {parameter.data_ptr() for parameter in shim._model.parameters()}
    order: list[str] = []
    copied, compute = type(shim)._copied, type(shim).begin_update
    monkeypatch.setattr(type(shim), "_copied", lambda *args: (order.append("copy"), copied(*args))[1])
    monkeypatch.setattr(type(shim), "begin_update", lambda *args: (order.append("compute"), compute(*args))[1])
    monkeypatch.setattr("spacy_per_label.shim.HALF", ("cpu",))
    cast: Counter[int] = Counter()

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function is torch.ops.aten._to_copy.default and args[0].data_ptr() in weights:
                cast[args[0].data_ptr()] += 1
            return function(*args, **(kwargs or {}))

    with Count():
        model.begin_update([NLP.make_doc("abcde " * words) for words in (1, 2, 24, 3, 20, 1, 1, 25, 2)])
    tables = order.count("copy")
    assert tables > 1
    assert order == ["copy"] * tables + ["compute"] * tables
    assert set(cast.values()) == {1}


@pytest.mark.parametrize("name", ["transformer_v1", "small_transformer_v1"])
def test_a_pipeline_that_an_earlier_version_saved_predicts_the_same_spans(name, tmp_path):
    """Saved and run by the last commit before version 2 of the layer."""
    with ZipFile(SAVED / f"{name}.zip") as file:
        file.extractall(tmp_path)
    expected, nlp = json.loads((tmp_path / "expected.json").read_text(encoding="utf8")), spacy.load(tmp_path)
    alone = [nlp(text) for text in expected["texts"]]
    for doc, other, spans in zip(nlp.pipe(expected["texts"]), alone, expected["spans"], strict=True):
        groups, again = (predicted.spans["labels"] for predicted in (doc, other))
        places = [(span.start, span.end, span.label_) for span in groups]
        assert places == [(start, end, label) for start, end, label, _ in spans]
        assert places == [(span.start, span.end, span.label_) for span in again]
        np.testing.assert_allclose(groups.attrs["scores"], [probability for *_, probability in spans], atol=1e-4)
    nlp.to_disk(tmp_path / "again")
    size, before = ((folder / "ner/model").stat().st_size for folder in (tmp_path / "again", tmp_path))
    assert size == pytest.approx(before, rel=0.05)  # in half precision again
    assert [ent.text for ent in spacy.load(tmp_path / "again")(expected["texts"][0]).ents]


def test_version_1_of_a_transformer_is_not_trained(tiny_bert):
    with pytest.raises(ValueError, match=r"Transformer\.v1 only predicts; train with spacy-per-label\.Transformer\.v2"):
        make_transformer_v1(str(tiny_bert)).initialize()
    with pytest.raises(ValueError, match="only predicts"):
        make_transformer_v1(str(tiny_bert)).begin_update([NLP.make_doc("a")])
