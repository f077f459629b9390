import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import Adam, Model, fix_random_seed, set_dropout_rate

from spacy_per_label.bert_weights import read_encoder
from spacy_per_label.hub_files import NoModelError, SettingError
from spacy_per_label.layer_rates import layer_rates
from spacy_per_label.transformer import make_small_transformer, make_transformer

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
NLP = spacy.blank("en")
WORDS = ["Ann", "met", "Bob", "in", "Mülheim", ",", "paid", "30", "EUR", "😀", "and", "left", "."]
FAMILIES = {
    "bert": (transformers.BertConfig, transformers.BertModel, {}),
    "roberta": (transformers.RobertaConfig, transformers.RobertaModel, {"type_vocab_size": 1}),
    "xlm-roberta": (transformers.XLMRobertaConfig, transformers.XLMRobertaModel, {"type_vocab_size": 1}),
    "distilbert": (transformers.DistilBertConfig, transformers.DistilBertModel, {}),
}
TANH = "gelu_pytorch_tanh"  # our approximation of gelu


def make_tokenizer(kind: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    if kind == "roberta":
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        tokenizer.train_from_iterator(
            WORDS * 5, trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
        )
    elif kind == "xlm-roberta":
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>")
        tokenizer.train_from_iterator(WORDS * 5, trainer)
    else:
        special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.train_from_iterator(WORDS * 5, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    begin, _, end, *_ = special
    pairs = [(token, tokenizer.token_to_id(token)) for token in (begin, end)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{begin} $A {end}", special_tokens=pairs)
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer


def save_transformer(folder: Path, kind: str, **args: Any) -> Path:
    config_of, model_of, options = FAMILIES[kind]
    tokenizer = make_tokenizer(kind)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    if kind == "distilbert":
        sizes = {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}
    torch.manual_seed(1)
    config = config_of(vocab_size=tokenizer.get_vocab_size(), pad_token_id=1, **sizes, **options, **args)
    model = model_of(config)
    for parameter in model.parameters():  # as initialized, biases are zeros, and scales ones
        parameter.data += 0.1 * torch.randn(parameter.shape)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return {kind: save_transformer(tmp_path_factory.mktemp(kind), kind) for kind in FAMILIES}


def make(folder: Path | str, **options: Any) -> Model:
    model = make_small_transformer(str(folder), **options)
    model.initialize()
    return model


def torch_vectors(folder: Path, docs: list[Doc], activation: str = TANH, layers: int = -1) -> tuple[list[Any], Any]:
    """Compute means of wordpieces' vectors by PyTorch, text by text.

    layers (int): number of lowest layers; -1 for all.
    """
    from tokenizers import Tokenizer

    reference = transformers.AutoModel.from_pretrained(folder).eval()
    for module in reference.modules():
        for name in ("intermediate_act_fn", "activation"):
            if hasattr(module, name):
                setattr(module, name, transformers.activations.ACT2FN[activation])
    written = json.loads((folder / "tokenizer.json").read_text(encoding="utf8")) | {"truncation": None, "padding": None}
    if written["pre_tokenizer"]["type"] == "ByteLevel":
        written["pre_tokenizer"]["add_prefix_space"] = True
    tokenizer = Tokenizer.from_str(json.dumps(written))
    means = []
    for doc in docs:
        encoded = tokenizer.encode([token.text for token in doc], is_pretokenized=True)
        hidden = reference(input_ids=torch.tensor([encoded.ids]), output_hidden_states=True).hidden_states[layers][0]
        owners = torch.tensor([-1 if word is None else word for word in encoded.word_ids])
        rows = [hidden[owners == number] for number in range(len(doc))]
        means.append(torch.stack([row.mean(0) if len(row) else torch.zeros(hidden.shape[1]) for row in rows]))
    return means, reference


@pytest.mark.parametrize("kind", FAMILIES)
def test_vectors_and_gradients_are_pytorchs(folders, kind):
    model, docs = make(folders[kind]), [Doc(NLP.vocab, WORDS[:count]) for count in (13, 1, 5)]
    expected, reference = torch_vectors(folders[kind], docs)
    vectors, backprop = model.begin_update(docs)
    gradients = [
        np.random.default_rng(n).normal(size=vector.shape).astype("float32") for n, vector in enumerate(vectors)
    ]
    torch.autograd.backward(expected, [torch.tensor(gradient) for gradient in gradients])
    backprop(gradients)
    for one, other in zip(vectors, expected, strict=True):
        np.testing.assert_allclose(one, other.detach(), atol=1e-5)
    theirs = {
        name: parameter.grad.numpy() for name, parameter in reference.named_parameters() if parameter.grad is not None
    }
    ours = {name: model.get_grad(name) for name in model.param_names if model.has_grad(name)}
    assert len(ours) == 2 * 12
    compared = {
        "1.down_W": ("layer.1.output.dense.weight", "layer.1.ffn.lin2.weight"),
        "0.norm1_g": ("layer.0.attention.output.LayerNorm.weight", "layer.0.sa_layer_norm.weight"),
        "0.up_b": ("layer.0.intermediate.dense.bias", "layer.0.ffn.lin1.bias"),
    }
    for name, ends in compared.items():
        [other] = [theirs[parameter] for parameter in theirs if parameter.endswith(ends)]
        np.testing.assert_allclose(ours[name], other.T, atol=1e-4)
    queries = ("layer.0.attention.self.query.weight", "layer.0.attention.q_lin.weight")
    [query] = [theirs[parameter] for parameter in theirs if parameter.endswith(queries)]
    np.testing.assert_allclose(ours["0.qkv_W"][:, :32], query.T, atol=1e-4)


@pytest.mark.parametrize(
    "kind", sorted(FAMILIES.keys() - {"xlm-roberta"})
)  # which spacy-transformers reads with sentencepiece
def test_the_backend_of_pytorch_has_the_same_vectors(folders, kind):
    """Except for gelu, which numpy approximates."""
    pytest.importorskip("spacy_transformers")
    docs, windows = [Doc(NLP.vocab, WORDS * 5), Doc(NLP.vocab)], {"window": 40, "context": 6}
    other = make_transformer(str(folders[kind]), **windows)
    other.initialize()
    for mine, theirs in zip(make(folders[kind], **windows).predict(docs), other.predict(docs), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=5e-3)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_loaded_transformer_predicts_in_int8_until_it_learns(folders, kind):
    pytest.importorskip("ctranslate2")
    docs = [Doc(NLP.vocab, WORDS[:count]) for count in (13, 1, 5)]
    model, whole = make_small_transformer(str(folders[kind]), int8=True), make(folders[kind])
    model.initialize()
    exact = np.concatenate(whole.predict(docs))
    assert np.array_equal(np.concatenate(model.predict(docs)), exact)
    model.from_bytes(model.to_bytes())
    rounded = np.concatenate(model.predict(docs))
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
    assert not np.array_equal(rounded, exact)
    assert ((exact * rounded).sum(axis=1) / norms).min() > 0.99
    model.finish_update(Adam(0.0))
    assert np.array_equal(np.concatenate(model.predict(docs)), exact)


@pytest.mark.parametrize(("backend", "activation"), [(make_small_transformer, TANH), (make_transformer, "gelu")])
@pytest.mark.parametrize("kind", sorted(FAMILIES.keys() - {"xlm-roberta"}))
def test_the_lowest_layers_have_the_vectors_that_the_whole_transformer_has_there(folders, kind, backend, activation):
    pytest.importorskip("spacy_transformers")
    model, docs = backend(str(folders[kind]), layers=1), [Doc(NLP.vocab, WORDS), Doc(NLP.vocab, WORDS[4:6])]
    model.initialize()
    expected, _ = torch_vectors(folders[kind], docs, activation, layers=1)
    for mine, theirs in zip(model.predict(docs), expected, strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), atol=1e-5)


@pytest.mark.parametrize("name", ["gelu_new", TANH])
def test_a_transformer_that_names_the_approximation_has_pytorchs_vectors(tmp_path, name):
    folder, doc = save_transformer(tmp_path, "bert", hidden_act=name), Doc(NLP.vocab, WORDS)
    [expected], _ = torch_vectors(folder, [doc], name)
    np.testing.assert_allclose(make(folder).predict([doc])[0], expected.detach(), atol=1e-5)


def test_layers_learn_at_their_own_rates_and_embeddings_not_at_all(folders):
    model = make(folders["bert"], rate=0.1, decay=0.5)
    before = {name: model.get_param(name).copy() for name in model.param_names}
    _, backprop = model.begin_update([Doc(NLP.vocab, WORDS)])
    backprop([np.ones((len(WORDS), 32), "float32")])
    model.finish_update(Adam(0.01, L2=0, grad_clip=0))  # Adam's first step is the rate, whatever the gradient
    moved = {name: np.abs(model.get_param(name) - before[name]).max() for name in before}
    assert moved["1.up_W"] == pytest.approx(0.001, rel=0.05)
    assert moved["0.up_W"] == pytest.approx(0.0005, rel=0.05)
    assert moved["word"] == moved["position"] == 0
    assert not any(model.get_grad(name).any() for name in model.param_names if model.has_grad(name))


def test_without_layers_all_learns_at_the_rate():
    assert layer_rates(["embeddings", "dense"], 0.1, 0.5) == {"embeddings": 0.1, "dense": 0.1}


def test_int8_names_what_it_needs(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"int8 = True: .*pip install"):
        make_small_transformer("any", int8=True)


def test_dropout_is_drawn_in_training_alone(folders):
    model, docs = make(folders["bert"]), [Doc(NLP.vocab, WORDS)]
    set_dropout_rate(model, 0.3)
    fix_random_seed(0)
    first, second, third = (model.begin_update(docs)[0][0] for _ in range(3))
    assert not np.allclose(first, second)
    assert not np.allclose(second, third)
    assert np.array_equal(model.predict(docs)[0], model.predict(docs)[0])
    fix_random_seed(0)
    assert np.array_equal(first, model.begin_update(docs)[0][0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "t5"}, "model_type 't5'"),
        ({"hidden_act": "relu"}, "activation 'relu'"),
        ({"position_embedding_type": "relative_key"}, "families bert"),
    ],
)
def test_another_family_is_named(folders, tmp_path, change, message):
    for file in folders["bert"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(NoModelError, match=message):
        read_encoder(str(tmp_path))


def test_weights_that_are_missing_are_named(folders, tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folders["bert"] / name).read_bytes())
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"other": np.zeros(2, "float32")}, tmp_path / "model.safetensors")
    with pytest.raises(NoModelError, match=r"no \*\.safetensors has 'embeddings\..*; take another transformer"):
        read_encoder(str(tmp_path))


def test_a_name_on_the_hub_is_found_in_the_hubs_cache(folders, tmp_path, monkeypatch):
    cached = tmp_path / "models--someone--tiny-v2.1"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs/main").write_text("a" * 40)
    (cached / "snapshots").mkdir()
    (cached / "snapshots" / ("a" * 40)).symlink_to(folders["distilbert"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    docs = [Doc(NLP.vocab, WORDS)]
    assert np.array_equal(make("someone/tiny-v2.1").predict(docs)[0], make(folders["distilbert"]).predict(docs)[0])


def test_a_name_that_nobody_has_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("nobody/has-this-v2.1", "nobody", "\0"):
        with pytest.raises(NoModelError, match="neither a package, nor a folder"):
            read_encoder(name)
    with pytest.raises(NoModelError, match=r"has config\.json, tokenizer\.json"):
        read_encoder(str(tmp_path))
