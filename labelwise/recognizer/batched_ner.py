"""spaCy's ner, which computes more at a time: faster, and with the same results but for rounding.

spaCy's ner takes the states of a few texts a token further at a time, and looks at each state by itself. After each
token of an update, it computes the gradients of all parameters, and adds them to those before. Here, the states of all
texts of a batch are arrays (`ner_states`, `ner_gold`), and gradients are computed after the last token, of all states
at once (spacy/pipeline/transition_parser.pyx and spacy/ml/parser_model.pyx, 3.8).
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model, NumpyOps, Optimizer, set_dropout_rate

from labelwise.recognizer.ner_gold import cut_states, find_targets, read_gold
from labelwise.recognizer.ner_states import LAST, UNIT, Actions, States, Tokens, Unusual, find_valid, read_tokens

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
    chosen (np.ndarray): the action that is taken.
    """

    states: States
    seen: np.ndarray
    which: np.ndarray
    units: np.ndarray
    scores: np.ndarray
    chosen: np.ndarray


class BatchedNer(EntityRecognizer):
    """spaCy's ner with another `update` and `pipe`; it has the model of the one that it is made of."""

    @classmethod
    def of(cls, ner: EntityRecognizer) -> "BatchedNer":
        """Make one with the parts of another."""
        batched = cls(ner.vocab, ner.model, ner.name, ner.moves, scorer=ner.scorer)
        batched.cfg.update(ner.cfg)
        return batched

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Find the entities of Docs, a batch at a time; see spaCy's."""
        for batch in minibatch(stream, batch_size):
            docs = list(batch)
            try:
                found = self.find(docs) if any(map(len, docs)) else [[] for _ in docs]
            except Unusual:
                yield from super().pipe(docs, batch_size=batch_size)
                continue
            for doc, spans in zip(docs, found, strict=True):
                doc.set_ents(spans, default="outside")
            yield from docs

    def find(self, docs: Sequence[Doc]) -> list[list[Span]]:
        """Find the entities of each Doc.

        RAISES (Unusual): only spaCy's own ner knows what to do.
        """
        tokens = read_tokens(docs, Actions.read(self))
        tok2vec, lower, _ = self.model.layers
        features = lower.predict(tok2vec.predict(docs))
        unseen = sorted(self.model.attrs["unseen_classes"])
        offsets = np.cumsum([0, *tokens.lengths])
        spans: list[list[Span]] = [[] for _ in docs]
        for step in take_steps(self.model, features, tokens.first_states(), tokens, unseen):
            kinds = tokens.actions.kinds[step.chosen]
            for row in np.flatnonzero((kinds == LAST) | (kinds == UNIT)).tolist():
                at, start = int(step.states.at[row]), int(step.states.starts[row])
                number = int(np.searchsorted(offsets, at, side="right")) - 1
                start = (start if kinds[row] == LAST else at) - offsets[number]
                label = tokens.actions.names[tokens.actions.label_of[step.chosen[row]]]
                spans[number].append(Span(docs[number], start, at + 1 - offsets[number], label))
        return spans

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
        tokens = read_tokens([eg.predicted for eg in filled], Actions.read(self))
        gold = read_gold(filled, tokens, rejected_key)
        most = int(random.uniform(size // 2, size * 2)) if size else 0
        states = cut_states(filled, tokens, gold, most, rejected_key)
        if not states.at.size:
            return 0.0
        set_dropout_rate(self.model, drop)
        tok2vec, lower, _ = self.model.layers
        tokvecs, backprop_tokvecs = tok2vec([eg.predicted for eg in examples], True)
        features, backprop_features = lower(tokvecs, True)
        # spaCy's states go a token further than they are cut for.
        lengths = np.minimum(states.ends - states.at, most + 1) if most else states.ends - states.at
        masks = draw_masks(self.model, int(lengths.sum()))
        unseen = self.model.attrs["unseen_classes"]
        ignored = sorted(unseen)
        steps = list(take_steps(self.model, features, states, tokens, ignored, masks))

        targets, free = find_targets(States.joined(step.states for step in steps), tokens, gold)
        d_scores = gradient(np.concatenate([step.scores for step in steps]), targets)
        loss = float((d_scores**2).sum())
        if ignored:
            d_scores[:, ignored] = 0
            unseen.difference_update(np.flatnonzero(targets[free].any(axis=0)).tolist())
        ops = lower.ops
        d_pieces = ops.asarray(backprop_scores(self.model, d_scores, steps, masks))
        seen = ops.asarray(np.concatenate([step.seen for step in steps]), dtype="int32")
        d_tokvecs = ops.alloc2f(len(tokvecs) + 1, tokvecs.shape[1])
        # The last row is that of no token, which is -1.
        ops.scatter_add(d_tokvecs, seen.flatten(), backprop_features((d_pieces, seen)).reshape(seen.size, -1))
        backprop_tokvecs(d_tokvecs[:-1])
        return loss


def draw_masks(model: Model, count: int) -> Any:
    """Draw what is to be dropped of the units of `count` states."""
    _, lower, upper = model.layers
    if not model.attrs["has_upper"]:
        return np.ones((count, 1), "f")
    return upper.ops.get_dropout_mask((count, lower.get_dim("nO")), DROPOUT)


def take_steps(
    model: Model,
    features: Any,
    states: States,
    tokens: Tokens,
    ignored: Sequence[int],
    masks: np.ndarray | None = None,
) -> Iterator[Step]:
    """Let a model read texts on from some states, a token of each at a time.

    features (Any): what tokens mean for the model's units, of shape (1 + tokens, places, units, pieces); the first row
        is that of no token.
    ignored (Sequence): actions that are to be scored as low as any.
    masks (np.ndarray | None): of dropout, a row for each state of each step, of which there are so many; without them,
        texts are read to their ends.
    """
    _, lower, upper = model.layers
    features, bias = (CPU.asarray(lower.ops.to_numpy(array)) for array in (features, lower.get_param("b")))
    places = np.arange(features.shape[1])
    done = 0
    while states.at.size and (masks is None or done < len(masks)):
        seen = states.looked_at(len(places))
        units, which = CPU.maxout(features[seen + 1, places].sum(axis=1) + bias)
        if masks is not None:
            units *= masks[done : done + len(seen)]
        scores = upper.predict(units) if model.attrs["has_upper"] else units
        if ignored:
            scores[:, ignored] = np.nanmin(scores)
        chosen = np.where(find_valid(states, tokens), scores, -np.inf).argmax(axis=1)
        yield Step(states, seen, which, units, scores, chosen)
        states = states.after(chosen, tokens.actions)
        done += len(seen)


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


def backprop_scores(model: Model, d_scores: np.ndarray, steps: Sequence[Step], masks: np.ndarray) -> np.ndarray:
    """Compute the gradient of the units' pieces, of shape (states, units, pieces), and those of the layer above."""
    _, lower, upper = model.layers
    d_units = d_scores
    if model.attrs["has_upper"]:
        _, backprop = upper(np.concatenate([step.units for step in steps]), True)
        d_units = backprop(d_scores) * masks
    return CPU.backprop_maxout(d_units, np.concatenate([step.which for step in steps]), lower.get_dim("nP"))


def can_be_batched(pipe: Any) -> bool:
    """Tell whether a pipe is an ner that `BatchedNer` can stand in for: with maxout units and without a beam."""
    return (
        type(pipe) is EntityRecognizer
        and pipe.cfg["beam_width"] == 1
        and not pipe._multitasks
        and [layer.name for layer in pipe.model.layers[1:2]] == ["precomputable_affine"]
        and pipe.model.layers[1].get_dim("nP") > 1
        and pipe.model.layers[1].get_dim("nF") in (3, 6)
    )


def batch_ner(nlp: Language) -> list[tuple[str, Any]]:
    """Put a `BatchedNer` in the place of a pipeline's ner, if it can be.

    RETURNS (list): the components that were there.
    """
    own = list(nlp._components)
    nlp._components[:] = [(name, BatchedNer.of(pipe) if can_be_batched(pipe) else pipe) for name, pipe in own]
    return own


@contextmanager
def batched_ner(nlp: Language) -> Iterator[None]:
    """Make a block in which a `BatchedNer` is in the place of a pipeline's ner."""
    own = batch_ner(nlp)
    try:
        yield
    finally:
        nlp._components[:] = own
