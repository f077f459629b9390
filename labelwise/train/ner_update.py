"""spaCy's ner, whose update computes all states of a batch at a time.

In an update, spaCy takes the states of a batch a token further at a time. After each token, it computes the gradients
of all parameters, and adds them to those before. Here, they are computed after the last token, of all states at once;
what each state is to learn comes from `ner_states`. The gradients are spaCy's, but for rounding
(spacy/pipeline/transition_parser.pyx and spacy/ml/parser_model.pyx, 3.8).
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.training import Example
from thinc.api import NumpyOps, Optimizer, set_dropout_rate

from labelwise.train.ner_states import (
    Actions,
    States,
    Tokens,
    Unusual,
    find_targets,
    find_valid,
    first_states,
    read_tokens,
)

DROPOUT = 0.1
"""Of a state's units: spaCy's, whatever `training.dropout` is."""

CPU = NumpyOps()
"""States are on the CPU, also where all else is on a GPU."""


class Step(NamedTuple):
    """A token of each state; arrays have a row for each.

    states (States): these.
    seen (np.ndarray): the tokens that the model looks at.
    which (np.ndarray): the piece of each of its maxout units that won.
    units (np.ndarray): the units, some of them dropped.
    scores (np.ndarray): those of the actions.
    """

    states: States
    seen: np.ndarray
    which: np.ndarray
    units: np.ndarray
    scores: np.ndarray


class BatchedNer(EntityRecognizer):
    """spaCy's ner with another update; it has the model of the one that it is made of."""

    @classmethod
    def of(cls, ner: EntityRecognizer) -> "BatchedNer":
        """Make one with the parts of another."""
        batched = cls(ner.vocab, ner.model, ner.name, ner.moves, scorer=ner.scorer)
        batched.cfg.update(ner.cfg)
        return batched

    def update(
        self,
        examples: Sequence[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Compute the gradients of a batch, and add its loss to `losses`; see spaCy's."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        try:
            losses[self.name] += self.learn(examples, drop)
        except Unusual:
            return super().update(examples, drop=drop, sgd=sgd, losses=losses)
        if sgd:
            self.finish_update(sgd)
        return losses

    def learn(self, examples: Sequence[Example], drop: float) -> float:
        """Compute the gradients of a batch.

        drop (float): the dropout of tok2vec.
        RETURNS (float): the loss.
        RAISES (Unusual): only spaCy's own update knows what to do.
        """
        rejected_key, size = self.moves.neg_key, self.cfg["update_with_oracle_cut_size"]
        filled = [eg for eg in examples if len(eg.predicted)]
        if not filled:
            return 0.0
        tokens = read_tokens(filled, Actions.read(self), rejected_key)
        most = int(random.uniform(size // 2, size * 2)) if size else 0
        states = first_states(filled, tokens, most, rejected_key)
        if not states.at.size:
            return 0.0
        set_dropout_rate(self.model, drop)
        tok2vec, lower, _ = self.model.layers
        tokvecs, backprop_tokvecs = tok2vec([eg.predicted for eg in examples], True)
        features, backprop_features = lower(tokvecs, True)
        # spaCy's states go a token further than they are cut for.
        lengths = np.minimum(states.ends - states.at, most + 1) if most else states.ends - states.at
        masks = self.draw_masks(int(lengths.sum()))
        unseen = self.model.attrs["unseen_classes"]
        steps = self.take_steps(states, tokens, features, masks, sorted(unseen))

        states = States(*map(np.concatenate, zip(*(step.states for step in steps), strict=True)))
        targets, free = find_targets(states, tokens)
        d_scores = gradient(np.concatenate([step.scores for step in steps]), targets)
        loss = float((d_scores**2).sum())
        if unseen:
            d_scores[:, sorted(unseen)] = 0
            unseen.difference_update(np.flatnonzero(targets[free].any(axis=0)).tolist())
        ops = lower.ops
        d_units = ops.asarray(self.backprop_scores(d_scores, steps, masks))
        seen = ops.asarray(np.concatenate([step.seen for step in steps]), dtype="int32")
        d_tokvecs = ops.alloc2f(len(tokvecs) + 1, tokvecs.shape[1])
        # The last row is that of no token, which is -1.
        ops.scatter_add(d_tokvecs, seen.flatten(), backprop_features((d_units, seen)).reshape(seen.size, -1))
        backprop_tokvecs(d_tokvecs[:-1])
        return loss

    def draw_masks(self, count: int) -> np.ndarray:
        """Draw what is to be dropped of the units of `count` states."""
        _, lower, upper = self.model.layers
        if not self.model.attrs["has_upper"]:
            return np.ones((count, 1), "f")
        return upper.ops.get_dropout_mask((count, lower.get_dim("nO")), DROPOUT)

    def take_steps(
        self,
        states: States,
        tokens: Tokens,
        features: np.ndarray,
        masks: np.ndarray,
        ignored: list[int],
    ) -> list[Step]:
        """Let the model read the texts from some states on, until all masks are used, each state a token at a time.

        features (np.ndarray): what tokens mean for the units, of shape (1 + tokens, places, units, pieces); the first
            row is that of no token.
        ignored (list): actions that are to be scored as low as any.
        """
        _, lower, upper = self.model.layers
        features, bias = (CPU.asarray(lower.ops.to_numpy(array)) for array in (features, lower.get_param("b")))
        places = np.arange(features.shape[1])
        steps: list[Step] = []
        done = 0
        while done < len(masks):
            seen = states.looked_at(len(places))
            units, which = CPU.maxout(features[seen + 1, places].sum(axis=1) + bias)
            units *= masks[done : done + len(seen)]
            scores = upper.predict(units) if self.model.attrs["has_upper"] else units
            if ignored:
                scores[:, ignored] = np.nanmin(scores)
            steps.append(Step(states, seen, which, units, scores))
            chosen = np.where(find_valid(states, tokens), scores, -np.inf).argmax(axis=1)
            states = states.after(chosen, tokens.actions)
            done += len(seen)
        return steps

    def backprop_scores(self, d_scores: np.ndarray, steps: Sequence[Step], masks: np.ndarray) -> np.ndarray:
        """Compute the gradient of the units' pieces, of shape (states, units, pieces), and those of the layer above."""
        _, lower, upper = self.model.layers
        d_units = d_scores
        if self.model.attrs["has_upper"]:
            _, backprop = upper(np.concatenate([step.units for step in steps]), True)
            d_units = backprop(d_scores) * masks
        return CPU.backprop_maxout(d_units, np.concatenate([step.which for step in steps]), lower.get_dim("nP"))


def gradient(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Compute the gradient of -log(p), where p is the probability of all targets together; none without targets."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    d_scores = e / e.sum(axis=1, keepdims=True)
    among = np.where(targets, scores, -np.inf)
    rows = targets.any(axis=1)
    best = np.where(rows, among.max(axis=1), 0)[:, None]
    e = np.exp(among - best)
    d_scores -= e / np.maximum(e.sum(axis=1, keepdims=True), np.finfo("f").tiny)
    d_scores[~rows] = 0
    return d_scores


def can_be_batched(pipe: Any) -> bool:
    """Tell whether a pipe is an ner whose update can be computed here: one with maxout units and without a beam."""
    return (
        type(pipe) is EntityRecognizer
        and pipe.cfg["beam_width"] == 1
        and not pipe._multitasks
        and [layer.name for layer in pipe.model.layers[1:2]] == ["precomputable_affine"]
        and pipe.model.layers[1].get_dim("nP") > 1
        and pipe.model.layers[1].get_dim("nF") in (3, 6)
    )


@contextmanager
def batched_ner(nlp: Language) -> Iterator[None]:
    """Make a block in which a pipeline's ner is updated with all states of a batch at a time."""
    own = list(nlp._components)
    nlp._components[:] = [(name, BatchedNer.of(pipe) if can_be_batched(pipe) else pipe) for name, pipe in own]
    try:
        yield
    finally:
        nlp._components[:] = own
