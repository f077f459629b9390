"""MistakeExamples of mistakes: which are chosen, and what is shown around them."""

from collections import Counter

import pytest

from labelwise.evaluate.mistakes import KINDS, SpanPair, pairs_of, surface_of
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.report.mistake_examples import (
    MOST_ALIKE,
    MistakeExamples,
    mark_up,
    window_bounds,
    window_of,
)
from tests.report.report_inputs import make_docs


def doc_of(text: str, gold: list, predicted: list, **other) -> PredictedDoc:
    return PredictedDoc("k", text, predicted=predicted, gold=gold, entities=gold, **other)


def choose(docs, most=10):
    examples = MistakeExamples(most)
    for doc in docs:
        examples.add(doc)
    return examples


def test_some_are_chosen_for_each_kind_and_label_and_all_are_counted():
    docs = make_docs()
    expected = Counter()
    for doc in docs:
        for pair in pairs_of(doc):
            if pair.kind:
                expected.update({(pair.kind, span[2]) for span in pair if span})
    examples = choose(docs, most=4)
    windows = [example.window for example in examples.chosen()]
    chosen = Counter((window.kind, label) for window in windows for label in {*window.pair.labels} - {""})
    assert all(chosen[place] >= min(n, 4) for place, n in expected.items())
    assert chosen.total() < expected.total()
    assert {kind for kind, _ in chosen} == set(KINDS)
    assert examples.patterns.total() == sum(1 for doc in docs for pair in pairs_of(doc) if pair.kind)


def test_each_pattern_and_each_frequent_mistake_has_examples():
    """Even if there is one example of each kind and label."""
    docs = make_docs()
    patterns = Counter((pair.kind, *pair.labels) for doc in docs for pair in pairs_of(doc) if pair.kind)
    surfaces = Counter(surface_of(doc, pair) for doc in docs for pair in pairs_of(doc) if pair.kind)
    rare = [surface for surface, n in surfaces.most_common()[-5:]]
    examples = MistakeExamples(1, rare)
    for doc in docs:
        examples.add(doc)
    windows = [example.window for example in examples.chosen()]
    chosen = Counter(window.pattern for window in windows)
    assert examples.patterns == patterns
    assert all(chosen[pattern] >= min(n, MOST_ALIKE) for pattern, n in patterns.items())
    assert set(rare) <= {surface_of(doc_of(window.text, [], []), window.pair) for window in windows}


def test_the_order_of_docs_doesnt_matter():
    docs = make_docs()
    assert choose(docs, 3).chosen() == choose(docs[::-1], 3).chosen()


def test_more_docs_replace_examples_but_never_bring_back_one_that_lost():
    docs = make_docs()
    before = {(example.window.key, example.window.pair) for example in choose(docs[:30], 3).chosen()}
    after = {(example.window.key, example.window.pair) for example in choose(docs, 3).chosen()}
    first = {doc.key for doc in docs[:30]}
    assert {place for place in after if place[0] in first} <= before
    assert after != before


def test_what_cant_be_told_right_or_wrong_is_no_example():
    doc = doc_of("Paris", [], [(0, 5, "PLACE")], uncovered={"PLACE": "none"})
    assert choose([doc]).chosen() == []


@pytest.mark.parametrize(
    ("text", "span", "shown"),
    [
        ("all of it", (0, 3), "all of it"),
        ("aaaa " * 20 + "HERE" + " bbbb" * 20, (100, 104), "aaaa " * 12 + "HERE" + " bbbb" * 12),
        ("before " * 20 + "HERE" + " behind" * 20, (140, 144), "before " * 8 + "HERE" + " behind" * 8),
        ("a" * 100 + "HERE" + "b" * 100, (100, 104), "a" * 60 + "HERE" + "b" * 60),
        ("x" * 1000, (0, 1000), "x" * 660),
        # A letter stays with its marks: "ki" in Hindi is two characters, of which the second one is a mark.
        ("कि" * 50 + "आज" + "क" + "कि" * 50, (101, 102), "कि" * 29 + "आज" + "क" + "कि" * 30),
    ],
)
def test_windows_end_between_words_if_they_can(text, span, shown):
    start, end = window_bounds(text, SpanPair((*span, "L"), None))
    assert text[start:end].strip() == shown.strip()


def test_a_window_is_one_line_with_offsets_of_its_own():
    text = "word " * 30 + "in\nNew\tYork, " + "word " * 30
    start = text.index("New")
    doc = doc_of(text, [(start, start + 8, "PLACE")], [(start, start + 3, "PLACE")])
    window = window_of(doc, pairs_of(doc)[0], "wrong boundaries")
    assert "in New York," in window.text
    (gold,), (predicted,) = window.gold, window.predicted
    assert (window.text[slice(*gold[:2])], window.text[slice(*predicted[:2])]) == ("New York", "New")
    assert window.pair == SpanPair(gold, predicted)


def test_spans_that_overlap_what_is_shown_are_counted():
    text = "The king of France"
    gold = [(0, 18, "PERSON"), (12, 18, "PLACE"), (4, 8, "ROLE")]
    doc = doc_of(text, gold, [(0, 18, "PERSON"), (4, 8, "ROLE")])
    window = window_of(doc, SpanPair((12, 18, "PLACE"), None), "missed")
    assert window.gold == [(4, 8, "ROLE"), (12, 18, "PLACE")], "the mistake comes first, then what is longest"
    assert window.predicted == [(0, 18, "PERSON")]
    assert window.hidden == 2


def test_markup_is_escaped_and_the_mistake_is_marked():
    text = "</mark> {text} & <b>"
    html = mark_up(text, [(0, 7, "<i>"), (8, 14, "{label}")], (0, 7, "<i>"))
    assert '<mark class="ent focus">&lt;/mark&gt;<span class="label">&lt;i&gt;</span></mark>' in html
    assert '<mark class="ent">{text}<span class="label">{label}</span></mark> &amp; &lt;b&gt;' in html
