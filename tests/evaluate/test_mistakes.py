"""Which gold span was taken for what: a table of cases, and properties of any spans."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwise.evaluate.mistakes import KINDS, NOTHING, Mistakes, overlapping, pair_spans, pairs_of
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import FrequentMistake


def make_doc(text: str, predicted=(), gold=(), **fields) -> PredictedDoc:
    return PredictedDoc(key="00", text=text, predicted=list(predicted), gold=list(gold), entities=[], **fields)


def count(*docs: PredictedDoc) -> Mistakes:
    mistakes = Mistakes()
    for doc in docs:
        mistakes.add(doc)
    return mistakes


A, B = (10, 20, "A"), (10, 20, "B")


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ([], [], []),
        ([A], [A], [(A, A, None)]),
        ([A], [], [(A, None, "missed")]),
        ([], [A], [(None, A, "spurious")]),
        ([A], [B], [(A, B, "wrong label")]),
        ([A], [(12, 20, "A")], [(A, (12, 20, "A"), "wrong boundaries")]),
        ([A], [(12, 25, "B")], [(A, (12, 25, "B"), "wrong label and boundaries")]),
        # Spans that touch don't overlap; one shared character is enough.
        ([A], [(20, 25, "A")], [(A, None, "missed"), (None, (20, 25, "A"), "spurious")]),
        ([A], [(5, 10, "A")], [(None, (5, 10, "A"), "spurious"), (A, None, "missed")]),
        ([A], [(19, 25, "A")], [(A, (19, 25, "A"), "wrong boundaries")]),
        # What is right is taken first, though another span shares as much.
        ([A, (5, 25, "A")], [A], [((5, 25, "A"), None, "missed"), (A, A, None)]),
        # Two labels on one span: the right one isn't taken for the other.
        ([A, B], [B], [(A, None, "missed"), (B, B, None)]),
        # The same span with another label is before an overlap with the same one.
        ([A, (18, 30, "B")], [B], [(A, B, "wrong label"), ((18, 30, "B"), None, "missed")]),
        # An overlap with the same label is before a larger one with another.
        (
            [(0, 10, "A"), (11, 30, "B")],
            [(9, 28, "A")],
            [((0, 10, "A"), (9, 28, "A"), "wrong boundaries"), ((11, 30, "B"), None, "missed")],
        ),
        # The span that shares the most characters is first.
        (
            [(0, 10, "A"), (10, 30, "A")],
            [(8, 20, "A")],
            [((0, 10, "A"), None, "missed"), ((10, 30, "A"), (8, 20, "A"), "wrong boundaries")],
        ),
        # Of equal ones, the first in the text.
        (
            [(0, 10, "A"), (10, 20, "A")],
            [(5, 15, "A")],
            [((0, 10, "A"), (5, 15, "A"), "wrong boundaries"), ((10, 20, "A"), None, "missed")],
        ),
        # One gold span that was cut in two has one partner.
        (
            [(0, 10, "A")],
            [(0, 3, "A"), (4, 10, "A")],
            [(None, (0, 3, "A"), "spurious"), ((0, 10, "A"), (4, 10, "A"), "wrong boundaries")],
        ),
        # A chain: each gets the partner that is left.
        (
            [(0, 10, "A"), (12, 20, "A")],
            [(6, 15, "A"), (16, 30, "B")],
            [
                ((0, 10, "A"), (6, 15, "A"), "wrong boundaries"),
                ((12, 20, "A"), (16, 30, "B"), "wrong label and boundaries"),
            ],
        ),
    ],
)
def test_pairs(gold, predicted, expected):
    pairs = pair_spans(gold, predicted)
    assert [(pair.gold, pair.predicted, pair.kind) for pair in pairs] == sorted(
        expected, key=lambda pair: (pair[0] or pair[1], pair[1] or pair[0])
    )
    assert pair_spans(reversed(gold), reversed(predicted)) == pairs


SPANS = st.sets(
    st.tuples(st.integers(0, 25), st.integers(1, 8), st.sampled_from("ABC")).map(lambda s: (s[0], s[0] + s[1], s[2])),
    max_size=10,
)


@given(SPANS, SPANS)
def test_overlapping_finds_what_a_comparison_of_all_finds(gold, predicted):
    """Also where both are nested: the more general case."""
    expected = {(one, other) for one in gold for other in predicted if max(one[0], other[0]) < min(one[1], other[1])}
    found = list(overlapping(sorted(gold), sorted(predicted)))
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(SPANS, SPANS)
def test_every_span_is_in_one_pair(gold, predicted):
    pairs = pair_spans(gold, predicted)
    assert sorted(pair.gold for pair in pairs if pair.gold) == sorted(gold)
    assert sorted(pair.predicted for pair in pairs if pair.predicted) == sorted(predicted)
    assert {pair.gold for pair in pairs if pair.kind is None} == gold & predicted
    # No two that are left over overlap: they would have been paired.
    missed = [pair.gold for pair in pairs if pair.kind == "missed"]
    spurious = [pair.predicted for pair in pairs if pair.kind == "spurious"]
    assert not any(max(one[0], other[0]) < min(one[1], other[1]) for one in missed for other in spurious)
    for pair in pairs:
        if pair.gold and pair.predicted:
            assert max(pair.gold[0], pair.predicted[0]) < min(pair.gold[1], pair.predicted[1])
            same = (pair.gold[:2] == pair.predicted[:2], pair.gold[2] == pair.predicted[2])
            assert (
                pair.kind
                == {
                    (True, True): None,
                    (True, False): "wrong label",
                    (False, True): "wrong boundaries",
                    (False, False): "wrong label and boundaries",
                }[same]
            )


DOCS = st.lists(
    st.builds(
        lambda predicted, gold, rejected, uncovered: make_doc(
            "ab \n" * 10, sorted(predicted), sorted(gold), rejected=sorted(rejected - gold), uncovered=uncovered
        ),
        SPANS,
        SPANS,
        SPANS,
        st.dictionaries(st.sampled_from("ABC"), st.sampled_from(["partial", "none"]), max_size=2),
    ),
    max_size=4,
)


@settings(max_examples=50, deadline=None)
@given(DOCS)
def test_the_margins_of_the_confusion_are_the_supports(docs):
    """Each gold span is in its label's row, each prediction in its label's column, what is right on the diagonal."""
    confusion = count(*docs).confusion
    gold = Counter(label for doc in docs for *_, label in doc.scored(doc.gold))
    predicted = Counter(label for doc in docs for *_, label in doc.scored(doc.predicted))
    right = Counter(label for doc in docs for *_, label in doc.scored(doc.gold) & doc.scored(doc.predicted))
    assert {label: row.total() for label, row in confusion.items() if label != NOTHING} == gold
    assert sum(confusion.values(), Counter()) - Counter({NOTHING: 10**9}) == predicted
    for label in "ABC":
        # On the diagonal are spans with wrong boundaries, too.
        assert confusion.get(label, Counter())[label] >= right[label]
    assert NOTHING not in confusion.get(NOTHING, {})


@settings(max_examples=50, deadline=None)
@given(DOCS)
def test_forms_are_counted_as_a_counter_does(docs):
    expected: Counter = Counter()
    for doc in docs:
        for pair in pairs_of(doc):
            sides = [
                ("", "") if span is None else (" ".join(doc.text[span[0] : span[1]].split()), span[2]) for span in pair
            ]
            if pair.gold != pair.predicted:
                expected[(pair.kind, *sides[0], *sides[1])] += 1
    found = {
        (kind, form.gold, form.gold_label, form.predicted, form.predicted_label): form.count
        for kind, forms in count(*docs).frequent(10**6).items()
        for form in forms
    }
    assert found == expected


def test_a_label_that_is_not_covered_makes_no_mistakes():
    doc = make_doc("big cat sat", [(0, 3, "A"), (4, 7, "B")], [(8, 11, "B")], uncovered={"A": "none"})
    assert count(doc).confusion == {"B": {NOTHING: 1}, NOTHING: {"B": 1}}


def test_a_judged_span_makes_a_mistake():
    """Of a partly covered label: the accepted span that is missed, the rejected one that is predicted; no other."""
    doc = make_doc(
        "big cat sat on",
        [(0, 3, "A"), (12, 14, "A")],
        [(8, 11, "A")],
        rejected=[(0, 3, "A"), (4, 7, "A")],
        uncovered={"A": "partial"},
    )
    mistakes = count(doc)
    assert mistakes.confusion == {"A": {NOTHING: 1}, NOTHING: {"A": 1}}
    assert [form.predicted for form in mistakes.frequent(9)["spurious"]] == ["big"]


@pytest.mark.parametrize(
    ("quoted", "form"),
    [
        ("big cat", "big cat"),
        ("big \n\t cat", "big cat"),
        ("big\r\ncat", "big cat"),
        ("big\xa0cat\u2003x", "big cat x"),
        ("it's", "it's"),
        ('"quoted" \\; DROP TABLE forms; --', '"quoted" \\; DROP TABLE forms; --'),
        ("%_?", "%_?"),
        ("e\u0301 é", "e\u0301 é"),  # Not normalized
        ("😀👨‍👩‍👧", "😀👨‍👩‍👧"),
        ("a\x00b", "a\x00b"),
        ("007", "007"),  # no number
        ("1.0", "1.0"),
    ],
)
def test_surface_forms(quoted, form):
    doc = make_doc(f"x {quoted} y", [(2, 2 + len(quoted), "A")])
    expected = FrequentMistake(gold="", gold_label="", predicted=form, predicted_label="A", count=2)
    assert count(doc, doc).frequent(9)["spurious"] == [expected]


def test_forms_that_differ_in_white_space_alone_are_one():
    docs = [make_doc(text, [], [(0, len(text), "A")]) for text in ("big cat", "big  cat", "big\ncat", "Big cat")]
    assert [(form.gold, form.count) for form in count(*docs).frequent(9)["missed"]] == [
        ("big cat", 3),
        ("Big cat", 1),
    ]


def test_both_sides_of_a_mistake_are_given():
    [form] = count(make_doc("the big cat", [(4, 11, "B")], [(8, 11, "A")])).frequent(1)["wrong label and boundaries"]
    assert form == FrequentMistake("cat", "A", "big cat", "B", 1)


def test_the_most_frequent_are_first_and_ties_in_alphabetical_order():
    text = "cat ant bee Zoo éa"
    words = {word: (text.index(word), text.index(word) + len(word)) for word in text.split()}

    def missed(word: str, label: str = "A") -> PredictedDoc:
        return make_doc(text, [], [(*words[word], label)])

    docs = [missed("cat"), missed("bee"), *[missed("ant")] * 3, missed("Zoo"), missed("éa"), missed("cat", "B")]
    docs += [missed("bee")]
    found = [(form.gold, form.gold_label, form.count) for form in count(*docs).frequent(99)["missed"]]
    rest = [("Zoo", "A", 1), ("cat", "A", 1), ("cat", "B", 1), ("éa", "A", 1)]
    assert found == [("ant", "A", 3), ("bee", "A", 2), *rest]
    assert count(*reversed(docs)).frequent(99) == count(*docs).frequent(99)


@pytest.mark.parametrize("most", [0, 1, 2, 3, 9])
def test_so_many_of_each_kind_are_listed(most):
    text = "a b c d e f"
    doc = make_doc(
        text,
        predicted=[(0, 1, "A"), (2, 3, "A"), (4, 5, "A"), (8, 10, "A")],
        gold=[(0, 1, "B"), (6, 7, "A"), (8, 9, "A")],
    )
    found = {kind: len(forms) for kind, forms in count(doc).frequent(most).items()}
    available = {"spurious": 2, "missed": 1, "wrong label": 1, "wrong boundaries": 1, "wrong label and boundaries": 0}
    assert found == {kind: min(n, most) for kind, n in available.items()}
    assert list(found) == list(KINDS)
