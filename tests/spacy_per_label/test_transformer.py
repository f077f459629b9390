"""The layer that a transformer is, against spacy-transformers' own, which aligns text by text."""

import pickle
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from thinc.api import Model, fix_random_seed

from spacy_per_label import set_known
from spacy_per_label.transformer import (
    PADDING,
    TABLES,
    Wordpieces,
    find_wordpieces,
    join_wordpieces,
    make_tables,
    make_transformer,
    split_rows,
)
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


def find(model: Model, docs: list[Doc]) -> Wordpieces:
    transformer: Any = model.layers[0]
    return find_wordpieces(transformer.tokenizer, transformer.attrs["get_spans"], docs)


def test_wordpieces_that_were_found_text_by_text_are_those_of_the_batch(tiny_bert):
    model = ours(tiny_bert)
    joined, whole = join_wordpieces([find(model, [doc]) for doc in make_docs()]), find(model, make_docs())
    for name in Wordpieces.__slots__:
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name), err_msg=name)
    assert len(whole) == sum(map(len, make_docs()))


def test_a_tokenizer_that_does_not_know_where_its_wordpieces_are_is_refused(tiny_bert):
    model = make_transformer(str(tiny_bert), tokenizer_config={"use_fast": False})
    model.initialize(X=make_docs()[:1])
    with pytest.raises(ValueError, match="has no fast tokenizer, which knows where its wordpieces are"):
        model.predict(make_docs())


def cells_of(lengths: list[int], cuts: tuple[int, ...]) -> int:
    """Count the cells of tables of rows that are sorted, and cut before some numbers."""
    places = [0, *cuts, len(lengths)]
    return sum((end - start) * lengths[end - 1] for start, end in pairwise(places))


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_split_into_the_tables_that_have_the_fewest_cells(seed):
    """Found by trying all cuts; there are as few tables as keep the padding small."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 200, 9) if seed % 3 else rng.integers(1, 4, 9) * 50
    found = split_rows(lengths)
    assert sorted(np.concatenate(found).tolist()) == list(range(9))
    assert all(rows.tolist() == sorted(rows.tolist()) for rows in found)
    cells = [len(rows) * int(lengths[rows].max()) for rows in found]
    row_lengths = sorted(lengths.tolist())
    best = [min(cells_of(row_lengths, cuts) for cuts in combinations(range(1, 9), more)) for more in range(TABLES)]
    enough = [number for number, fewest in enumerate(best, 1) if lengths.sum() >= (1 - PADDING) * fewest]
    assert len(found) == (enough[0] if enough else TABLES)
    assert sum(cells) == best[len(found) - 1]


@pytest.mark.parametrize("side", ["right", "left"])
def test_texts_of_many_lengths_are_hardly_padded_and_each_vector_stays_its_texts(side, tiny_bert):
    model = ours(tiny_bert)
    model.layers[0].tokenizer.padding_side = side
    docs = [NLP.make_doc("abcde " * words) for words in (1, 2, 24, 3, 20, 1, 1, 25, 2)]
    pieces = find(model, docs)
    batches, cells = make_tables(pieces, model.layers[0].tokenizer)
    ids = np.concatenate([batch.input_ids.ravel() for batch in batches])
    padding = 1 - sum(batch.attention_mask.sum() for batch in batches) / len(ids)
    assert len(batches) > 1
    assert padding < 0.22
    assert pieces.lengths.tolist() == [5] * sum(map(len, docs))
    assert set(model.layers[0].tokenizer.convert_ids_to_tokens(ids[cells[pieces.of_tokens]])) == {
        "a",
        "##b",
        "##c",
        "##d",
        "##e",
    }
    if side == "right":  # BERT numbers the padding, too
        for doc, vectors in zip(docs, model.predict(docs), strict=True):
            np.testing.assert_allclose(vectors, model.predict([doc])[0], atol=1e-5)


def test_prepared_texts_teach_what_their_examples_do_to_the_bit(tiny_bert):
    """Prepared ones may come from another process, and so are pickled."""
    transformer = {"@architectures": "spacy-per-label.Transformer.v1", "name": str(tiny_bert)}
    transformer |= {"tokenizer_config": TOKENIZER, "transformer_config": NO_DROPOUT}
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
    learnt = []
    for given in (examples, pickle.loads(pickle.dumps([*map(pickle.loads(pickle.dumps(ner.preparer())), examples)]))):
        fix_random_seed(0)
        loss = ner.update(given, drop=0.2)["per_label"]
        heads = ner.model.get_ref("output")
        [shim] = [shim for node in ner.model.walk() for shim in node.shims]
        of_bert = [one.grad.numpy().copy() for one in shim._model.parameters() if one.grad is not None]
        learnt.append([np.array(loss), heads.get_grad("W").copy(), *of_bert])
        for node in ner.model.walk():
            for name in node.grad_names:
                node.get_grad(name)[...] = 0
        shim._model.zero_grad()
    assert learnt[0][0] > 0
    assert all(np.array_equal(one, other) for one, other in zip(*learnt, strict=True))
    assert [len(text) for text in given] == [len(eg.reference) for eg in examples]
    assert spacy.blank("en").add_pipe("per_label").preparer() is None


def test_tables_are_copied_before_they_are_computed_and_weights_are_cast_once(tiny_bert, monkeypatch):
    """A copy to a GPU would wait for the table before it; as if the CPU were one."""
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    model = ours(tiny_bert, mixed_precision=True)
    wrapper = model.layers[0].layers[0]
    weights = {one.data_ptr() for one in wrapper.shims[0]._model.parameters()}
    order: list[str] = []
    convert, compute = wrapper.attrs["convert_inputs"], type(wrapper.shims[0]).begin_update
    wrapper.attrs["convert_inputs"] = lambda *given: (order.append("copy"), convert(*given))[1]
    monkeypatch.setattr(
        type(wrapper.shims[0]), "begin_update", lambda *given: (order.append("compute"), compute(*given))[1]
    )
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
