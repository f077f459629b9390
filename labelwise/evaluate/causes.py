"""Why gold spans weren't found: what train has of their forms.

- unseen: the form isn't in the texts of train that are complete for the label. Annotate more texts.
- inconsistent: train marks it with another label there, or leaves it unmarked, more than now and then. Fix annotation.
- consistent: train marks it as test does. It is the pipeline that has to learn.

A span without token boundaries is none of these: no pipeline can find it.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import find_partitions, partitions_of
from labelwise.evaluate.predictions import PredictedDoc, read_predictions
from labelwise.evaluate.scores import CAUSES, Cause, Causes, MissedForm

NOW_AND_THEN = 0.1  # of the times that train marks a form as test does
MOST = 10  # forms of each cause that are listed


def find_causes(corpus: Path, split: Path, predictions: Path, labels: Sequence[str]) -> Causes:
    """Find the causes, in a pass over train and two over the split and its predictions.

    labels (Sequence[str]): all labels.
    RETURNS (Causes): nothing if the corpus has no train split.
    RAISES (InputError): a file isn't what it should be.
    """
    train = partitions_of(corpus, "train")
    if not train:
        return Causes()
    forms = Forms(labels)
    for stored, doc in _read(split, predictions):
        forms.look_for(stored, [span for span, _ in _missed(forms, stored, doc)])
    for file in train:
        for stored in read_stored_docs(file):
            forms.mark(stored)
            forms.release(stored)
    causes = Causes()
    with sqlite3.connect("") as table:  # a temporary file, as of `mistakes.Mistakes`
        table.execute(
            "CREATE TABLE forms (cause, label, form, train, n, PRIMARY KEY (cause, label, form)) WITHOUT ROWID"
        )
        for stored, doc in _read(split, predictions):
            missed = _missed(forms, stored, doc)
            in_train = _in_train(forms, stored, [span for span, _ in missed])
            for ((_, _, number), form), (here, free) in zip(missed, in_train, strict=True):
                label = labels[number]
                cause = _cause(here.get(label, 0), free)
                counts = causes.labels.setdefault(label, dict.fromkeys(CAUSES, 0))
                counts[cause] += 1
                row = (cause, label, form, msgspec.json.encode(here))
                table.execute("INSERT INTO forms VALUES (?,?,?,?,1) ON CONFLICT DO UPDATE SET n = n + 1", row)
        query = "SELECT form, label, n, train FROM forms WHERE cause = ? ORDER BY n DESC, form, label LIMIT ?"
        for cause in CAUSES:
            causes.forms[cause] = [
                MissedForm(form, label, count, msgspec.json.decode(train))
                for form, label, count, train in table.execute(query, (cause, MOST))
            ]
    return causes


def _read(split: Path, predictions: Path) -> Iterator[tuple[StoredDoc, PredictedDoc]]:
    """Yield the texts of a split, each with what was predicted; both are sorted by key."""
    stored = (doc for file in find_partitions(split) for doc in read_stored_docs(file))
    return zip(stored, read_predictions(predictions), strict=True)


def _missed(forms: Forms, stored: StoredDoc, doc: PredictedDoc) -> list[tuple[tuple[int, int, int], str]]:
    """List the gold spans that weren't found, in tokens, each with its form."""
    starts, ends = (array.tolist() for array in stored.offsets())
    found = doc.scored(doc.predicted)
    judged = doc.scored(doc.gold)
    missed = []
    for start, end, number in forms.spans(stored):
        span = (starts[start], ends[end - 1], forms.labels[number])
        if span in judged and span not in found:
            missed.append(((start, end, number), doc.form(span)))
    return missed


def _in_train(
    forms: Forms, stored: StoredDoc, spans: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[dict[str, int], int]]:
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


def _cause(marked: int, free: int) -> Cause:
    if not marked and not free:
        return "unseen"
    return "inconsistent" if free > NOW_AND_THEN * marked else "consistent"
