from pathlib import Path

import pytest
from spacy.training import Example

from labelwise.common.errors import InputError
from labelwise.corpus.annotation import annotation_of, entities
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import Merged
from labelwise.merge.rules.policies import COVERAGE, Policies
from labelwise.merge.rules.to_doc import flatten, overlap_kind, to_doc
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
        ([(0, 7, "B"), (4, 11, "B")], "longest", [(0, 7, "B")], [("crossing", (4, 11, "B"), (0, 7, "B"))]),
        ([(0, 7, "B"), (4, 11, "A")], "longest", [(4, 11, "A")], [("crossing", (0, 7, "B"), (4, 11, "A"))]),
        ([(0, 3, "A"), (8, 11, "A"), (0, 7, "C")], "longest", [(0, 7, "C"), (8, 11, "A")], None),
        ([(0, 7, "A"), (4, 11, "A")], "longest", [(0, 7, "A")], None),
        ([(0, 7, "C"), (4, 11, "C")], "first", [(0, 7, "C")], None),
        ([(0, 3, "C"), (0, 7, "C")], "first", [(0, 7, "C")], None),
        ([(0, 3, "A"), (4, 7, "B")], "longest", [(0, 3, "A"), (4, 7, "B")], []),
    ],
)
def test_overlap(spans, policy, kept, lost):
    projection = project("big cat sat", spans, overlap=policy)
    assert entities(projection.doc) == set(kept)
    assert lost is None or [(c.reason, c.lost.span, c.kept.span) for c in projection.lost] == lost
    assert len(kept) + len(projection.lost) == len(spans)
    # Nothing is lost in the other views.
    assert annotation_of(projection.doc).accepted == set(spans)
    assert {(s.start_char, s.end_char, s.label_) for s in projection.doc.spans["gold"]} == set(spans)


@pytest.mark.parametrize(
    ("spans", "alignment", "unlearnt"),
    [
        # another label's span may share tokens, or all of them
        ([(0, 7, "A"), (4, 7, "B"), (0, 7, "C")], "drop", []),
        ([(0, 3, "A"), (4, 7, "A")], "drop", []),
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


def test_overlap_can_be_an_error():
    with pytest.raises(InputError, match=r"overlap in 'big cat'.*choose longest or first"):
        project("big cat", [(0, 7, "A"), (4, 7, "B")], overlap="error")


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ((0, 3, "A"), (0, 3, "B"), "same span"),
        ((0, 3, "A"), (0, 5, "A"), "nested"),
        ((0, 5, "A"), (1, 5, "A"), "nested"),
        ((0, 3, "A"), (1, 5, "A"), "crossing"),
    ],
)
def test_overlap_kind(one, other, kind):
    assert overlap_kind(one, other) == overlap_kind(other, one) == kind


@pytest.mark.parametrize(
    ("policy", "found"),
    [("drop", []), ("expand", ["60degC"]), ("contract", [])],
)
def test_alignment_inside_a_token(policy, found):
    projection = project("at 60degC", [(3, 5, "A")], alignment=policy)
    assert [ent.text for ent in projection.doc.ents] == found
    assert [c.reason for c in projection.lost] == [] if found else ["no token boundary"]
    assert annotation_of(projection.doc).accepted == {(3, 5, "A")}


def test_alignment_across_tokens():
    for policy, found in (("expand", "at 60degC"), ("contract", "at")):
        projection = project("at 60degC now", [(0, 5, "A"), (10, 13, "B")], alignment=policy)
        assert [ent.text for ent in projection.doc.ents] == [found, "now"]
        assert projection.realigned == ["A"]


def test_contracting_leaves_no_white_space_at_the_edges():
    projection = project("60degC  cat", [(2, 11, "A")], alignment="contract")
    assert [ent.text for ent in projection.doc.ents] == ["cat"]
    assert project("60degC  60degC", [(2, 10, "A")], alignment="contract").doc.ents == ()


def test_alignment_can_be_an_error():
    with pytest.raises(InputError, match=r"'60' \(A, 3 to 5\) isn't made of whole tokens: \['60degC'\]; extend"):
        project("at 60degC", [(3, 5, "A")], alignment="error")


def test_two_spans_that_expand_to_one_token():
    projection = project("60degC", [(0, 2, "A"), (2, 6, "B")], alignment="expand")
    assert [(ent.text, ent.label_) for ent in projection.doc.ents] == [("60degC", "B")]
    assert [c.reason for c in projection.lost] == ["crossing"]


def iob(doc) -> list[str]:
    return [token.ent_iob_ for token in doc]


def test_gold_without_boundaries_is_missing_not_outside():
    doc = project("at 60degC now big cat", [(3, 5, "A"), (14, 21, "B")]).doc
    assert iob(doc) == ["O", "", "O", "B", "I"]


def test_an_entity_keeps_tokens_that_lost_gold_touches():
    doc = project("big 60degC cat", [(0, 10, "B"), (4, 6, "A"), (6, 10, "A")]).doc
    assert iob(doc) == ["B", "I", "O"]


@pytest.mark.parametrize(
    ("policy", "expected"), [("by-label", ["B", "", ""]), ("drop", ["B", "", ""]), ("outside", ["B", "O", "O"])]
)
def test_coverage(policy, expected):
    doc = project("cat sat here", [(0, 3, "A")], covered=["A", "B"], coverage=policy).doc
    assert iob(doc) == expected
    assert annotation_of(doc).uncovered == {"C": "none"}


def test_rejected_spans_are_where_spacy_looks_for_them():
    projection = project("big cat 60degC", [], [(4, 7, "A"), (8, 10, "A")])
    assert [span.text for span in projection.doc.spans["incorrect_spans"]] == ["cat"]
    assert projection.doc.ents == ()


def test_flatten_leaves_documents_without_spans_alone():
    assert flatten({}, lambda key: key[:1]) == ([], [])
