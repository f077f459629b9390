"""Gradients of single spans, which show which annotation speaks for a predicted span.

A small step of training on a span lowers the loss of another span in proportion to the inner product of their gradients
with respect to the weights of the heads, the last layer. A token t contributes the outer product of g_t, the gradient
of its logits, and h_t, the vector that the heads read. The inner product of two spans is the sum of (g_t · g_i)(h_t ·
h_i) over their tokens t and i, and 0 for two labels, as each has its own head.

The family: representer points (Yeh, Kim, Yen and Ravikumar, "Representer Point Selection for Explaining Deep Neural
Networks", NeurIPS 2018) and TracIn (Pruthi, Liu, Kale and Sundararajan, "Estimating Training Data Influence by Tracing
Gradient Descent", NeurIPS 2020). `unit` divides by the norm; otherwise the few spans with the highest loss would speak
most for every prediction (Barshan, Brunet and Dziugaite, "RelatIF: Identifying Explanatory Training Samples via
Relative Influence", AISTATS 2020).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.tokens import Doc

from spacy_per_label.loss import EPSILON, log_softmax
from spacy_per_label.targets import TAGS, tags_of

if TYPE_CHECKING:
    from spacy_per_label.component import PerLabelRecognizer


def head_inputs(ner: "PerLabelRecognizer", docs: Sequence[Doc]) -> np.ndarray:
    """Compute the vectors that the heads read, shape (tokens of all docs, width)."""
    tok2vec, around, by_token = ner.model.layers
    hidden: Any = by_token.layers[0].layers[0]  # by_token is with_array(chain(hidden, heads))
    ops: Any = ner.model.ops
    return ops.to_numpy(hidden.predict(ops.xp.concatenate(around.predict(tok2vec.predict(list(docs))))))


def span_gradients(ner: "PerLabelRecognizer", docs: Sequence[Doc], spans: Iterable[tuple[int, int, int]]) -> np.ndarray:
    """Compute the gradient of each span's loss with respect to the weights of its label's head.

    The loss is the cross-entropy of the span's tags.

    spans (Iterable): start, end and label's number; tokens are counted through the docs.
    RETURNS (np.ndarray): shape (spans, 5 width).
    """
    heads: Any = ner.model.get_ref("output")
    ops: Any = ner.model.ops
    vectors = head_inputs(ner, docs)  # (tokens, width)
    logits = ops.to_numpy(heads.predict(ops.asarray(vectors)))
    p = np.exp(log_softmax(logits.reshape(len(vectors), -1, TAGS)))  # (tokens, labels, 5)
    gradients = []
    for start, end, label in spans:
        by_logit = p[start:end, label].copy()  # (span's tokens, 5): softmax - 1 at the tag, softmax at the others
        by_logit[np.arange(end - start), tags_of(end - start)] -= 1
        gradients.append((by_logit.T @ vectors[start:end]).ravel())
    return np.array(gradients, "float32").reshape(-1, TAGS * vectors.shape[1])


def unit(gradients: np.ndarray) -> np.ndarray:
    """Divide each row by its norm; a row of zeros stays."""
    return gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), EPSILON)
