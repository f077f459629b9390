"""The recognizer with a head for each label: loss, decoding, what counts as known, and that it is a spaCy component."""

import itertools
import math

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Model

from spacy_per_label.decode import FoundSpans, choose_flat, decode
from spacy_per_label.loss import log_softmax, loss_and_gradient
from spacy_per_label.model import make_heads, set_heads
from spacy_per_label.targets import BEGIN, IN, LAST, OUT, TAGS, UNIT, UNKNOWN, targets_of

NLP = spacy.blank("en")
LABELS = {"A": 0, "B": 1, "C": 2}


def is_legal(tags) -> bool:
    inside = False
    for tag in tags:
        if inside != (tag in (IN, LAST)):
            return False
        inside = tag in (BEGIN, IN)
    return not inside


def spans_of(tags) -> list[tuple[int, int]]:
    spans, start = [], 0
    for place, tag in enumerate(tags):
        if tag in (BEGIN, UNIT):
            start = place
        if tag in (LAST, UNIT):
            spans.append((start, place + 1))
    return spans


@pytest.mark.parametrize("seed", range(20))
def test_decoding_finds_what_enumeration_finds(seed):
    """A span's probability is the share of all legal sequences of tags that have it."""
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(0, 5, 3).tolist(), 1]
    scores = log_softmax(3 * rng.normal(size=(sum(lengths), 2, TAGS)))
    base = 0
    for length, found in zip(lengths, decode(scores, lengths), strict=True):
        expected = []
        for label in range(2):

            def total(tags, base=base, label=label):
                return sum(scores[base + place, label, tag] for place, tag in enumerate(tags))

            legal = list(filter(is_legal, itertools.product(range(TAGS), repeat=length)))
            best = max(legal, key=total)
            for start, end in spans_of(best):
                with_it = [tags for tags in legal if (start, end) in spans_of(tags)]
                share = sum(map(math.exp, map(total, with_it))) / sum(map(math.exp, map(total, legal)))
                expected.append((label, start, end, pytest.approx(share)))
        columns = (found.labels, found.starts, found.ends, found.probabilities)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
        base += length


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    logits, tags = rng.normal(size=(6, 3, TAGS)), rng.integers(UNKNOWN, TAGS, (6, 3)).astype(np.int8)
    rejected = [(0, 2, 0), (3, 4, 1), (2, 6, 0)]
    _, gradient = loss_and_gradient(logits, tags, rejected)
    for place in np.ndindex(logits.shape):
        more, less = logits.copy(), logits.copy()
        more[place] += 1e-5
        less[place] -= 1e-5
        slope = (loss_and_gradient(more, tags, rejected)[0] - loss_and_gradient(less, tags, rejected)[0]) / 2e-5
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_what_is_unknown_has_no_loss_and_exactly_no_gradient():
    logits = np.random.default_rng(0).normal(size=(4, 2, TAGS)).astype("f")
    tags = np.full((4, 2), UNKNOWN, np.int8)
    tags[1, 0] = OUT
    loss, gradient = loss_and_gradient(logits, tags, [])
    assert loss == pytest.approx(-float(log_softmax(logits)[1, 0, OUT]))
    assert gradient.dtype == logits.dtype
    gradient[1, 0] = 0
    assert not gradient.any()


def make_example(uncovered=None, gold=(), rejected=(), lost=()) -> Example:
    """`Ann met Bob Smith in Rome.`, as a merge leaves it; spans are in tokens."""
    doc = NLP.make_doc("Ann met Bob Smith in Rome.")
    doc.spans["gold"] = [Span(doc, *span) for span in gold]
    doc.spans["incorrect_spans"] = [Span(doc, *span) for span in rejected]
    kept = [[span.start_char, span.end_char, span.label_, []] for span in doc.spans["gold"]]
    doc.user_data["labelwise"] = {"gold": kept + [[*span, []] for span in lost], "uncovered": uncovered or {}}
    return Example(NLP.make_doc(doc.text), doc)


def column(tags: np.ndarray, label: str) -> str:
    return "".join("OBILU"[tag] if tag >= 0 else "?" for tag in tags[:, LABELS[label]])


@pytest.mark.parametrize(
    ("given", "expected", "rejected"),
    [
        ({"gold": [(0, 1, "A"), (2, 4, "A")]}, {"A": "UOBLOOO", "B": "OOOOOOO"}, []),
        # spans of other labels may overlap
        ({"gold": [(2, 4, "A"), (3, 4, "B"), (2, 6, "C")]}, {"A": "OOBLOOO", "B": "OOOUOOO", "C": "OOBIILO"}, []),
        # of one label's, the longest counts
        ({"gold": [(3, 4, "A"), (2, 6, "A"), (5, 7, "A")]}, {"A": "OOBIILO"}, []),
        # of a label that isn't annotated, nothing is known, whatever else is there
        ({"uncovered": {"A": "none"}, "gold": [(0, 1, "B")]}, {"A": "???????", "B": "UOOOOOO"}, []),
        # of one that was judged, accepted spans, and rejected ones by their own loss
        (
            {"uncovered": {"A": "partial"}, "gold": [(2, 4, "A")], "rejected": [(0, 1, "A"), (5, 6, "B")]},
            {"A": "??BL???", "B": "OOOOOOO"},
            [(0, 1, 0)],
        ),
        # gold that tokens can't represent hides what it touches, for its own label
        ({"lost": [(1, 3, "A"), (22, 24, "A")]}, {"A": "?OOOO?O", "B": "OOOOOOO"}, []),
    ],
)
def test_what_an_example_teaches(given, expected, rejected):
    tags, judged = targets_of(make_example(**given), LABELS)
    assert {label: column(tags, label) for label in expected} == expected
    assert judged == rejected


def test_docs_that_no_merge_made_are_taken_as_spacys_are_and_other_tokens_aligned():
    doc = Doc(NLP.vocab, words=["Ann", "met", "Bob Smith", "."], spaces=[True, True, False, False])
    doc.set_ents([Span(doc, 2, 3, "A")], missing=[doc[0:1]])
    predicted = Doc(NLP.vocab, words=["Ann", "met", "Bob", "Smith", "."], spaces=[True, True, True, False, False])
    tags, *_ = targets_of(Example(predicted, doc), LABELS)
    assert (column(tags, "A"), column(tags, "B")) == ("?OBLO", "?OOOO")


@pytest.mark.parametrize("seed", range(10))
def test_the_flat_choice_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 12, 9)
    ends = starts + rng.integers(1, 5, 9)
    probabilities = rng.uniform(0.01, 0.99, 9)
    chosen = choose_flat(FoundSpans(np.arange(9), starts, ends, probabilities))
    weights = -np.log(1 - probabilities)

    def fits(numbers) -> bool:
        return all(ends[a] <= starts[b] or ends[b] <= starts[a] for a, b in itertools.combinations(numbers, 2))

    subsets = (numbers for size in range(10) for numbers in itertools.combinations(range(9), size))
    best = max(sum(weights[list(numbers)]) for numbers in subsets if fits(numbers))
    assert fits(chosen)
    assert sum(weights[chosen]) == pytest.approx(best)
    assert starts[chosen].tolist() == sorted(starts[chosen].tolist())


@pytest.mark.parametrize(
    ("spans", "chosen"),
    [
        ([(0, 1, 0.0), (1, 2, 1e-9), (2, 3, 1.0)], [0, 1, 2]),
        ([(0, 3, 1.0), (0, 1, 0.999), (1, 2, 0.9)], [0]),
        ([], []),
    ],
)
def test_which_of_overlapping_spans_is_the_entity(spans, chosen):
    """Those that are least likely all wrong; one that overlaps no other is an entity however improbable it is."""
    starts, ends, probabilities = np.array(spans, "float64").reshape(-1, 3).T
    found = FoundSpans(np.arange(len(spans)), starts.astype(int), ends.astype(int), probabilities.astype("float32"))
    assert choose_flat(found) == chosen


def test_it_learns_says_how_sure_it_is_and_is_saved_and_loaded(tmp_path):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label", name="ner", config={"model": {"tok2vec": {"width": 32, "depth": 1}}})
    texts = [
        ("Ann met Bob in New York today.", [(0, 3, "PER"), (8, 11, "PER"), (15, 23, "LOC")]),
        ("I like Rome and New York.", [(7, 11, "LOC"), (16, 24, "LOC")]),
    ]
    examples = [Example.from_dict(nlp.make_doc(text), {"entities": ents}) for text, ents in texts]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    assert nlp("").ents == ()
    assert nlp.evaluate(examples)["ents_f"] == 1.0
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    copied = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert again.get_pipe("ner").labels == copied.get_pipe("ner").labels == ("LOC", "PER")
    for eg in examples:
        doc = nlp(eg.text)
        assert [(ent.text, ent.label_) for ent in doc.ents] == [(ent.text, ent.label_) for ent in eg.reference.ents]
        scores = doc.spans["labels"].attrs["scores"]
        assert len(scores) == len(doc.spans["labels"]) == len(doc.ents)
        assert ((scores > 0.5) & (scores <= 1)).all()
        assert doc.to_bytes() == again(eg.text).to_bytes() == copied(eg.text).to_bytes()


@pytest.mark.parametrize("context", [True, False])
def test_the_gradient_of_what_the_heads_see_is_that_of_finite_differences(context):
    """Of a token, its neighbours, and, with `context`, of all other tokens of its text, and of no other text."""
    rng = np.random.default_rng(0)
    spacy.util.fix_random_seed(5)  # by which no maxout switches within a step
    texts = [rng.normal(size=(size, 4)).astype("float32") for size in (5, 1, 0)]
    given: Model = Model("given", lambda model, X, is_train: (X, lambda dY: dY))
    model = make_heads(given, hidden_width=6, context=context)
    set_heads(model.get_ref("output"), 2)
    model.initialize(X=texts)
    logits, backprop = model.begin_update(texts)
    weights = [rng.normal(size=part.shape).astype("float32") for part in logits]
    gradients = backprop(weights)

    def value() -> float:
        return sum(float((part * weight).sum()) for part, weight in zip(model.predict(texts), weights, strict=True))

    def slope(array: np.ndarray, place: tuple[int, ...]) -> float:
        array[place] += 1e-2
        after = value()
        array[place] -= 2e-2
        difference = (after - value()) / 2e-2
        array[place] += 1e-2
        return pytest.approx(difference, rel=0.05, abs=0.02)

    for number, place in [(0, (0, 1)), (0, (4, 3)), (0, (2, 0)), (1, (0, 2))]:
        assert gradients[number][place] == slope(texts[number], place)
    output = model.get_ref("output")
    for name, place in [("b", (0,)), ("W", (7, 2))]:
        assert output.get_grad(name)[place] == slope(output.get_param(name), place)
    before = model.predict(texts)
    texts[0][0] += 1
    for number, token, changes in [(0, 1, True), (0, 4, context), (1, 0, False)]:
        assert (model.predict(texts)[number][token] != before[number][token]).any() == changes


def test_labels_are_given_or_found_and_added_before_there_are_heads():
    doc = NLP.make_doc("Ann")
    doc.ents = [Span(doc, 0, 1, "PER")]
    for given, expected in ((None, ("PER",)), (["B", "A"], ("B", "A"))):
        nlp = spacy.blank("en")
        pipe = nlp.add_pipe("per_label", name="ner")
        pipe.initialize(lambda: [Example(NLP.make_doc("Ann"), doc)], nlp=nlp, labels=given)
        assert pipe.labels == expected == tuple(pipe.label_data)
    assert pipe.add_label("B") == 0
    with pytest.raises(ValueError, match="'DATE': the model has its heads; train again with all labels"):
        pipe.add_label("DATE")
    pipe = spacy.blank("en").add_pipe("per_label", name="ner")
    with pytest.raises(ValueError, match="no label; give `labels`"):
        pipe.initialize(lambda: [Example(NLP.make_doc("a"), NLP.make_doc("a"))])
    with pytest.raises(ValueError, match="'' is no label"):
        pipe.add_label("")
