"""Docs of merged annotations, where the oracle doesn't look: what heads learn, and what goes into no entity."""

from pathlib import Path

import pytest
from spacy.training import Example

from labelwise.corpus.annotation import annotation_of, entities
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import Merged
from labelwise.merge.rules.policies import COVERAGE, Policies
from labelwise.merge.rules.to_doc import to_doc
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, TaskSpan
from spacy_per_label import BEGIN, UNIT, targets_of

LABELS = ["A", "B", "C"]
NLP = make_nlp("en", TokenizerRules())


def project(text, accepted, rejected=(), covered=LABELS, **policies):
    answer = Answer(DataSet("data", (Path("data.jsonl"),), tuple(LABELS)), 1, Task(text))
    merged = Merged(
        text,
        [answer],
        coverage=dict.fromkeys(covered, "complete"),
        accepted={key: [(answer, TaskSpan(*key))] for key in accepted},
        rejected={key: [(answer, TaskSpan(*key))] for key in rejected},
    )
    chosen = Policies(**policies)
    unmarked = "outside" if set(covered) == set(LABELS) else COVERAGE[chosen.coverage]("test")
    made = to_doc(NLP.make_doc, merged, LABELS, chosen, unmarked)
    return made._replace(doc=made.doc.to_doc(NLP.vocab))


@pytest.mark.parametrize(
    ("spans", "policy", "kept", "lost"),
    [
        ([(0, 7, "A"), (4, 7, "B")], "longest", [(0, 7, "A")], [("nested", (4, 7, "B"), (0, 7, "A"))]),
        ([(0, 7, "B"), (4, 7, "A")], "first", [(4, 7, "A")], [("nested", (0, 7, "B"), (4, 7, "A"))]),
        ([(0, 7, "A"), (0, 7, "B")], "longest", [(0, 7, "A")], [("same span", (0, 7, "B"), (0, 7, "A"))]),
        ([(0, 7, "B"), (4, 11, "A")], "longest", [(4, 11, "A")], [("crossing", (0, 7, "B"), (4, 11, "A"))]),
        ([(0, 3, "A"), (4, 7, "B")], "longest", [(0, 3, "A"), (4, 7, "B")], []),
    ],
)
def test_overlap(spans, policy, kept, lost):
    projection = project("big cat sat", spans, overlap=policy)
    assert entities(projection.doc) == set(kept)
    assert [(one.reason, one.lost.span, one.kept.span) for one in projection.lost] == lost
    # Nothing is lost in the other views.
    assert annotation_of(projection.doc).accepted == set(spans)
    assert {(s.start_char, s.end_char, s.label_) for s in projection.doc.spans["gold"]} == set(spans)


@pytest.mark.parametrize(
    ("spans", "alignment", "unlearnt"),
    [
        # another label's span may share tokens, or all of them
        ([(0, 7, "A"), (4, 7, "B"), (0, 7, "C")], "drop", []),
        ([(0, 7, "A"), (4, 7, "A")], "drop", ["A"]),
        ([(0, 7, "A"), (0, 3, "A"), (4, 7, "A"), (0, 7, "B"), (4, 7, "B")], "drop", ["A", "A", "B"]),
        # equally long: the first counts
        ([(4, 11, "A"), (0, 7, "A")], "drop", ["A"]),
        # also where both lose their place in the entities to a third
        ([(0, 11, "B"), (0, 7, "A"), (4, 7, "A")], "drop", ["A"]),
        # the middle one is overlapped, and then overlaps nothing itself
        ([(0, 11, "A"), (8, 17, "A"), (12, 17, "A")], "drop", ["A"]),
        # spans without token boundaries don't count, unless they are given some
        ([(18, 24, "A"), (18, 20, "A"), (20, 24, "A")], "drop", []),
        ([(18, 24, "A"), (18, 20, "A"), (20, 24, "A")], "expand", ["A", "A"]),
    ],
)
def test_spans_that_a_head_for_each_label_cannot_learn(spans, alignment, unlearnt):
    """Among those that aren't entities; it learns the others as well."""
    projection = project("big cat sat there 60degC at home", spans, alignment=alignment)
    aligned = [one for one in projection.lost if one.reason != "no token boundary"]
    assert sorted(one.lost.span[2] for one in aligned if not one.learnt) == unlearnt
    doc = projection.doc
    tags, *_ = targets_of(Example(NLP.make_doc(doc.text), doc), {label: n for n, label in enumerate(LABELS)})
    assert ((tags == BEGIN) | (tags == UNIT)).sum() == len(doc.spans["gold"]) - len(unlearnt)


def test_alignment_across_tokens():
    for policy, found in (("expand", "at 60degC"), ("contract", "at")):
        projection = project("at 60degC now", [(0, 5, "A"), (10, 13, "B")], alignment=policy)
        assert [ent.text for ent in projection.doc.ents] == [found, "now"]
        assert projection.realigned == ["A"]


def test_contracting_leaves_no_white_space_at_the_edges():
    projection = project("60degC  cat", [(2, 11, "A")], alignment="contract")
    assert [ent.text for ent in projection.doc.ents] == ["cat"]
    assert project("60degC  60degC", [(2, 10, "A")], alignment="contract").doc.ents == ()


def test_rejected_spans_are_where_spacy_looks_for_them():
    projection = project("big cat 60degC", [], [(4, 7, "A"), (8, 10, "A")])
    assert [span.text for span in projection.doc.spans["incorrect_spans"]] == ["cat"]
    assert projection.doc.ents == ()


@pytest.mark.parametrize(
    ("spans", "covered", "iob"),
    [
        # gold without token boundaries is missing, not outside
        ([(3, 5, "A"), (14, 21, "B")], LABELS, ["O", "", "O", "B", "I"]),
        # an entity keeps tokens that lost gold touches
        ([(0, 9, "B"), (3, 5, "A")], LABELS, ["B", "I", "O", "O", "O"]),
        ([(14, 21, "B")], ["A", "B"], ["", "", "", "B", "I"]),
    ],
)
def test_what_is_not_known_of_a_token_is_missing(spans, covered, iob):
    doc = project("at 60degC now big cat", spans, covered=covered).doc
    assert [token.ent_iob_ for token in doc] == iob
    assert annotation_of(doc).uncovered == ({} if covered == LABELS else {"C": "none"})
