import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from thinc.api import fix_random_seed

from spacy_per_label import make_word_embed

TEXTS = ["Add NaCl, then add KCl.", "NaCl dissolves; chloride precipitates"]


@pytest.fixture
def nlp():
    return spacy.blank("en")


@pytest.fixture
def embed(nlp):
    fix_random_seed(0)
    model = make_word_embed(width=8, rows=50)
    model.initialize(X=[nlp.make_doc(TEXTS[0])])
    return model


def test_a_word_has_one_vector_wherever_it_is(nlp, embed):
    docs = [nlp.make_doc(text) for text in TEXTS]
    both, alone = embed.predict(docs), embed.predict(docs[1:])
    assert [len(vectors) for vectors in both] == [len(doc) for doc in docs]
    assert np.allclose(both[0][1], both[1][0])  # NaCl
    assert not np.allclose(both[0][0], both[0][4])  # Add, add
    assert np.allclose(both[1], alone[0])


@pytest.mark.parametrize(
    ("feature", "counts"),
    [
        *[(one, True) for one in ("wnacl", "hXxXx", "fNaCl", "pn", "pnacl", "sl", "snacl", "g<na", "gnac", "gcl>")],
        *[(one, False) for one in ("wchloride", "hXxxx", "fnacl", "pa", "sna", "gadd")],
    ],
)
def test_a_word_is_made_of_its_word_shape_affixes_and_trigrams(feature, counts, nlp):
    fix_random_seed(0)
    model = make_word_embed(width=8, rows=20_000)
    docs = [nlp.make_doc("NaCl")]
    model.initialize(X=docs)
    before, key = model.predict(docs)[0].copy(), get_string_id(feature)
    model.get_param("E")[[key % 2**32 % 20_000, (key >> 32) % 20_000]] += 1
    assert (model.predict(docs)[0] != before).any() == counts


def test_the_gradient_is_that_of_finite_differences(nlp, embed):
    docs = [nlp.make_doc(text) for text in TEXTS]
    rng = np.random.default_rng(0)
    vectors, backprop = embed.begin_update(docs)
    weights = [rng.normal(size=vector.shape).astype("f") for vector in vectors]
    backprop(weights)
    gradient, table = embed.get_grad("E"), embed.get_param("E").copy()

    def total(moved: np.ndarray) -> float:
        embed.set_param("E", table + moved)
        return sum(float((one * weight).sum()) for one, weight in zip(embed.predict(docs), weights, strict=True))

    for _ in range(5):
        direction = rng.normal(size=table.shape).astype("f")
        slope = (total(1e-4 * direction) - total(-1e-4 * direction)) / 2e-4
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=0.02, abs=0.2)
