"""What was found, and what train has of the same words.

How train marks a form, in the texts that are complete for the label:

- alike: with this label, with few exceptions.
- variously: also with another label, or not at all, more than now and then. Some words are ambiguous, and a pipeline
  that sees their context finds them all the same: only what is found, of all of them, tells.
- never: the form isn't there.

A gold span is contradicted if it was missed, and train leaves its form unmarked 99 times of a hundred: words and
context both speak against it, so it may be the annotation that is wrong. (Planted errors make this grow, ambiguous
words don't; a prediction that agrees with train's words, but not with gold, is mostly an ambiguous name.)

A span without token boundaries is left out: no pipeline can find it.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from labelwise.common.spans import SpanKey
from labelwise.corpus.docbin_reader import StoredDoc, TokenSpan, read_stored_docs
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import find_partitions, partitions_of
from labelwise.evaluate.mistakes import pair_spans
from labelwise.evaluate.predictions import PredictedDoc, read_predictions
from labelwise.evaluate.scores import MARKINGS, Familiarity, Found, Marking, MissedForm

NOW_AND_THEN = 0.1  # of the times that train marks a form
HARDLY = 0.01  # of the times that train has a form unmarked, and
ENOUGH = 20  # of those at least, for it to contradict an annotation
MOST = 10  # forms of each marking that are listed


def find_familiarity(corpus: Path, split: Path, predictions: Path, labels: Sequence[str]) -> Familiarity:
    """Tell what was found by how train marks it, in a pass over train and two over the split and its predictions.

    labels (Sequence[str]): all labels.
    RETURNS (Familiarity): nothing if the corpus has no train split.
    RAISES (InputError): a file isn't what it should be.
    """
    train = partitions_of(corpus, "train")
    if not train:
        return Familiarity()
    forms = Forms(labels)
    for judged in _judged(forms, split, predictions):
        forms.look_for(judged.stored, list(judged.gold))
    for file in train:
        for stored in read_stored_docs(file):
            forms.mark(stored)
            forms.release(stored)
    familiarity = Familiarity()
    with sqlite3.connect("") as table:  # a temporary file, as of `mistakes.Mistakes`
        table.execute(
            "CREATE TABLE forms (marking, label, form, train, n, PRIMARY KEY (marking, label, form)) WITHOUT ROWID"
        )
        for judged in _judged(forms, split, predictions):
            _count(familiarity, judged, forms, table)
        query = "SELECT form, label, n, train FROM forms WHERE marking = ? ORDER BY n DESC, form, label LIMIT ?"
        for marking in MARKINGS:
            familiarity.forms[marking] = [
                MissedForm(form, label, count, msgspec.json.decode(train))
                for form, label, count, train in table.execute(query, (marking, MOST))
            ]
    return familiarity


class _Judged:
    """A text, and what was predicted, as far as it can be judged and has token boundaries.

    gold (dict): spans in tokens, each with its form.
    found, missed (set): those of gold that were found, and that nothing was found of.
    """

    def __init__(self, forms: Forms, stored: StoredDoc, doc: PredictedDoc) -> None:
        number_of = {label: number for number, label in enumerate(forms.labels)}

        def placed(spans: set[SpanKey]) -> dict[TokenSpan, str]:
            """Give the spans that have token boundaries, each with its form."""
            places = zip(stored.in_tokens(sorted(spans)), sorted(spans), strict=True)
            return {(*place, number_of[span[2]]): doc.form(span) for place, span in places if place}

        labels = set(forms.labels)
        gold = {span for span in doc.scored(doc.gold) if span[2] in labels}
        predicted = {span for span in doc.scored(doc.predicted) if span[2] in labels}
        pairs = pair_spans(gold, predicted)
        self.stored = stored
        self.gold = placed(gold)
        self.found = set(placed(gold & predicted))
        same = {pair.gold for pair in pairs if pair.kind == "wrong boundaries" and pair.gold}
        self.missed = set(placed(gold - predicted - same))


def _judged(forms: Forms, split: Path, predictions: Path) -> Iterator[_Judged]:
    """Yield the texts of a split, each with what was predicted; both are sorted by key."""
    stored = (doc for file in find_partitions(split) for doc in read_stored_docs(file))
    for one, doc in zip(stored, read_predictions(predictions), strict=True):
        yield _Judged(forms, one, doc)


def _count(familiarity: Familiarity, judged: _Judged, forms: Forms, table: sqlite3.Connection) -> None:
    """Count what was found of a text's gold, what was missed, and what is contradicted."""
    in_train = _in_train(forms, judged.stored, list(judged.gold))
    for (span, form), (here, free) in zip(judged.gold.items(), in_train, strict=True):
        label = forms.labels[span[2]]
        marked = here.get(label, 0)
        marking = _marking(marked, free)
        counts = familiarity.labels.setdefault(label, {name: Found() for name in MARKINGS})[marking]
        counts.gold += 1
        counts.found += span in judged.found
        if span in judged.missed:
            counts.missed += 1
            row = (marking, label, form, msgspec.json.encode(here))
            table.execute("INSERT INTO forms VALUES (?,?,?,?,1) ON CONFLICT DO UPDATE SET n = n + 1", row)
            if free >= ENOUGH and marked <= HARDLY * free:
                familiarity.contradicted[label] = familiarity.contradicted.get(label, 0) + 1


def _in_train(forms: Forms, stored: StoredDoc, spans: Sequence[TokenSpan]) -> Iterator[tuple[dict[str, int], int]]:
    """Tell how often train marks the form of each span with each label, or with none (""); and how often it is free."""
    numbers = np.array([number for *_, number in spans], int)
    digests = forms.form_keys(stored, spans)
    every = np.arange(len(forms.labels))
    marked = forms.marked.of(forms.keys(np.repeat(digests, len(every)), np.tile(every, len(spans))))
    free = forms.free.of(forms.keys(digests, numbers))
    for counts, released, number in zip(
        marked.reshape(len(spans), len(every)), free.tolist(), numbers.tolist(), strict=True
    ):
        here = {forms.labels[other]: int(counts[other]) for other in np.flatnonzero(counts).tolist()}
        # What is free for the label includes what has another one; of texts that aren't complete for it, it doesn't.
        unmarked = released - sum(n for label, n in here.items() if label != forms.labels[number])
        yield here | ({"": unmarked} if unmarked > 0 else {}), released


def _marking(marked: int, free: int) -> Marking:
    if not marked and not free:
        return "never"
    return "variously" if free > NOW_AND_THEN * marked else "alike"
