"""Costs, sub-batches and batches: against all divisions there are, and what spacy-transformers makes of texts."""

import random
from collections import Counter
from contextlib import contextmanager
from itertools import combinations, pairwise

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import subdivide_batch

from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import make_nlp, read_rules
from labelwise.recognizer.wordpieces import wordpieces_of
from labelwise.train.batches import Batch, Cost, CostBatcher, batch_cost, wordpiece_cost
from labelwise.train.reader import read_docs
from tests.conftest import ROOT

NLP = spacy.blank("en")
WORD = NLP.make_doc("a")
SMALL = st.tuples(st.integers(1, 5), st.integers(1, 9))


def make_batch(costs: list[tuple[int, int]]) -> Batch:
    return Batch([Example(WORD, WORD) for _ in costs], [Cost(*cost) for cost in costs])


def make_examples(lengths: list[int]) -> list[Example]:
    """Texts of so many words, each with its number as its first word."""
    docs = [Doc(NLP.vocab, words=[str(number), *["w"] * (length - 1)]) for number, length in enumerate(lengths)]
    return [Example(doc, doc) for doc in docs]


def numbers(batch: list[Example]) -> list[int]:
    return [int(eg.predicted[0].text) for eg in batch]


def words(batch: list[Example]) -> int:
    return sum(len(eg.predicted) for eg in batch)


def padded(costs: list[tuple[int, int]]) -> int:
    return sum(rows for rows, _ in costs) * max(width for _, width in costs)


def divisions(costs: list[tuple[int, int]], most_sub_batches: int) -> list[list[int]]:
    """The costs of the sub_batches of each way to cut texts, sorted by width, into so many runs at most."""
    costs = sorted(costs, key=lambda cost: cost[1])
    found = []
    for count in range(1, min(most_sub_batches, len(costs)) + 1):
        for cuts in combinations(range(1, len(costs)), count - 1):
            places = [0, *cuts, len(costs)]
            found.append([padded(costs[start:end]) for start, end in pairwise(places)])
    return found


@pytest.mark.parametrize(
    ("costs", "cost"),
    [([], 0), ([(3, 5)], 15), ([(3, 5), (2, 10)], 50), ([(2, 10), (3, 5)], 50), ([(3, 1), (4, 1)], 7)],
)
def test_all_rows_cost_as_much_as_the_longest(costs, cost):
    assert batch_cost(Cost(*pair) for pair in costs) == cost
    assert make_batch(costs).cost == cost


@settings(max_examples=150, deadline=None)
@given(st.lists(SMALL, max_size=9), st.integers(1, 5), st.integers(0, 60))
def test_each_text_is_in_one_sub_batch_with_its_cost(costs, count, most):
    batch = make_batch(costs)
    sub_batches = batch.sub_batches(count, most)
    assert all(sub_batches)
    cost_of = {id(eg): cost for eg, cost in zip(batch, costs, strict=True)}
    assert [[cost_of[id(eg)] for eg in sub_batch] for sub_batch in sub_batches] == [
        sub_batch.costs for sub_batch in sub_batches
    ]
    assert Counter(id(eg) for sub_batch in sub_batches for eg in sub_batch) == Counter(map(id, batch))


@settings(max_examples=150, deadline=None)
@given(st.lists(SMALL, min_size=1, max_size=7), st.integers(1, 5))
def test_the_costliest_sub_batch_is_as_cheap_as_can_be(costs, count):
    sub_batches = make_batch(costs).sub_batches(count)
    assert len(sub_batches) <= count
    assert max(padded(sub_batch.costs) for sub_batch in sub_batches) == min(
        max(division) for division in divisions(costs, count)
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(SMALL, min_size=1, max_size=7), st.integers(1, 3), st.integers(45, 90))
def test_sub_batches_cost_no_more_than_they_may_and_are_no_more_than_need_be(costs, count, most):
    """The costliest text costs 45."""
    sub_batches = make_batch(costs).sub_batches(count, most)
    assert max(padded(sub_batch.costs) for sub_batch in sub_batches) <= most
    needed = min(len(division) for division in divisions(costs, 7) if max(division) <= most)
    assert len(sub_batches) <= max(count, needed)


@pytest.mark.parametrize(
    ("costs", "count"),
    [
        ([(5, 1), (5, 1), (5, 1), (100, 1)], 1),
        ([(5, 1), (5, 1), (5, 1), (100, 1)], 3),
        ([(1, 4), (1, 4), (1, 4), (1, 5), (3, 30)], 1),
    ],
)
def test_a_sub_batch_that_costs_more_is_of_a_single_text(costs, count):
    """Though one text is costlier than a sub_batch may be, the others are divided so that they fit."""
    sub_batches = make_batch(costs).sub_batches(count, most=10)
    assert [len(sub_batch) for sub_batch in sub_batches if padded(sub_batch.costs) > 10] == [1]


@pytest.mark.parametrize(
    ("lengths", "count", "sizes"),
    [
        ([7] * 8, 1, [8]),
        ([7] * 8, 2, [4, 4]),
        ([7] * 8, 3, [3, 3, 2]),
        ([7] * 8, 8, [1] * 8),
        ([7] * 2, 3, [1, 1]),
        ([], 3, []),
    ],
)
def test_equal_texts_make_equal_sub_batches(lengths, count, sizes):
    sub_batches = make_batch([(length, 1) for length in lengths]).sub_batches(count)
    assert [len(sub_batch) for sub_batch in sub_batches] == sizes


@pytest.mark.parametrize(
    ("lengths", "count", "spacys", "ours"),
    [
        # spaCy gives one sub_batch 60 % of the words: 20 30 | 40 50 | 60 200 | 300 300. Ours aren't sorted, as words
        # have no width: 300 20 | 60 30 200 40 | 300 | 50.
        ([300, 20, 60, 30, 200, 40, 300, 50], 4, 600, 330),
        ([100, 200, 300, 400, 500, 600, 700, 800], 2, 2600, 2100),
        ([5, 5], 3, 10, 5),
    ],
)
def test_the_costliest_sub_batch_has_fewer_words_than_spacys(lengths, count, spacys, ours):
    examples = make_examples(lengths)
    assert max(words(sub_batch) for sub_batch in subdivide_batch(examples, count)) == spacys
    sub_batches = Batch(examples, [Cost(length, 1) for length in lengths]).sub_batches(count)
    assert max(words(sub_batch) for sub_batch in sub_batches) == ours


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 3))
def test_the_costliest_sub_batch_is_never_costlier_than_spacys(data, count, each):
    """Of as many sub_batches: spaCy makes another one of what doesn't divide."""
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=count * each, max_size=count * each))
    examples = make_examples(lengths)
    for costs in ([(length, 1) for length in lengths], [(1, length) for length in lengths]):
        sub_batches = Batch(examples, [Cost(*cost) for cost in costs]).sub_batches(count)
        spacys = [[costs[number] for number in numbers(sub_batch)] for sub_batch in subdivide_batch(examples, count)]
        assert max(padded(sub_batch.costs) for sub_batch in sub_batches) <= max(map(padded, spacys))


def test_texts_of_similar_width_are_together():
    sub_batches = make_batch([(1, 100), (1, 10), (1, 100), (1, 10)]).sub_batches(2)
    assert sorted(sorted(cost.width for cost in sub_batch.costs) for sub_batch in sub_batches) == [[10, 10], [100, 100]]


LENGTHS = [random.Random(0).randint(1, 40) for _ in range(200)]  # of 4 windows of 16 batches of 60 words, or so


def test_batches_have_every_text_once_and_cost_no_more_than_their_size():
    batches = list(CostBatcher(60)(make_examples(LENGTHS)))
    assert sorted(number for batch in batches for number in numbers(batch)) == list(range(200))
    assert max(map(words, batches)) <= 60
    assert [batch.cost for batch in batches] == [words(batch) for batch in batches]
    # As full as can be, but for the last of each window.
    assert len(batches) <= sum(LENGTHS) / 40 + 1


LONG = [5, 5, 100, 5, 5, 11, 5, 10]  # two are longer than 10


def test_texts_that_are_longer_than_a_batch_are_not_lost():
    batches = CostBatcher(10)(make_examples(LONG))
    assert sorted(number for batch in batches for number in numbers(batch)) == list(range(8))


def test_texts_that_are_longer_than_a_batch_are_batches():
    batches = list(CostBatcher(10)(make_examples(LONG)))
    assert sorted(numbers(batch) for batch in batches if words(batch) > 10) == [[2], [5]]


def test_batches_are_shuffled_the_same_each_time():
    state = random.getstate()
    one = [numbers(batch) for batch in CostBatcher(60)(make_examples(LENGTHS))]
    assert random.getstate() == state
    random.seed(1)
    other = [numbers(batch) for batch in CostBatcher(60)(make_examples(LENGTHS))]
    random.setstate(state)
    assert one == other
    firsts = [batch[0] for batch in one]
    assert firsts != sorted(firsts)


def test_little_is_padded():
    """Short and long texts alternate; batches have one kind each, of what is held: 16 batches of 100, so 32 of each."""
    batcher = CostBatcher(100)
    batcher.cost = lambda doc: Cost(1, len(doc))
    batches = [[len(eg.predicted) for eg in batch] for batch in batcher(make_examples([1, 50] * 40))]
    assert Counter(map(tuple, batches)) == {(1,) * 32: 1, (1,) * 8: 1, (50, 50): 20}


def test_no_texts_make_no_batches():
    assert list(CostBatcher(10)([])) == []


def test_texts_are_used_within_the_block_that_they_were_read_in():
    blocks: list[list[int]] = []
    inside = False
    used_in = {}

    @contextmanager
    def zone():
        nonlocal inside
        assert not inside
        inside = True
        blocks.append([])
        yield
        inside = False

    def read():
        for number, eg in enumerate(make_examples(LENGTHS)):
            assert inside
            blocks[-1].append(number)
            yield eg

    for batch in CostBatcher(60)(read(), zone):
        assert inside
        used_in.update(dict.fromkeys(numbers(batch), len(blocks) - 1))
    assert not inside
    assert used_in == {number: block for block, read_there in enumerate(blocks) for number in read_there}
    # 16 batches' words are held, and what the last text has beyond that.
    full = [sum(LENGTHS[number] for number in block) for block in blocks if block][:-1]
    assert len(full) >= 3
    assert all(16 * 60 <= held < 16 * 60 + 40 for held in full)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "batcher size 0, device_size 0: give at least 1 and 0"),
        ({"size": 5, "device_size": -1}, "device_size -1: give"),
        ({"size": 5, "unit": "docs"}, "batcher unit 'docs': give words or wordpieces"),
    ],
)
def test_arguments_out_of_range_are_errors(arguments, message):
    with pytest.raises(InputError, match=message):
        CostBatcher(**arguments)


def test_wordpieces_need_a_transformer():
    batcher = CostBatcher(10, "wordpieces")
    with pytest.raises(InputError, match=r"batches of wordpieces need the transformer: train with the command"):
        next(batcher(make_examples([1])))
    with pytest.raises(InputError, match="need a transformer, which the pipeline lacks; count words"):
        batcher.bind(wordpieces_of(spacy.blank("en")))


def test_words_need_none():
    batcher = CostBatcher(10, "words")
    batcher.bind(wordpieces_of(spacy.blank("en")))
    assert [len(batch) for batch in batcher(make_examples([5, 5]))] == [2]


@pytest.fixture(scope="module")
def bert(tiny_bert):
    """The project's tokenizer, and a transformer whose wordpieces are characters."""
    pytest.importorskip("spacy_transformers")
    nlp = make_nlp("en", read_rules(ROOT / "project.yml"))
    model = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(tiny_bert),
        "get_spans": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 128, "stride": 96},
        "tokenizer_config": {"use_fast": True, "model_max_length": 512},
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    return nlp


def true_shape(nlp, docs: list[Doc]) -> tuple[int, int]:
    """The number of spans that the transformer is given, and the wordpieces that each is padded to."""
    return nlp.get_pipe("transformer").predict(docs).wordpieces.input_ids.shape


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("ab", (1, 4)),  # and what stands at both ends
        ("Ann met Bob.", (1, 12)),
        ("  a \n b ", (1, 4)),
        (" ".join("a" * 128), (1, 130)),
        (" ".join("a" * 200), (2, 130)),
        (" ".join("a" * 225), (3, 130)),
        (" ".join([*"a" * 128, *["bb"] * 72]), (2, 178)),  # 128 words; 32 of them again, and 72 of two wordpieces
        (" ".join(["a" * 90] * 10), (1, 512)),
    ],
    ids=["word", "sentence", "spaces", "window", "two", "three", "longest second", "capped"],
)
def test_wordpieces_are_those_of_the_longest_span(bert, text, cost):
    doc = bert.make_doc(text)
    assert true_shape(bert, [doc]) == cost
    assert wordpiece_cost(Example(doc, doc), wordpieces_of(bert)) == cost


def test_a_batch_costs_what_its_spans_are_padded_to(bert, demo_corpus):
    docs = [bert.make_doc(doc.text) for split in ("dev", "test") for doc in read_docs(demo_corpus / split, bert)]
    wordpieces = wordpieces_of(bert)
    costs = [wordpiece_cost(Example(doc, doc), wordpieces) for doc in docs]
    rows, width = true_shape(bert, docs)
    assert batch_cost(costs) == rows * width
    assert costs == [true_shape(bert, [doc]) for doc in docs]


def test_a_bound_batcher_counts_wordpieces(bert):
    batcher = CostBatcher(12, "wordpieces")
    batcher.bind(wordpieces_of(bert))
    docs = [bert.make_doc(text) for text in ("ab", "cd", "abcdefghij", "ef")]  # of 4, 4, 12 and 4 wordpieces
    batches = [[eg.predicted.text for eg in batch] for batch in batcher(Example(doc, doc) for doc in docs)]
    assert sorted(batches) == [["ab", "cd", "ef"], ["abcdefghij"]]
