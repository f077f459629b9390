"""How the reader takes unmarked tokens where a text isn't complete for all labels."""

import pytest
import spacy

from labelwise.corpus.annotation import Annotation, annotate
from labelwise.train.reader import without_missing
from tests.train.stored import store

NLP = spacy.blank("en")


@pytest.mark.parametrize(
    ("gold", "iob"),
    [
        ([], [2, 2, 3, 1, 2, 2]),
        ([(12, 24)], [2, 2, 3, 1, 2, 2]),
        ([(0, 5)], [0, 2, 3, 1, 2, 2]),
        ([(7, 8)], [0, 2, 3, 1, 2, 2]),
        ([(8, 9)], [2, 2, 3, 1, 2, 2]),  # the space between two tokens
        ([(9, 10)], [2, 0, 3, 1, 2, 2]),
        ([(7, 10)], [0, 0, 3, 1, 2, 2]),
        ([(10, 14)], [2, 0, 3, 1, 2, 2]),
        ([(28, 30), (1, 2)], [0, 2, 3, 1, 0, 0]),
        ([(29, 30)], [2, 2, 3, 1, 2, 2]),  # has token boundaries, but lost against another span
    ],
)
def test_unmarked_tokens_are_outside_unless_gold_without_boundaries_touches_them(gold, iob):
    doc = NLP.make_doc("Smithers of Mercury Labs came.")
    doc.set_ents([doc.char_span(12, 24, "COMPANY")], default="missing")
    annotate(doc, Annotation([(*span, "A", ["a set"]) for span in gold], [], {"B": "none"}))
    before = store(doc)
    after = without_missing(before)
    assert [token.ent_iob for token in after.to_doc(NLP.vocab)] == iob
    assert [(ent.text, ent.label_) for ent in after.to_doc(NLP.vocab).ents] == [("Mercury Labs", "COMPANY")]
    assert before.iob.tolist() == [0, 0, 3, 1, 0, 0]
