"""The component: it recognizes entities with a head for each label, so that it learns from partial annotation.

spaCy's own `ner` makes one decision per token over all labels, so it can't be told that a text has no REAGENT without
being told what else is in it. Here each label has a decision of its own:

1. The model gives each token five logits per label: outside (O), begin (B), inside (I), last (L), unit (U); see
   `model`, and `transformer`.
2. The loss is the cross-entropy of each label's tags, where they are known. A label that a text is complete for is
   known on all of its tokens, except for those of gold without token boundaries. Of a label that was only judged span
   by span, accepted spans are known, and a rejected one costs -log(1 - p), where p is the probability of its tags. All
   else is masked: it has no loss and no gradient. See `targets` and `loss`.
3. Decoding finds, for each label, the most probable sequence of tags that is legal, and so spans that don't overlap.
   Those of different labels may, and are all kept in `doc.spans["labels"]`, with their probabilities in
   `attrs["scores"]`; `doc.ents` is the choice of spans without overlap that has the highest sum of -log(1 - p). See
   `decode`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline.tok2vec import DEFAULT_TOK2VEC_MODEL
from spacy.pipeline.trainable_pipe import TrainablePipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from spacy_per_label.decode import FoundSpans, calibrated, choose_flat, decode
from spacy_per_label.loss import log_softmax, loss_and_gradient
from spacy_per_label.model import set_heads
from spacy_per_label.targets import OUT, TAGS, gold_spans, targets_of

SPANS_KEY = "labels"

DEFAULT_MODEL = {"@architectures": "spacy-per-label.Heads.v1", "tok2vec": DEFAULT_TOK2VEC_MODEL}


class PerLabelRecognizer(TrainablePipe):
    """Recognizes entities with a head for each label.

    model (Model): gives each token five logits per label; see `make_heads`.
    """

    def __init__(self, vocab: Vocab, model: Model, name: str = "ner", *, scorer: Callable | None = get_ner_prf) -> None:
        """Take the model; labels are added later, by `initialize` or `add_label`."""
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg: dict[str, Any] = {"labels": [], "untaught": []}
        self.scorer = scorer

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of their heads."""
        return tuple(self.cfg["labels"])

    @property
    def untaught(self) -> tuple[str, ...]:
        """The labels of the corpus that have no head, because no text was complete for them; whoever trains sets it."""
        return tuple(self.cfg.get("untaught", ()))

    @property
    def label_data(self) -> list[str]:
        """What `initialize` takes as `labels`."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized: all heads are trained together.

        RETURNS (int): 1, or 0 if the label was there.
        """
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
        set_heads(self.model.get_ref("output"), len(self.labels))
        self.model.initialize(X=sample)

    def predict(self, docs: Iterable[Doc]) -> list[FoundSpans]:
        """Decode the docs' logits to spans, without changing the docs."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [FoundSpans.nothing() for _ in docs]
        found = decode(self.log_probabilities(docs), [len(doc) for doc in docs])
        slopes, intercepts = (
            np.array([self.cfg.get(name, {}).get(label, default) for label in self.labels], "float32")
            for name, default in (("slopes", 1.0), ("intercepts", 0.0))
        )
        for spans in found:
            spans.probabilities = calibrated(spans.probabilities, slopes[spans.labels], intercepts[spans.labels])
        return found

    def log_probabilities(self, docs: Sequence[Doc]) -> np.ndarray:
        """Compute the logarithms of the tags' probabilities, of the shape (tokens of all docs, labels, 5)."""
        flat = self.model.ops.to_numpy(self.model.ops.xp.concatenate(self.model.predict(docs)))
        logits = flat.reshape(len(flat), -1, TAGS)
        logits[..., OUT] += self.cfg.get("outside", 0.0)  # below 0, more spans are found
        return log_softmax(logits)

    def set_annotations(self, docs: Iterable[Doc], found: Sequence[FoundSpans]) -> None:
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
        losses.setdefault(self.name, 0.0)
        if any(len(eg.predicted) for eg in examples):
            set_dropout_rate(self.model, drop)
            logits, backprop = self.model.begin_update([eg.predicted for eg in examples])
            loss, gradient = self.get_loss(examples, logits)
            backprop(gradient)
            losses[self.name] += loss
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def get_loss(self, examples: Iterable[Example], logits: list[Floats2d]) -> tuple[float, list[Floats2d]]:
        """Compute the loss of logits, and its gradient.

        RETURNS (tuple): the sum of the losses of all labels and tokens that are known, and the gradient of each doc.
        """
        place = {label: number for number, label in enumerate(self.labels)}
        targets = [targets_of(eg, place) for eg in examples]
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


@Language.factory(
    "per_label",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    default_config={
        "model": DEFAULT_MODEL,
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_per_label(nlp: Language, name: str, model: Model, scorer: Callable | None) -> "PerLabelRecognizer":
    """Make the component; see `PerLabelRecognizer`."""
    return PerLabelRecognizer(nlp.vocab, model, name, scorer=scorer)
