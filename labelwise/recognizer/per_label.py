"""A spaCy component that recognizes entities with a head for each label, so that it learns from partial annotation.

spaCy's own `ner` makes one decision per token over all labels, so it can't be told that a text has no REAGENT without
being told what else is in it. Here each label has a decision of its own:

1. The model gives each token five logits per label: outside (O), begin (B), inside (I), last (L), unit (U). It sees the
   token, its neighbours, and the mean of the text, by which it knows what kind of text it is.
2. The loss is the cross-entropy of each label's tags, where they are known. A label that a text is complete for is
   known on all of its tokens, except for those of gold without token boundaries. Of a label that was only judged span
   by span, accepted spans are known, and a rejected one costs -log(1 - p), where p is the probability of its tags. All
   else is masked: it has no loss and no gradient.
3. Decoding finds, for each label, the most probable sequence of tags that is legal (Viterbi), and so spans that don't
   overlap. Those of different labels may, and are all kept in `doc.spans["labels"]`, with their probabilities in
   `attrs["scores"]`; `doc.ents` is the choice of spans without overlap that has the highest sum of -log(1 - p).

What a text is complete for is in `doc.user_data["labelwise"]["uncovered"]` of a reference Doc, its gold in
`doc.spans["gold"]`. Docs without them are read as spaCy does: `doc.ents` is gold, and tokens with the missing value are
unknown for all labels.

This module needs nothing else of labelwise: `spacy package --code` can put it into a wheel.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import ENT_IOB, IDX, LENGTH
from spacy.language import Language
from spacy.pipeline.trainable_pipe import TrainablePipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import (
    Config,
    Maxout,
    Model,
    NumpyOps,
    Optimizer,
    chain,
    glorot_uniform_init,
    set_dropout_rate,
    with_array,
)
from thinc.types import Floats2d

OUT, BEGIN, IN, LAST, UNIT = range(5)
TAGS = 5
UNKNOWN = -1
SPANS_KEY = "labels"
FITTED = ("slopes", "intercepts")  # settings of the component, by label; see `calibrated`
GOLD, REJECTED, MERGED = "gold", "incorrect_spans", "labelwise"  # where a merge puts what a Doc carries
TINY = 1e-6
NUMPY = NumpyOps()

Arrays = Any  # numpy's or cupy's

DEFAULT_CONFIG = """
[model]
@architectures = "labelwise.PerLabelHeads.v1"
hidden_width = 128
window_size = 1
maxout_pieces = 2
dropout = 0.0
context = true

[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 96
depth = 4
embed_size = 2000
window_size = 1
maxout_pieces = 3
subword_features = true
"""


@registry.architectures("labelwise.PerLabelHeads.v1")
def make_heads(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int = 128,
    window_size: int = 1,
    maxout_pieces: int = 2,
    dropout: float = 0.0,
    context: bool = True,
) -> Model[list[Doc], list[Floats2d]]:
    """Make a model that gives each token five logits per label.

    tok2vec (Model): gives each token a vector, of any width.
    hidden_width (int): of the layer that all heads share.
    window_size (int): neighbours on each side that this layer sees.
    maxout_pieces (int): of this layer.
    dropout (float): after this layer, beside the pipeline's.
    context (bool): it sees the mean of the text's vectors as well, and so what kind of text it is.
    """
    around: Model = Model("around", _around_forward, attrs={"window_size": window_size, "context": context})
    hidden: Model = Maxout(nO=hidden_width, nP=maxout_pieces, normalize=True, dropout=dropout)
    output: Model = Model("heads", _heads_forward, init=_heads_init, dims={"nH": hidden_width}, layers=[hidden])
    model: Model[list[Doc], list[Floats2d]] = chain(tok2vec, around, with_array(output))
    model.name = "per_label_heads"
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output", output)
    return model


def _around_forward(model: Model, Xs: list[Any], is_train: bool) -> tuple[list[Any], Callable]:
    """Put its neighbours' vectors, and the mean of the text's windows, beside each vector; all texts at a time.

    A text of a batch has a few arrays of its own on the CPU alone: a GPU is asked as often for one as for many.
    """
    ops: Any = model.ops
    lengths = np.array([len(X) for X in Xs], "int32")
    texts = ops.asarray(np.repeat(np.arange(len(Xs), dtype="int32"), lengths))  # of each token
    means = averaging(ops, lengths)
    to_windows, from_windows = _windows(ops, model.attrs["window_size"], lengths)

    def backprop(dYs: list[Any]) -> list[Any]:
        """Give each vector its own gradient, and its shares of its neighbours' and the mean's."""
        dY = ops.flatten(dYs)
        if model.attrs["context"]:
            width = dY.shape[1] // 2
            dY = dY[:, :width] + means(ops.as_contig(dY[:, width:]))[texts]
        return ops.unflatten(from_windows(dY), lengths)

    Y = to_windows(ops.flatten(Xs))
    if model.attrs["context"]:
        Y = ops.xp.concatenate([Y, means(Y)[texts]], axis=1)
    return ops.unflatten(Y, lengths), backprop


def _windows(ops: Any, size: int, lengths: np.ndarray) -> tuple[Callable, Callable]:
    """Make what puts neighbours' vectors beside each vector, none of another text, and what gives them gradients."""
    if isinstance(ops, NumpyOps):
        return (
            lambda X: ops.seq2col(X, size, lengths=lengths),
            lambda dY: ops.backprop_seq2col(dY, size, lengths=lengths),
        )
    # cupy's kernel would wait for the device to check the lengths: zeros stand before, between and behind the texts.
    number = np.repeat(np.arange(len(lengths), dtype="int32"), lengths)
    rows = ops.asarray(np.arange(len(number), dtype="int32") + size * (number + 1))

    def apart(X: Any) -> Any:
        """Put zeros between the texts."""
        Y = ops.alloc_f((len(number) + size * (len(lengths) + 1), X.shape[1]))
        Y[rows] = X
        return Y

    return lambda X: ops.seq2col(apart(X), size)[rows], lambda dY: ops.backprop_seq2col(apart(dY), size)[rows]


def averaging(ops: Any, lengths: np.ndarray) -> Callable[[Any], Any]:
    """Make what computes the mean of each run of rows, zeros of one that is empty.

    lengths (np.ndarray): of the runs, on the CPU.
    """
    if isinstance(ops, NumpyOps):
        return lambda X: ops.reduce_mean(X, lengths) if len(X) else ops.alloc_f((len(lengths), X.shape[1]))
    # cupy's kernel would wait for the device to check the lengths.
    runs = ops.asarray(np.repeat(np.arange(len(lengths), dtype="int32"), lengths))
    divisors = ops.asarray(np.maximum(lengths, 1).astype("float32")[:, None])

    def means(X: Any) -> Any:
        """Compute the means."""
        sums = ops.alloc_f((len(lengths), X.shape[1]))
        ops.scatter_add(sums, runs, X)
        return sums / divisors

    return means


def _heads_init(model: Model, X: Any, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)


def _heads_forward(model: Model, X: Any, is_train: bool) -> tuple[Any, Callable]:
    """Compute the logits of all labels from the hidden layer that they share."""
    ops: Any = model.ops
    W, b = model.get_param("W"), model.get_param("b")
    H, backprop_hidden = model.layers[0](X, is_train)

    def backprop(dY: Any) -> Any:
        """Give the gradient of the input, and keep those of the weights."""
        model.inc_grad("W", ops.gemm(dY, H, trans1=True))
        model.inc_grad("b", dY.sum(axis=0))
        return backprop_hidden(ops.gemm(dY, W))

    return ops.gemm(H, W, trans2=True) + b, backprop


def _set_heads(output: Model, labels: int) -> None:
    """Give so many labels a head with random weights."""
    shape = (TAGS * labels, output.get_dim("nH"))
    output.set_param("W", glorot_uniform_init(output.ops, shape))
    output.set_param("b", output.ops.alloc_f(shape[:1]))


def _add_head(output: Model) -> None:
    """Add a head whose weights are zeros, with which nothing is predicted."""
    for name in ("W", "b"):
        there = output.get_param(name)
        new = output.ops.alloc_f((TAGS, *there.shape[1:]))
        output.set_param(name, output.ops.xp.concatenate([there, new]))
        output.set_grad(name, output.ops.alloc_f((len(there) + TAGS, *there.shape[1:])))


def make_per_label(nlp: Language, name: str, model: Model, scorer: Callable | None) -> "PerLabelRecognizer":
    """Make the component; see `PerLabelRecognizer`."""
    return PerLabelRecognizer(nlp.vocab, model, name, scorer=scorer)


# Another copy of this module may have registered it, labelwise's or that of a packaged pipeline; spaCy allows one only.
try:
    Language.factory(
        "labelwise_per_label",
        assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
        default_config={
            "model": Config().from_str(DEFAULT_CONFIG)["model"],
            "scorer": {"@scorers": "spacy.ner_scorer.v1"},
        },
        default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
        func=make_per_label,
    )
except ValueError as error:
    if "E004" not in str(error):
        raise


class PerLabelRecognizer(TrainablePipe):
    """Recognizes entities with a head for each label.

    model (Model): gives each token five logits per label; see `make_heads`.
    """

    def __init__(self, vocab: Vocab, model: Model, name: str = "ner", *, scorer: Callable | None = get_ner_prf) -> None:
        """Take the model; labels are added later, by `initialize` or `add_label`."""
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg: dict[str, Any] = {"labels": []}
        self.scorer = scorer

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of their heads."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """What `initialize` takes as `labels`."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label with a new head, which predicts nothing yet.

        An optimizer that has taken steps can't go on with more heads: make another by `nlp.create_optimizer()`.
        RETURNS (int): 1, or 0 if the label was there.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(f"{label!r} is no label: give a string that isn't empty")
        if label in self.cfg["labels"]:
            return 0
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        output = self.model.get_ref("output")
        if output.has_param("W"):
            _add_head(output)
        return 1

    def uncalibrate(self) -> None:
        """Forget what was fitted to the model as it was: slopes and intercepts."""
        for name in FITTED:
            self.cfg.pop(name, None)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Initialize the model with the labels, those given or those of the examples' gold.

        get_examples (Callable): gives some examples, by which layers find their sizes.
        labels (Sequence[str] | None): what `label_data` gives, such as `spacy.read_labels.v1` reads.
        """
        validate_get_examples(get_examples, "PerLabelRecognizer.initialize")
        sample: list[Doc] = []
        found: set[str] = set()
        for eg in get_examples():
            if len(sample) < 10:
                sample.append(eg.x)
            if labels is None:
                found.update(span.label_ for span in gold_spans(eg.reference))
        for label in sorted(found) if labels is None else labels:
            self.add_label(label)
        if not self.labels:
            raise ValueError(f"{self.name}: no label; give `labels`, or examples that have entities")
        _set_heads(self.model.get_ref("output"), len(self.labels))
        self.model.initialize(X=sample)

    def predict(self, docs: Iterable[Doc]) -> list["FoundSpans"]:
        """Decode the docs' logits to spans, without changing the docs."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [FoundSpans.nothing() for _ in docs]
        found = decode(self.log_probabilities(docs), [len(doc) for doc in docs])
        slopes, intercepts = self._of_labels("slopes", 1.0), self._of_labels("intercepts", 0.0)
        for spans in found:
            spans.probabilities = calibrated(spans.probabilities, slopes[spans.labels], intercepts[spans.labels])
        return found

    def log_probabilities(self, docs: Sequence[Doc]) -> np.ndarray:
        """Compute the logarithms of the tags' probabilities, of the shape (tokens of all docs, labels, 5)."""
        flat = self.model.ops.to_numpy(self.model.ops.xp.concatenate(self.model.predict(docs)))
        return log_softmax(flat.reshape(len(flat), -1, TAGS))

    def _of_labels(self, name: str, default: float) -> np.ndarray:
        """Give a setting of each label: "slopes" or "intercepts"."""
        return np.array([self.cfg.get(name, {}).get(label, default) for label in self.labels], "float32")

    def set_annotations(self, docs: Iterable[Doc], found: Sequence["FoundSpans"]) -> None:
        """Set `doc.spans["labels"]` to all spans found, with their probabilities, and `doc.ents` to a choice."""
        labels = self.labels
        for doc, spans in zip(docs, found, strict=True):
            made = [Span(doc, start, end, label=labels[label]) for start, end, label in spans.rows()]
            group = SpanGroup(doc, name=SPANS_KEY, spans=made)
            group.attrs["scores"] = spans.probabilities.astype("float32")
            doc.spans[SPANS_KEY] = group
            doc.set_ents([made[number] for number in choose_flat(spans)], default="outside")

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from examples; see the module's docstring for what counts as known.

        RETURNS (dict[str, float]): the losses, with this component's added.
        """
        losses = {} if losses is None else losses
        examples = list(examples)
        validate_examples(examples, "PerLabelRecognizer.update")
        self.learn([eg.predicted for eg in examples], self.targets(examples), drop=drop, losses=losses)
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def learn(
        self, texts: Sequence[Any], targets: "Sequence[Targets]", *, drop: float, losses: dict[str, float]
    ) -> None:
        """Compute the gradients of texts.

        texts (Sequence): Docs, or whatever else the model takes.
        targets (Sequence[Targets]): what is known of each.
        """
        losses.setdefault(self.name, 0.0)
        if not any(len(known.tags) for known in targets):
            return
        set_dropout_rate(self.model, drop)
        logits, backprop = self.model.begin_update(texts)
        loss, gradient = self._loss_of(targets, logits)
        backprop(gradient)
        losses[self.name] += loss

    def targets(self, examples: Iterable[Example]) -> "list[Targets]":
        """Tell what each example teaches."""
        place = {label: number for number, label in enumerate(self.labels)}
        return [targets_of(eg, place) for eg in examples]

    def get_loss(self, examples: Iterable[Example], logits: list[Floats2d]) -> tuple[float, list[Floats2d]]:
        """Compute the loss of logits, and its gradient.

        RETURNS (tuple): the sum of the losses of all labels and tokens that are known, and the gradient of each doc.
        """
        return self._loss_of(self.targets(examples), logits)

    def _loss_of(self, targets: "Sequence[Targets]", logits: list[Floats2d]) -> tuple[float, list[Floats2d]]:
        tags = np.concatenate([known.tags for known in targets])
        starts = np.cumsum([0, *(len(known.tags) for known in targets)]).tolist()
        rejected = [
            (start + base, end + base, label)
            for base, known in zip(starts, targets, strict=False)
            for start, end, label in known.rejected
        ]
        ops: Any = self.model.ops
        flat = ops.xp.concatenate(logits)
        loss, gradient = loss_and_gradient(flat.reshape(len(flat), -1, TAGS), tags, rejected, ops)
        gradient = ops.as_contig(gradient.reshape(flat.shape))
        return loss, ops.unflatten(gradient, np.array([len(part) for part in logits], "int32"))


@dataclass(eq=False)
class FoundSpans:
    """The spans that were found in a doc, sorted by label, then start; arrays with a row for each.

    labels (np.ndarray): numbers of the labels.
    starts, ends (np.ndarray): in tokens, `ends` exclusive.
    probabilities (np.ndarray): between 0 and 1; the geometric mean of those of the span's tags.
    """

    labels: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    probabilities: np.ndarray

    def __len__(self) -> int:
        """Give the number of spans."""
        return len(self.labels)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield the start, the end and the label's number of each."""
        return zip(self.starts.tolist(), self.ends.tolist(), self.labels.tolist(), strict=True)

    @classmethod
    def nothing(cls) -> "FoundSpans":
        """Make what was found where there is nothing."""
        none = np.zeros(0, int)
        return cls(none, none, none, np.zeros(0))


def gold_spans(doc: Doc) -> list[Span]:
    """List the accepted spans of a reference Doc that have token boundaries: a merge's, or else the entities."""
    return list(doc.spans[GOLD]) if GOLD in doc.spans else list(doc.ents)


class Targets(NamedTuple):
    """What is known of a text.

    tags (np.ndarray): of the shape (tokens, labels), UNKNOWN where nobody knows.
    rejected (list): spans that aren't entities, of labels that aren't complete, as (start, end, label's number).
    """

    tags: np.ndarray
    rejected: list[tuple[int, int, int]]


def targets_of(eg: Example, place: dict[str, int]) -> Targets:
    """Tell what an example teaches.

    place (dict[str, int]): the numbers of the labels.
    """
    reference, size = eg.reference, len(eg.predicted)
    merged = reference.user_data.get(MERGED)
    tags = np.full((size, len(place)), OUT, np.int8)
    states = dict(merged["uncovered"]) if merged else {}
    for label in states:
        if label in place:
            tags[:, place[label]] = UNKNOWN
    same = _same_tokens(eg)
    if merged is None:
        missing = reference.to_array(ENT_IOB) == 0
        if missing.any():
            tags[missing if same else [value in (None, 0) for value in eg.get_aligned("ENT_IOB")]] = UNKNOWN
    else:
        for start, end, label in lost_gold(reference, merged["gold"]):
            if label in place:
                tags[_touched(eg.predicted, start, end), place[label]] = UNKNOWN
    for start, end, label in sorted(
        _aligned(eg, gold_spans(reference), same), key=lambda span: (span[0] - span[1], span)
    ):
        if label in place and states.get(label) != "none":
            inside = tags[start:end, place[label]]
            # Of spans of one label that overlap, the longest counts.
            if not (inside > OUT).any():
                inside[:] = tags_of(end - start)
    rejected = [
        (start, end, place[label])
        for start, end, label in _aligned(eg, reference.spans.get(REJECTED, ()), same)
        if label in place and (states.get(label) == "partial" or merged is None)
    ]
    return Targets(tags, rejected)


def tags_of(length: int) -> np.ndarray:
    """List the tags of a span of so many tokens."""
    return np.array([UNIT] if length == 1 else [BEGIN, *[IN] * (length - 2), LAST], np.int8)


def lost_gold(doc: Doc, gold: Iterable[Sequence[Any]]) -> Iterator[tuple[int, int, str]]:
    """Yield the accepted spans, in characters, that don't fall on the Doc's tokens."""
    starts = doc.to_array(IDX)
    ends = set((starts + doc.to_array(LENGTH)).tolist())
    begins = set(starts.tolist())
    for start, end, label, *_ in gold:
        if start not in begins or end not in ends:
            yield start, end, label


def _touched(doc: Doc, start: int, end: int) -> slice:
    """Find the tokens that a span of characters touches."""
    starts = doc.to_array(IDX)
    ends = starts + doc.to_array(LENGTH)
    return slice(int(np.searchsorted(ends, start, side="right")), int(np.searchsorted(starts, end, side="left")))


def _same_tokens(eg: Example) -> bool:
    """Tell whether both docs of an example have the same tokens."""
    one, other = (doc.to_array([IDX, LENGTH]) for doc in (eg.predicted, eg.reference))
    return one.shape == other.shape and bool((one == other).all())


def _aligned(eg: Example, spans: Iterable[Span], same: bool) -> list[tuple[int, int, str]]:
    if not same:
        spans = eg.get_aligned_spans_y2x(list(spans), allow_overlap=True)
    return [(span.start, span.end, span.label_) for span in spans]


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
    none = np.zeros((4, 0), int)
    return np.concatenate(
        [
            none,
            *(
                [np.full(end - start, number), np.arange(start, end), np.full(end - start, label), tags_of(end - start)]
                for number, (start, end, label) in enumerate(rejected)
            ),
        ],
        axis=1,
    )


def calibrated(probabilities: np.ndarray, slopes: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
    """Turn the probabilities of spans into how often such spans are right: log-odds are scaled, and shifted.

    Platt, Probabilistic Outputs for Support Vector Machines (1999); with a shift of 0, the scale is the inverse of a
    temperature (Guo et al., On Calibration of Modern Neural Networks, ICML 2017).
    """
    p = np.clip(probabilities, TINY, 1 - TINY)
    return 1 / (1 + np.exp(-(slopes * (np.log(p) - np.log1p(-p)) + intercepts)))


def decode(log_p: np.ndarray, lengths: Sequence[int]) -> list[FoundSpans]:
    """Find, for each doc and label, the most probable legal sequence of tags, and its spans.

    Legal is O, U, or B followed by any number of I and then L; no span is open at the end of a doc. So there are two
    states after each token, closed and open, and the sequence is found in one pass over the tokens, for all docs and
    labels at a time (Viterbi).

    log_p (np.ndarray): of the shape (tokens of all docs, labels, 5).
    lengths (Sequence[int]): tokens of each doc.
    """
    order = np.argsort([-length for length in lengths], kind="stable")
    docs, longest, labels = len(lengths), max(lengths, default=0), log_p.shape[1]
    bases = np.cumsum([0, *lengths])[:-1]
    # Longest first: those that are still running at a token are the first so many.
    running = [int(sum(length > token for length in lengths)) for token in range(longest)]
    closed = np.zeros((docs, labels), log_p.dtype)
    opened = np.full((docs, labels), -np.inf, log_p.dtype)
    # How each state was reached: closed by O or U (0, 1) or L (2); open by B (False) or I (True).
    how_closed = np.zeros((longest, docs, labels), np.int8)
    how_open = np.zeros((longest, docs, labels), bool)
    sorted_bases = bases[order]
    for token in range(longest):
        n = running[token]
        rows = log_p[sorted_bases[:n] + token]
        single = np.maximum(rows[..., OUT], rows[..., UNIT])
        by_last, stays = opened[:n] + rows[..., LAST], closed[:n] + single
        begins, inside = closed[:n] + rows[..., BEGIN], opened[:n] + rows[..., IN]
        ends = by_last > stays
        how_closed[token, :n] = np.where(ends, 2, rows[..., UNIT] > rows[..., OUT])
        how_open[token, :n] = inside > begins
        closed[:n], opened[:n] = np.where(ends, by_last, stays), np.maximum(inside, begins)
    return _backtrack(log_p, how_closed, how_open, running, order, bases)


def _backtrack(
    log_p: np.ndarray,
    how_closed: np.ndarray,
    how_open: np.ndarray,
    running: Sequence[int],
    order: np.ndarray,
    bases: np.ndarray,
) -> list[FoundSpans]:
    """Follow the best sequences from their ends, and collect their spans."""
    docs, labels = how_closed.shape[1:]
    is_open = np.zeros((docs, labels), bool)  # before the token that was looked at last
    ends = np.zeros((docs, labels), int)  # of the span that is open
    sums = np.zeros((docs, labels), log_p.dtype)  # of its log-probabilities so far
    found: list[list[np.ndarray]] = []
    sorted_bases = bases[order]
    for token in reversed(range(len(running))):
        n = running[token]
        rows = log_p[sorted_bases[:n] + token]
        was_open = is_open[:n]
        closes = ~was_open & (how_closed[token, :n] == 2)
        unit = ~was_open & (how_closed[token, :n] == 1)
        goes_on = was_open & how_open[token, :n]
        begins = was_open & ~how_open[token, :n]
        ends[:n][closes] = token + 1
        sums[:n][closes] = rows[..., LAST][closes]
        sums[:n][goes_on] += rows[..., IN][goes_on]
        sums[:n][begins] += rows[..., BEGIN][begins]
        for mask, last, total in ((begins, ends[:n], sums[:n]), (unit, None, rows[..., UNIT])):
            if mask.any():
                doc, label = np.nonzero(mask)
                stop = np.full(len(doc), token + 1) if last is None else last[doc, label]
                mean = total[doc, label] / (stop - token)
                found.append([order[doc], label, np.full(len(doc), token), stop, np.exp(mean)])
        is_open[:n] = closes | goes_on
    if not found:
        return [FoundSpans.nothing() for _ in range(docs)]
    doc, label, start, stop, probability = (np.concatenate(column) for column in zip(*found, strict=True))
    by_doc = np.lexsort((start, label, doc))
    cuts = np.searchsorted(doc[by_doc], np.arange(docs + 1))
    return [
        FoundSpans(*(column[by_doc[first:last]] for column in (label, start, stop, probability)))
        for first, last in pairwise(cuts.tolist())
    ]


def choose_flat(found: FoundSpans) -> list[int]:
    """Choose the spans without overlap that have the highest sum of -log(1 - p): least likely, all of them are wrong.

    Each weight is positive, so a span that overlaps no other is chosen, however improbable it is.
    Weighted interval scheduling (Kleinberg and Tardos, Algorithm Design, section 6.1).
    RETURNS (list[int]): their numbers, in the order of the text.
    """
    if not len(found):
        return []
    weights = -np.log1p(-np.clip(found.probabilities, TINY, 1 - TINY))
    order = np.lexsort((found.starts, found.ends)).tolist()
    ends = found.ends[order]
    before = np.searchsorted(ends, found.starts[order], side="right").tolist()
    best = [0.0]
    for place, number in enumerate(order):
        best.append(max(best[-1], float(weights[number]) + best[before[place]]))
    chosen, place = [], len(order)
    while place:
        number = order[place - 1]
        if float(weights[number]) + best[before[place - 1]] > best[place - 1]:
            chosen.append(number)
            place = before[place - 1]
        else:
            place -= 1
    return chosen[::-1]
