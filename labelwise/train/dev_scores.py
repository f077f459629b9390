"""Evaluation during training that streams: what `nlp.evaluate` computes, without holding the dev set."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.training import Example

from labelwise.corpus.annotation import Annotation, annotation_of, entities, is_merged
from labelwise.corpus.pipeline import forgetting, take_batch
from labelwise.errors import InputError

KNOWN = ("ents_f", "ents_p", "ents_r", "ents_macro_f")  # the scores that weights can be for


class EntityCounts:
    """Counts entities, as far as they can be judged; counts of any Examples can be added up.

    Of a text that is complete for all labels, as spaCy's `get_ner_prf` does (spacy/scorer.py). Of another one that
    comes from a merge, only what its labels' coverage allows to judge counts, predictions and gold alike; see
    `spans.judgeable`.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.by_label: dict[str, PRFScore] = defaultdict(PRFScore)

    def add(self, eg: Example) -> None:
        """Count one Example: exact spans, except for predictions on tokens that have missing values."""
        merged = annotation_of(eg.reference) if is_merged(eg.reference) else None
        if merged and merged.uncovered:
            self._add_judgeable(eg, merged)
            return
        if not eg.reference.has_annotation("ENT_IOB"):
            return
        missing = {token.i for token in eg.reference if token.ent_iob == 0}
        gold = {(ent.label_, ent.start, ent.end) for ent in eg.reference.ents}
        aligned = eg.alignment.x2y
        for ent in eg.predicted.ents:
            count = self.by_label[ent.label_]
            tokens = aligned[ent.start : ent.end]
            if len(tokens) and missing.isdisjoint(range(tokens[0], tokens[-1] + 1)):
                key = (ent.label_, int(tokens[0]), int(tokens[-1]) + 1)
                count.tp += key in gold
                count.fp += key not in gold
                gold.discard(key)
        for label, _, _ in gold:
            self.by_label[label].fn += 1

    def _add_judgeable(self, eg: Example, merged: Annotation) -> None:
        """Count an Example whose text isn't complete for all labels."""
        gold, found = entities(eg.reference), entities(eg.predicted)
        gold, found = (merged.judgeable(spans, tuple(gold)) for spans in (gold, found))
        for spans, name in ((gold & found, "tp"), (found - gold, "fp"), (gold - found, "fn")):
            for _, _, label in spans:
                count = self.by_label[label]
                setattr(count, name, getattr(count, name) + 1)

    @classmethod
    def total(cls, counts: "Iterable[EntityCounts]") -> "EntityCounts":
        """Add up what was counted of several shares of a dev set."""
        total = cls()
        for one in counts:
            for label, count in one.by_label.items():
                total.by_label[label] += count
        return total

    def scores(self) -> dict[str, Any]:
        """Compute what spaCy's scorer of named entities gives, and the mean of the labels' F1, `ents_macro_f`.

        RETURNS (dict): None where there is nothing to compute it from.
        """
        counts = dict(sorted(self.by_label.items()))
        total = sum(counts.values(), PRFScore())
        if not len(total):
            return dict.fromkeys(("ents_p", "ents_r", "ents_f", "ents_per_type", "ents_macro_f"))
        per_type = {label: count.to_dict() for label, count in counts.items()}
        return {
            "ents_p": total.precision,
            "ents_r": total.recall,
            "ents_f": total.fscore,
            "ents_per_type": per_type,
            "ents_macro_f": sum(count.fscore for count in counts.values()) / len(counts),
        }


def count_entities(nlp: Language, examples: Iterable[Example]) -> EntityCounts:
    """Predict and count, batch by batch; predictions go into the Examples' predicted Docs."""
    counts = EntityCounts()
    examples = iter(examples)
    most, held = nlp.batch_size, True
    while held:
        with forgetting(nlp):
            batch = take_batch(examples, most, lambda eg: len(eg.predicted))
            docs = nlp.pipe((eg.predicted for eg in batch), batch_size=most)
            for eg, doc in zip(batch, docs, strict=True):
                eg.predicted = doc
                counts.add(eg)
            held = bool(batch)
            batch.clear()
    return counts


def weighted_score(scores: Mapping[str, Any], weights: Mapping[str, float | None]) -> float:
    """Compute the score that decides which pipeline is the best.

    RAISES (InputError): a weight is for a score that isn't computed.
    """
    total = 0.0
    for name, weight in weights.items():
        if weight:
            if name not in KNOWN:
                raise InputError(f"training.score_weights: {name} isn't computed; there are {', '.join(KNOWN)}")
            total += weight * (scores[name] or 0.0)
    return total
