"""The component: a head for each label, for learning from partial annotation.

spaCy's `ner` makes one decision per token over all labels: a text without REAGENT can't be used unless all its other
labels are known. Here each label has a separate decision:

1. The model gives each token five logits per label: outside (O), begin (B), inside (I), last (L), unit (U); see
   `model`, and `transformer`.
2. The loss is the cross-entropy of each label's tags, where they are known. A complete label is known on all tokens
   except those of misaligned gold. For a partial label, accepted spans are known, and a rejected one costs -log(1 - p),
   where p is the probability of its tags. All else is masked. See `known`, `targets` and `loss`.
3. Decoding finds each label's most probable legal tag sequence, whose spans don't overlap. Spans of different labels
   may: all are in `doc.spans["labels"]` (`spans_key`), with their probabilities in `attrs["scores"]`; `doc.ents` is the
   non-overlapping subset with the highest sum of -log(1 - p). See `decode`. As with spaCy's `ner`, existing entities
   stay, no entity has a blocked token, and none begins or ends with white space.
4. Without complete texts, a label's head has seen no negatives, and predicts too much. Its spans stay out of
   `doc.ents`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE, IS_SPACE
from spacy.language import Language
from spacy.pipeline.tok2vec import DEFAULT_TOK2VEC_MODEL
from spacy.pipeline.trainable_pipe import TrainablePipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from spacy_per_label.decode import FoundSpans, calibrated, choose_flat, decode, log_odds
from spacy_per_label.known import BEGINS, get_known
from spacy_per_label.loss import EPSILON, log_softmax, loss_and_gradient
from spacy_per_label.model import set_labels
from spacy_per_label.targets import BEGIN, LAST, OUT, TAGS, UNIT, Learnable, PreparedText, prepare_text, targets_of
from spacy_per_label.transformer import window_finder

DEFAULT_MODEL = {"@architectures": "spacy-per-label.Heads.v2", "tok2vec": DEFAULT_TOK2VEC_MODEL}
INSIDE = 1  # spaCy's ENT_IOB
# Lowest marginal of a span for recall: there are dozens of less probable ones for each entity.
MIN_THRESHOLD = 1e-4


class PerLabelRecognizer(TrainablePipe):
    """Recognizes entities with a head for each label.

    model (Model): computes five logits per token and label; see `make_heads`.
    spans_key (str): key of `doc.spans` for all spans.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "ner",
        *,
        spans_key: str = "labels",
        scorer: Callable | None = get_ner_prf,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.spans_key = spans_key
        self.cfg: dict[str, Any] = {"labels": [], "taught": [], "left_out": []}
        self.scorer = scorer

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels, in order of their heads."""
        return tuple(self.cfg["labels"])

    @property
    def excluded_labels(self) -> tuple[str, ...]:
        """Return the labels without complete texts: their spans stay out of entities, or they have no head.

        Updates add to `cfg["taught"]`; callers may set it, and `cfg["left_out"]`.
        """
        taught = set(self.cfg["taught"])
        return (*(label for label in self.labels if label not in taught), *self.cfg["left_out"])

    @property
    def label_data(self) -> list[str]:
        """Return the `labels` for `initialize`."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized; return 1, or 0 if it exists."""
        if not isinstance(label, str) or not label:
            raise ValueError(f"{label!r} is no label: give a string that isn't empty")
        if label in self.cfg["labels"]:
            return 0
        if self.model.get_ref("output").has_param("W"):
            raise ValueError(f"{label!r}: the model has its heads; train again with all labels")
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Initialize the model for `labels` (default: the examples' gold labels) plus labels added before.

        get_examples (Callable): yields examples, for the sizes of layers.
        labels (Sequence[str] | None): `label_data`, for example by `spacy.read_labels.v1`.
        """
        validate_get_examples(get_examples, "PerLabelRecognizer.initialize")
        sample: list[Doc] = []
        gold_labels: set[str] = set()
        for eg in get_examples():
            if len(sample) < 10:
                sample.append(eg.x)
            if labels is None:
                gold_labels.update(span.label_ for span in get_known(eg.reference).gold)
        before, self.cfg = self.labels, {"labels": [], "taught": [], "left_out": []}
        set_labels(self.model, 0)  # the learned weights are dropped
        for label in chain(before, sorted(gold_labels) if labels is None else labels):
            self.add_label(label)
        if not self.labels:
            raise ValueError(f"{self.name}: no label; give `labels`, or examples that have entities")
        set_labels(self.model, len(self.labels))
        self.model.initialize(X=sample)

    def predict(self, docs: Iterable[Doc]) -> list[FoundSpans]:
        """Decode the docs' logits to spans, without changing the docs."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            empty = np.zeros(0, int)
            return [FoundSpans(empty, empty, empty, np.zeros(0)) for _ in docs]
        return self.decode(self.log_probabilities(docs), [len(doc) for doc in docs])

    def decode(self, log_p: np.ndarray, lengths: Sequence[int]) -> list[FoundSpans]:
        """Find the spans of docs, with calibrated probabilities; see `decode.decode`."""
        slopes, intercepts = (
            np.array([self.cfg.get(name, {}).get(label, default) for label in self.labels], "float32")
            for name, default in (("slopes", 1.0), ("intercepts", 0.0))
        )
        points, least, longest = self.cfg.get("points", {}), {}, {}
        for number, label in enumerate(self.labels):
            if "longest" in points.get(label, {}):  # for recall: find all spans that are so probable
                odds = (log_odds(points[label]["least"]) - intercepts[number]) / max(slopes[number], EPSILON)
                least[number] = max(MIN_THRESHOLD, 0.99 / (1 + np.exp(-odds)))
                longest[number] = points[label]["longest"]
        spans_of_docs = decode(log_p, lengths, least, longest)
        for spans in spans_of_docs:
            spans.probabilities = calibrated(spans.probabilities, slopes[spans.labels], intercepts[spans.labels])
        return spans_of_docs

    def log_probabilities(self, docs: Sequence[Doc]) -> np.ndarray:
        """Compute log-probabilities of the tags, shape (tokens of all docs, labels, 5)."""
        logits = self.logits(docs)
        logits[..., OUT] += self.cfg.get("outside", 0.0)  # chosen for pipelines of labelwise 0.3.0
        return log_softmax(logits)

    def logits(self, docs: Sequence[Doc]) -> np.ndarray:
        """Compute logits of the tags, shape (tokens of all docs, labels, 5), without a shift of O.

        They are -inf where a span would begin or end with white space.
        """
        flat = self.model.ops.to_numpy(self.model.ops.xp.concatenate(self.model.predict(docs)))  # (tokens, 5 labels)
        logits = flat.reshape(len(flat), -1, TAGS)
        spaces = np.concatenate([doc.to_array(IS_SPACE) for doc in docs]).astype(bool)  # (tokens,)
        for tag in (BEGIN, LAST, UNIT):
            logits[spaces, :, tag] = -np.inf
        return logits

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[FoundSpans]) -> None:
        """Set `doc.spans[spans_key]` to all spans, with probabilities, and add a subset to `doc.ents`."""
        labels, untaught = self.labels, set(self.excluded_labels)
        taught = np.array([label not in untaught for label in labels], bool)
        least = np.array([self.cfg.get("points", {}).get(label, {}).get("least", 0.0) for label in labels])
        for doc, spans in zip(docs, predictions, strict=True):
            candidates = [Span(doc, start, end, label=labels[label]) for start, end, label in spans.rows()]
            group = SpanGroup(doc, name=self.spans_key, spans=candidates)
            group.attrs["scores"] = spans.probabilities.astype("float32")
            doc.spans[self.spans_key] = group
            iob, types = doc.to_array([ENT_IOB, ENT_TYPE]).T
            # Number of preset tokens before each token: equal at both ends of a span without preset tokens.
            preset = np.concatenate([[0], np.cumsum((iob == BEGINS) | (iob == INSIDE))])  # (tokens + 1,)
            allowed = taught[spans.labels] & (preset[spans.starts] == preset[spans.ends])
            allowed &= spans.probabilities >= least[spans.labels]
            chosen = [candidates[number] for number in choose_flat(spans, allowed)]
            blocked = [doc[token : token + 1] for token in np.flatnonzero((iob == BEGINS) & (types == 0)).tolist()]
            doc.set_ents([*doc.ents, *chosen], blocked=blocked, default="outside")

    def update(
        self,
        examples: Iterable[Learnable],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Update the model; see the module's docstring.

        examples (Iterable): Examples, or prepared by `preparer`.
        RETURNS (dict[str, float]): the losses, with this component's added.
        """
        losses = {} if losses is None else losses
        examples = list(examples)
        validate_examples([eg for eg in examples if not isinstance(eg, PreparedText)], "PerLabelRecognizer.update")
        texts: Any = [eg.windows if isinstance(eg, PreparedText) else eg.predicted for eg in examples]
        losses.setdefault(self.name, 0.0)
        if any(map(len, texts)):
            set_dropout_rate(self.model, drop)
            logits, backprop = self.model.begin_update(texts)
            loss, gradient = self.get_loss(examples, logits)
            backprop(gradient)
            losses[self.name] += loss
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def preparer(self) -> Callable[[Example], PreparedText] | None:
        """Return a function that prepares Examples for `update`, in any process; None without a transformer."""
        find = window_finder(self.model.get_ref("tok2vec"))
        return find and partial(prepare_text, find, self._numbers())

    def _numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def get_loss(self, examples: Iterable[Learnable], logits: list[Floats2d]) -> tuple[float, list[Floats2d]]:
        """Compute the loss of logits, and its gradient; record labels with known negatives.

        RETURNS (tuple): sum of the losses, and each doc's gradient.
        """
        numbers = self._numbers()
        targets = [eg.targets if isinstance(eg, PreparedText) else targets_of(eg, numbers) for eg in examples]
        tags = np.concatenate([known.tags for known in targets])  # (tokens, labels)
        # Tokens of rejected spans are counted through the batch, as the rows of the logits are.
        starts = np.cumsum([0, *(len(known.tags) for known in targets)]).tolist()
        rejected = [
            (start + base, end + base, label)
            for base, known in zip(starts, targets, strict=False)
            for start, end, label in known.rejected
        ]
        untaught = numbers.keys() - self.cfg["taught"]
        self.cfg["taught"] += sorted(label for label in untaught if (tags[:, numbers[label]] == OUT).any())
        ops: Any = self.model.ops
        flat = ops.xp.concatenate(logits)  # (tokens, 5 labels)
        loss, gradient = loss_and_gradient(flat.reshape(len(flat), -1, TAGS), tags, rejected, ops)
        gradient = ops.as_contig(gradient.reshape(flat.shape))
        return loss, ops.unflatten(gradient, np.array([len(part) for part in logits], "int32"))


@Language.factory(
    "per_label",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    default_config={
        "model": DEFAULT_MODEL,
        "spans_key": "labels",
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_per_label(
    nlp: Language, name: str, model: Model, spans_key: str, scorer: Callable | None
) -> "PerLabelRecognizer":
    """Make the component; see `PerLabelRecognizer`."""
    return PerLabelRecognizer(nlp.vocab, model, name, spans_key=spans_key, scorer=scorer)
