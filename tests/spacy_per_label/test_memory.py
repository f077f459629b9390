"""Memory of many labels on a long text, in arrays of logits."""

import tracemalloc
from collections.abc import Callable

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_per_label import PerLabelRecognizer

WORDS, LABELS = 4_000, 200
ARRAY = WORDS * LABELS * 5 * 4  # bytes of the logits of five tags, in single precision: 16 MB


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def pipe() -> PerLabelRecognizer:
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("per_label", config={"model": {"tok2vec": {"width": 32, "depth": 1}}})
    labels = [f"LABEL{number}" for number in range(LABELS)]
    pipe.initialize(lambda: [Example(nlp.make_doc("a"), nlp.make_doc("a"))], nlp=nlp, labels=labels)
    pipe.model.get_ref("output").get_param("b")[::5] = 2  # of outside
    return pipe


def make_doc(pipe: PerLabelRecognizer) -> Doc:
    return Doc(pipe.vocab, words=[f"word{number % 97}" for number in range(WORDS)])


@pytest.mark.guarantee("memory")
def test_an_update_holds_six_arrays(pipe):
    """The docs' logits, all layers below, the logits in one array, their logarithms, which become the gradient."""
    reference = make_doc(pipe)
    reference.set_ents([], default="outside")
    starts = range(0, WORDS, 10)
    reference.spans["gold"] = [Span(reference, n, n + 2, label=pipe.labels[n // 10 % LABELS]) for n in starts]
    eg = Example(make_doc(pipe), reference)
    optimizer = spacy.blank("en").create_optimizer()
    pipe.update([eg], sgd=optimizer)  # the optimizer's averages, and words that are new, aren't counted
    peak = peak_of(lambda: pipe.update([eg], sgd=optimizer))
    assert ARRAY < peak < 6 * ARRAY


@pytest.mark.guarantee("memory")
def test_a_prediction_holds_four_arrays(pipe):
    """The logits in one array, their logarithms, and their powers; the rest is for decoding."""
    pipe(make_doc(pipe))
    doc = make_doc(pipe)
    peak = peak_of(lambda: pipe(doc))
    assert 100 < len(doc.spans["labels"]) < WORDS
    assert ARRAY < peak < 4 * ARRAY
