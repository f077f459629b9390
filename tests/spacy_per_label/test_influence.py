from typing import Any

import numpy as np
import pytest
import spacy
from thinc.api import fix_random_seed

from spacy_per_label.influence import span_gradients, unit

TAGS_OF = {1: [4], 2: [1, 3], 3: [1, 2, 3]}  # by number of tokens: U, B L, B I L
STEP = 1e-2


@pytest.mark.parametrize(("start", "end", "label"), [(0, 1, 0), (1, 3, 1), (4, 7, 1)])
def test_a_gradient_is_how_the_loss_changes_with_the_weights_of_the_head(start, end, label):
    fix_random_seed(1)
    nlp = spacy.blank("en")
    ner: Any = nlp.add_pipe("per_label")
    for name in "AB":
        ner.add_label(name)
    nlp.initialize()
    docs = [nlp.make_doc("one two three"), nlp.make_doc("four five six seven eight")]
    heads = ner.model.get_ref("output")
    weights = heads.get_param("W").copy()  # (10, width)
    weights += np.random.default_rng(0).normal(scale=0.1, size=weights.shape)

    def loss(change: np.ndarray) -> float:
        heads.set_param("W", (weights + change).astype("float32"))
        log_p = ner.log_probabilities(docs).astype("float64")
        return -sum(log_p[start + at, label, tag] for at, tag in enumerate(TAGS_OF[end - start]))

    heads.set_param("W", weights)
    gradient = span_gradients(ner, docs, [(start, end, label)])[0].reshape(5, -1)
    for row, column in np.random.default_rng(2).integers([0, 0], [5, weights.shape[1]], (20, 2)).tolist():
        change = np.zeros_like(weights)
        change[5 * label + row, column] = STEP
        assert (loss(change) - loss(-change)) / (2 * STEP) == pytest.approx(gradient[row, column], abs=2e-3, rel=1e-2)
    other = np.zeros_like(weights)
    other[5 * (1 - label)] = 1
    assert loss(other) == pytest.approx(loss(0 * other)), "the head of another label has no part in it"


def test_unit_has_the_norm_1_and_leaves_zeros():
    np.testing.assert_allclose(unit(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0, 0]])
