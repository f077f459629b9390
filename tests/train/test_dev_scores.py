"""Evaluation in batches, against spaCy's own in one go."""

import random
from contextlib import contextmanager

import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example

from labelwise.corpus.annotation import Annotation, annotate
from labelwise.errors import InputError
from labelwise.train import dev_scores
from labelwise.train.dev_scores import EntityCounts, count_entities, weighted_score
from labelwise.train.reader import read_docs

NAMES = ("ents_p", "ents_r", "ents_f", "ents_per_type")


def scores_of(counts: EntityCounts) -> dict:
    """Those that spaCy computes, too; the macro F1 is the mean of the labels'."""
    scores = counts.scores()
    macro, by_label = scores.pop("ents_macro_f"), scores["ents_per_type"]
    assert macro == (sum(one["f"] for one in by_label.values()) / len(by_label) if by_label else None)
    return scores


@pytest.fixture(scope="module")
def nlp(demo_corpus):
    """A pipeline that is right about some entities of the dev set, wrong about others; its tokenizer is spaCy's own."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    found = sorted({(ent.text, ent.label_) for doc in read_docs(demo_corpus / "dev", nlp) for ent in doc.ents})
    labels = sorted({label for _, label in found})
    patterns = [{"label": label, "pattern": text} for text, label in found[::2]]
    patterns += [{"label": labels[0], "pattern": text} for text, label in found[1::6] if label != labels[0]]
    ruler.add_patterns(
        [
            *patterns,
            {"label": labels[-1], "pattern": "of"},
            {"label": "ONLY_PREDICTED", "pattern": "at"},
            {"label": "UNSCORED", "pattern": "nobody"},
        ]
    )
    return nlp


def make_examples(nlp, demo_corpus) -> list[Example]:
    """The dev set, half of it with some missing values, and a text without any annotation."""
    docs = list(read_docs(demo_corpus / "dev", nlp))
    for doc in docs[::2]:
        doc.set_ents(list(doc.ents)[1:], missing=[*doc.ents[:1], doc[-9:-6]], default="unmodified")
    docs.append(nlp.make_doc("nobody looked at this"))
    return [Example(nlp.make_doc(doc.text), doc) for doc in docs]


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
@pytest.mark.parametrize("words", [1, 150])
def test_scores_are_spacys_to_the_last_digit(nlp, demo_corpus, monkeypatch, words, batch_size):
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", words)
    monkeypatch.setattr(nlp, "batch_size", batch_size)
    expected = nlp.evaluate(make_examples(nlp, demo_corpus))
    scores = scores_of(count_entities(nlp, iter(make_examples(nlp, demo_corpus))))
    assert scores == {name: expected[name] for name in NAMES}
    # There is something to get wrong: other tokens, hits, misses, several labels, and one that no gold has.
    examples = make_examples(nlp, demo_corpus)
    assert any(len(eg.predicted) != len(eg.reference) for eg in examples)
    assert 0 < scores["ents_p"] < 1
    assert 0 < scores["ents_r"] < 1
    assert len(scores["ents_per_type"]) == 5
    assert scores["ents_per_type"]["ONLY_PREDICTED"] == {"p": 0.0, "r": 0.0, "f": 0.0}


def random_doc(rng: random.Random, text: str) -> Doc:
    """A Doc of some tokenization of the text, with entities of two labels and missing values, or without annotation."""
    words, spaces = [], []
    for word in text.split():
        cut = rng.choice([0, 0, 1, 2])
        words += [word[:cut], word[cut:]] if cut else [word]
        spaces += [False, True] if cut else [True]
    doc = Doc(VOCAB, words=words, spaces=spaces)
    if rng.random() < 0.1:
        return doc
    ents, missing, place = [], [], 0
    while place < len(doc):
        end = min(len(doc), place + rng.randint(1, 2))
        kind = rng.random()
        ents += [Span(doc, place, end, rng.choice("AB"))] if kind < 0.5 else []
        missing += [doc[place:end]] if kind > 0.9 else []
        place = end
    doc.set_ents(ents, missing=missing)
    return doc


VOCAB = spacy.blank("en").vocab


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_any_docs_are_spacys(seed):
    rng = random.Random(seed)
    pairs = [(random_doc(rng, text), random_doc(rng, text)) for text in ["abc def ghi jkl mno"] * 40]
    counts = EntityCounts()
    for pair in pairs:
        counts.add(Example(*pair))
    expected = get_ner_prf([Example(*pair) for pair in pairs])
    assert 0 < expected["ents_f"] < 1
    assert scores_of(counts) == expected


@pytest.mark.parametrize("annotated", [True, False])
def test_nothing_to_score_is_none(annotated):
    doc = Doc(VOCAB, words=["a"])
    if annotated:
        doc.set_ents([], default="outside")
    counts = EntityCounts()
    counts.add(Example(Doc(VOCAB, words=["a"]), doc))
    assert scores_of(counts) == dict.fromkeys(NAMES) == get_ner_prf([Example(Doc(VOCAB, words=["a"]), doc)])
    assert scores_of(EntityCounts()) == dict.fromkeys(NAMES)


class Counted(Example):
    """An Example that is counted as long as it lives."""

    alive = most = 0

    def __init__(self, *docs: Doc) -> None:
        super().__init__(*docs)
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def __del__(self) -> None:
        Counted.alive -= 1


@pytest.mark.parametrize(("words", "batch_size"), [(10, 1000), (10**6, 10)])
def test_one_batch_is_held_at_a_time(monkeypatch, words, batch_size):
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", words)
    monkeypatch.setattr(Counted, "most", 0)
    nlp = spacy.blank("en")
    nlp.batch_size = batch_size
    examples = (Counted(nlp.make_doc("a"), nlp.make_doc("a")) for _ in range(100))
    count_entities(nlp, examples)
    # The last Example of the words before may still be referred to, and the next be made.
    assert 10 <= Counted.most <= 12
    assert Counted.alive == 0


@pytest.mark.parametrize(
    ("lengths", "events"),
    [
        ([], ""),
        ([1], "[rc]"),
        ([0, 0, 0], "[rrrccc]"),
        ([1, 1, 1, 1], "[rrrccc][rc]"),  # 3 texts at most
        ([4, 4, 4, 9, 9], "[rrcc][rrcc][rc]"),  # 8 words are enough
        ([8, 50, 7, 1, 1], "[rc][rc][rrcc][rc]"),
    ],
)
def test_each_batch_is_read_and_counted_in_a_block_of_its_own(monkeypatch, lengths, events):
    found = []

    @contextmanager
    def zone(nlp):
        found.append("[")
        yield
        found.append("]")

    def read():
        for length in lengths:
            found.append("r")
            yield Example(*(Doc(nlp.vocab, words=["a"] * length) for _ in range(2)))

    monkeypatch.setattr(EntityCounts, "add", lambda self, eg: found.append("c"))
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", 8)
    monkeypatch.setattr(dev_scores, "forgetting", zone)
    nlp = spacy.blank("en")
    nlp.batch_size = 3
    count_entities(nlp, read())
    assert "".join(found).replace("[]", "") == events


@spacy.Language.component("labelwise_tests_copy")
def copy_doc(doc: Doc) -> Doc:
    """A component that gives another Doc than it gets."""
    return doc.copy()


def test_predictions_get_into_the_examples():
    nlp = spacy.blank("en")
    nlp.add_pipe("labelwise_tests_copy")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "A", "pattern": "cat"}])
    doc = nlp.make_doc("a cat")
    doc.set_ents([doc.char_span(2, 5, "A")])
    eg = Example(nlp.make_doc("a cat"), doc)
    assert count_entities(nlp, [eg]).by_label["A"].tp == 1
    assert [ent.text for ent in eg.predicted.ents] == ["cat"]


SCORES = {"ents_p": 0.5, "ents_r": 0.25, "ents_f": None, "ents_per_type": {"A": {"p": 1.0}}}


@pytest.mark.parametrize(
    ("weights", "score"),
    [
        ({}, 0.0),
        ({"ents_p": 1.0}, 0.5),
        ({"ents_p": 0.5, "ents_r": 2.0}, 0.75),
        ({"ents_f": 1.0, "ents_r": 1.0}, 0.25),  # nothing to compute it of counts as nothing
        ({"ents_r": 1.0, "ents_p": None, "ents_per_type": None, "speed": None, "tag_acc": 0.0}, 0.25),
    ],
)
def test_scores_are_weighted(weights, score):
    assert weighted_score(SCORES, weights) == score


@pytest.mark.parametrize("name", ["tag_acc", "ents_per_type", "ents"])
def test_a_weight_for_an_unknown_score_is_an_error(name):
    with pytest.raises(InputError, match=rf"score_weights: {name} isn't computed; there are ents_f, "):
        weighted_score(SCORES, {"ents_p": 0.5, name: 0.5})


@pytest.mark.parametrize(
    ("uncovered", "expected"),
    [
        ({}, (1, 2, 1)),
        ({"A": "none"}, (0, 1, 1)),
        ({"B": "none"}, (1, 1, 0)),
        (
            {"A": "partial"},
            (1, 1, 1),
        ),  # its rejected span isn't predicted, its accepted one is; the other can't be judged
        ({"A": "none", "B": "none"}, None),
    ],
)
def test_what_nobody_annotated_counts_neither_as_gold_nor_as_predicted(uncovered, expected):
    """Right, wrong, missed: `a` is A and predicted so, `b` is predicted A, `c` is predicted B, `d` is B and missed."""
    predicted, reference = (Doc(VOCAB, words=list("abcd")) for _ in range(2))
    predicted.ents = [Span(predicted, 0, 1, "A"), Span(predicted, 1, 2, "A"), Span(predicted, 2, 3, "B")]
    reference.set_ents([Span(reference, 0, 1, "A"), Span(reference, 3, 4, "B")], default="outside")
    annotate(reference, Annotation([(0, 1, "A", []), (6, 7, "B", [])], [(4, 5, "A")], uncovered))
    counts = EntityCounts()
    counts.add(Example(predicted, reference))
    total = [sum(getattr(count, name) for count in counts.by_label.values()) for name in ("tp", "fp", "fn")]
    assert (counts.scores()["ents_f"] is None) == (expected is None)
    assert expected is None or tuple(total) == expected
