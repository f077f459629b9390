"""Batches: their places in the training, shares of ranks, and parts that the device is given at a time."""

from itertools import islice, pairwise

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.training import Example

from labelwise.errors import InputError
from labelwise.train.batches import example_of, read_batches, share_of, sub_batches

NLP = spacy.blank("en")
LENGTHS = st.lists(st.integers(1, 30), max_size=12)


def make_texts(lengths: list[int]) -> list[str]:
    return [chr(ord("a") + number) * length for number, length in enumerate(lengths)]


@settings(max_examples=150, deadline=None)
@given(LENGTHS, st.integers(1, 4))
def test_shares_have_every_text_once_and_about_as_many_words(lengths, ranks):
    texts = make_texts(lengths)
    shares = [share_of(texts, rank, ranks) for rank in range(ranks)]
    assert sorted(text for share in shares for text in share) == sorted(texts)
    words = [sum(map(len, share)) for share in shares]
    assert max(words) - min(words) <= max(lengths, default=0)


@settings(max_examples=150, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.integers(0, 60))
def test_parts_have_every_text_once_and_no_more_words_than_they_may(lengths, parts, most):
    texts = make_texts(lengths)
    found = sub_batches(texts, parts, most)
    assert [text for part in found for text in part] == texts
    limit = min(most or 10**9, -(-sum(lengths) // parts))
    assert all(sum(map(len, part)) <= limit for part in found if len(part) > 1)
    assert all(sum(map(len, [*one, other[0]])) > limit for one, other in pairwise(found)), "no cut without need"


def pairs(items: list[str]) -> list[list[str]]:
    return [items[place : place + 2] for place in range(0, len(items), 2)]


def test_batches_are_those_of_each_epoch_from_any_place_on():
    def corpus(nlp):
        return ["one", "two", "three"]

    whole = [(0, 1, 2), (0, 2, 1), (1, 1, 2), (1, 2, 1)]
    for skip in range(4):
        start, done = divmod(skip, 2)
        found = read_batches(NLP, corpus, pairs, 2, start, done)
        assert [(epoch, number, len(texts)) for epoch, number, texts in found] == whole[skip:]
    assert len(list(islice(read_batches(NLP, corpus, pairs, -1), 9))) == 9
    assert next(read_batches(NLP, corpus, pairs, 1)).words == 6
    with pytest.raises(InputError, match="the corpus is empty"):
        next(read_batches(NLP, lambda nlp: [], pairs, 0))


def test_another_readers_examples_are_copied():
    """Its epochs may be held, and annotating components write into the predicted Docs."""
    held = Example(NLP.make_doc("a"), NLP.make_doc("a"))
    made = example_of(held)
    assert made.predicted is not held.predicted
    assert made.reference is held.reference
