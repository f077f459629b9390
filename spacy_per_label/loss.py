"""The loss: cross-entropy of the known tags of each label, and -log(1 - p) of each rejected span."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from thinc.api import NumpyOps

from spacy_per_label.targets import TAGS, UNKNOWN, tags_of

TINY = 1e-6
NUMPY = NumpyOps()

Arrays = Any  # numpy's or cupy's


def log_softmax(logits: Arrays, xp: Any = np) -> Arrays:
    """Compute the logarithm of the softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))


def loss_and_gradient(
    logits: Arrays, tags: np.ndarray, rejected: Sequence[tuple[int, int, int]], ops: Any = NUMPY
) -> tuple[float, Arrays]:
    """Compute the loss of each label's tags, and its gradient; a GPU is waited for once, however many there are.

    logits (Arrays): of the shape (tokens, labels, 5).
    tags (np.ndarray): of the shape (tokens, labels); UNKNOWN has no loss and no gradient.
    rejected (Sequence): spans that aren't entities of a label, (start, end, label's number): each costs -log(1 - p).
    ops (Any): thinc's, of the logits' device.
    """
    log_p = log_softmax(logits, ops.xp)
    known = tags != UNKNOWN
    wanted = np.flatnonzero(known) * TAGS + tags[known]
    span, token, label, tag = rejected_tags(rejected)
    rows = (token * tags.shape[1] + label)[:, None] * TAGS + np.arange(TAGS)
    cells = ops.asarray(np.concatenate([wanted, rows.ravel()]))
    found = ops.to_numpy(log_p.reshape(-1)[cells])
    loss = -found[: len(wanted)].sum(dtype="float64")
    # In place, since an array of this shape may be the largest of all of a training's.
    gradient = ops.xp.exp(log_p, out=log_p)
    gradient *= ops.asarray(known[:, :, None])
    added = np.full(len(found), -1, found.dtype)
    if rejected:
        log_rows = found[len(wanted) :].reshape(-1, TAGS)
        sums = np.zeros(len(rejected), found.dtype)
        np.add.at(sums, span, log_rows[np.arange(len(tag)), tag])
        probabilities = np.minimum(np.exp(sums).astype("float64"), 1 - TINY)
        loss -= np.log1p(-probabilities).sum()
        weights = (probabilities / (1 - probabilities)).astype(found.dtype)[span, None]
        added[len(wanted) :] = (weights * ((np.arange(TAGS) == tag[:, None]) - np.exp(log_rows))).ravel()
    ops.scatter_add(gradient.reshape(-1), cells, ops.asarray(added))
    return float(loss), gradient.astype(logits.dtype, copy=False)


def rejected_tags(rejected: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """List the tags of rejected spans: four rows, the span's number, token, label and tag."""
    columns = [
        (number, token, label, tag)
        for number, (start, end, label) in enumerate(rejected)
        for token, tag in enumerate(tags_of(end - start), start)
    ]
    return np.array(columns, int).reshape(-1, 4).T
