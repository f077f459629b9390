import doctest
import itertools
import math
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Model

from spacy_per_label import known, set_known
from spacy_per_label.decode import FoundSpans, choose_flat, decode
from spacy_per_label.known import get_known, judge, key_of
from spacy_per_label.loss import log_softmax, loss_and_gradient
from spacy_per_label.model import make_heads, set_labels
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
    """A span's probability is the share of all legal tag sequences with it."""
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(0, 5, 3).tolist(), 1]
    logits = 3 * rng.normal(size=(sum(lengths), 2, TAGS))
    logits[np.ix_(rng.random(sum(lengths)) < 0.3, [0, 1], [BEGIN, LAST, UNIT])] = -np.inf  # white space
    scores = log_softmax(logits)
    base = 0
    for length, spans in zip(lengths, decode(scores, lengths), strict=True):
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
        columns = (spans.labels, spans.starts, spans.ends, spans.probabilities)
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


@pytest.mark.guarantee("unknown-labels")
def test_what_is_unknown_has_no_loss_and_exactly_no_gradient():
    logits = np.random.default_rng(0).normal(size=(4, 2, TAGS)).astype("f")
    tags = np.full((4, 2), UNKNOWN, np.int8)
    tags[1, 0] = OUT
    loss, gradient = loss_and_gradient(logits, tags, [])
    assert loss == pytest.approx(-float(log_softmax(logits)[1, 0, OUT]))
    assert gradient.dtype == logits.dtype
    gradient[1, 0] = 0
    assert not gradient.any()


def make_example(gold=(), rejected=(), **known) -> Example:
    doc = NLP.make_doc("Ann met Bob Smith in Rome.")
    known |= {"gold": [Span(doc, *span) for span in gold], "rejected": [Span(doc, *span) for span in rejected]}
    set_known(doc, **known)
    return Example(NLP.make_doc(doc.text), doc)


def column(tags: np.ndarray, label: str) -> str:
    return "".join("OBILU"[tag] if tag >= 0 else "?" for tag in tags[:, LABELS[label]])


@pytest.mark.parametrize(
    ("annotation", "expected", "rejected"),
    [
        ({"gold": [(0, 1, "A"), (2, 4, "A")]}, {"A": "UOBLOOO", "B": "OOOOOOO"}, []),
        # spans of other labels may overlap
        ({"gold": [(2, 4, "A"), (3, 4, "B"), (2, 6, "C")]}, {"A": "OOBLOOO", "B": "OOOUOOO", "C": "OOBIILO"}, []),
        # of one label's, the longest counts
        ({"gold": [(3, 4, "A"), (2, 6, "A"), (5, 7, "A")]}, {"A": "OOBIILO"}, []),
        # of a label that isn't annotated, nothing is known, whatever else is there
        ({"coverage": {"A": "none"}, "gold": [(0, 1, "B")]}, {"A": "???????", "B": "UOOOOOO"}, []),
        # of one that was judged, accepted spans, and rejected ones by their own loss
        (
            {"coverage": {"A": "partial"}, "gold": [(2, 4, "A")], "rejected": [(0, 1, "A"), (5, 6, "B")]},
            {"A": "??BL???", "B": "OOOOOOO"},
            [(0, 1, 0)],
        ),
        # gold that tokens can't represent hides what it touches, for its own label
        ({"unaligned": [(1, 3, "A"), (22, 24, "A")]}, {"A": "?OOOO?O", "B": "OOOOOOO"}, []),
    ],
)
def test_what_an_example_teaches(annotation, expected, rejected):
    tags, judged = targets_of(make_example(**annotation), LABELS)
    assert {label: column(tags, label) for label in expected} == expected
    assert judged == rejected


@pytest.mark.parametrize("words", [["Ann", "met", "Bob Smith", "."], ["Ann", "met", "Bob", "Smith", "."]])
def test_entities_are_read_as_spacy_reads_them_and_other_tokens_aligned(words):
    doc = Doc(NLP.vocab, words=words, spaces=[True] * (len(words) - 2) + [False] * 2)
    doc.set_ents([Span(doc, 2, len(words) - 1, "A")], missing=[doc[0:1]], blocked=[doc[1:2]])
    doc.spans["incorrect_spans"] = [doc[0:1], Span(doc, 0, 1, "B")]
    predicted = Doc(NLP.vocab, words=["Ann", "met", "Bob", "Smith", "."], spaces=[True, True, True, False, False])
    eg = Example(predicted, doc)
    tags, rejected = targets_of(eg, LABELS)
    assert (column(tags, "A"), column(tags, "B")) == ("??BLO", "??OOO")
    assert [tag is None for tag in eg.get_aligned_ner()] == (tags[:, 0] == UNKNOWN).tolist()
    assert rejected == [(0, 1, LABELS["B"])]


def test_what_is_known_is_kept_by_spacys_files_and_judges_what_is_found(tmp_path):
    assert doctest.testmod(known).failed == 0
    doc = make_example([(0, 1, "A"), (2, 4, "B")], [(5, 6, "B")], coverage={"B": "partial", "C": "none"}).reference
    doc.user_data["per_label"]["unaligned"] = [[5, 9, "A"]]  # "et B"
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "a.spacy")
    (again,) = DocBin().from_disk(tmp_path / "a.spacy").get_docs(NLP.vocab)
    for stored in (doc, again):
        stored_known = get_known(stored)
        assert [list(map(key_of, spans)) for spans in stored_known[:2]] == [
            [(0, 3, "A"), (8, 17, "B")],
            [(21, 25, "B")],
        ]
        assert stored_known[2:] == ({"B": "partial", "C": "none"}, [(5, 9, "A")], [])
        spans = [(0, 1, "A"), (1, 2, "A"), (2, 4, "B"), (5, 6, "B"), (3, 4, "B"), (0, 1, "C")]
        assert list(judge(stored_known, (Span(stored, *span) for span in spans))) == [
            True,
            False,
            True,
            False,
            None,
            None,
        ]
    doc.spans["gold"] = [*doc.spans["gold"], Span(doc, 2, 4, "A")]  # "Bob Smith", where "et B" was marked
    assert list(judge(get_known(doc), [Span(doc, 2, 4, "A")])) == [False]


def test_predictions_on_missing_values_are_neither_right_nor_wrong():
    doc = NLP.make_doc("Ann met Bob Smith in Rome.")
    doc.set_ents([Span(doc, 0, 1, "A")], missing=[doc[2:4]], blocked=[doc[5:6]], default="outside")
    doc.spans["incorrect_spans"] = [Span(doc, 3, 4, "B")]
    spans = [(0, 1, "A"), (0, 1, "B"), (1, 2, "A"), (1, 3, "A"), (2, 4, "B"), (3, 4, "B"), (4, 5, "B"), (5, 7, "A")]
    expected = [True, False, False, None, None, False, False, None]
    assert list(judge(get_known(doc), (Span(doc, *span) for span in spans))) == expected
    set_known(doc, gold=doc.ents)
    assert list(judge(get_known(doc), [Span(doc, 2, 4, "B")])) == [False]


def test_a_label_is_complete_where_that_is_said_and_an_unknown_state_is_refused():
    stated, unsaid = (make_example([(0, 1, "A")], coverage=coverage) for coverage in ({"A": "complete"}, {}))
    assert column(targets_of(stated, LABELS)[0], "A") == "UOOOOOO"
    assert get_known(stated.reference).coverage == get_known(unsaid.reference).coverage == {}
    with pytest.raises(ValueError, match="coverage of A: 'Partial'; give one of 'complete', 'partial', 'none'"):
        make_example(coverage={"A": "Partial"})


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
    [([(0, 1, 0.0), (1, 2, 1e-9), (2, 3, 1.0)], [0, 1, 2]), ([(0, 3, 1.0), (0, 1, 0.999), (1, 2, 0.9)], [0]), ([], [])],
)
def test_which_of_overlapping_spans_is_the_entity(spans, chosen):
    starts, ends, probabilities = np.array(spans, "float64").reshape(-1, 3).T
    found_spans = FoundSpans(
        np.arange(len(spans)), starts.astype(int), ends.astype(int), probabilities.astype("float32")
    )
    assert choose_flat(found_spans) == chosen


def test_it_learns_says_how_sure_it_is_and_is_saved_and_loaded(tmp_path):
    nlp = with_ner("per_label")
    examples = read_texts(nlp)
    learn(nlp, examples)
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


@pytest.mark.parametrize("text", ["   \n", " \n Ann met Bob\n", "\n\tIn New \n York.\n\n", "I like\xa0 Rome \u2028"])
def test_no_span_begins_or_ends_with_white_space(text, learned, monkeypatch):
    nlp = learned["per_label"]
    ner = nlp.get_pipe("ner")
    words = {token.i for token in nlp.make_doc(text) if not token.is_space}
    for shift in (0.0, -5.0, -50.0):
        monkeypatch.setitem(ner.cfg, "outside", shift)
        doc = nlp(text)
        edges = [span[place] for span in [*doc.ents, *doc.spans["labels"]] for place in (0, -1)]
        assert not [token for token in edges if token.is_space]
    assert {token.i for ent in doc.ents for token in ent} >= words, "the last shift finds all words"
    if words:
        learn(with_ner("ner"), [Example(nlp.make_doc(text), doc)])
    assert not [ent for ent in nlp(text).ents if ent.text != ent.text.strip()]


@pytest.mark.parametrize("context", [True, False])
def test_the_gradient_of_what_the_heads_see_is_that_of_finite_differences(context):
    rng = np.random.default_rng(0)
    spacy.util.fix_random_seed(5)  # no maxout switches within a step
    texts = [rng.normal(size=(size, 4)).astype("float32") for size in (5, 1, 0)]
    vectors_layer: Model = Model("given", lambda model, X, is_train: (X, lambda dY: dY))
    model = make_heads(vectors_layer, hidden_width=6, context=context)
    set_labels(model, 2)
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


TEXTS = [
    ("Ann met Bob in New York today.", [(0, 3, "PER"), (8, 11, "PER"), (15, 23, "LOC")]),
    ("I like Rome and New York.", [(7, 11, "LOC"), (16, 24, "LOC")]),
]


def learn(nlp: Language, examples: list[Example]) -> Language:
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    return nlp


def read_texts(nlp: Language, **labels: str) -> list[Example]:
    return [
        Example.from_dict(nlp.make_doc(text), {"entities": [(*at, labels.get(label, label)) for *at, label in spans]})
        for text, spans in TEXTS
    ]


def with_ner(factory: str, **config: Any) -> Language:
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, name="ner", config={"model": {"tok2vec": {"width": 32, "depth": 1}}} | config)
    return nlp


@pytest.fixture(scope="module")
def learned() -> dict[str, Language]:
    return {name: learn(nlp := with_ner(name), read_texts(nlp)) for name in ("ner", "per_label")}


@pytest.mark.parametrize(
    ("entities", "more"),
    [
        ([(1, 3, "X")], {}),  # overlaps Bob
        ([(4, 5, "ORG")], {}),  # overlaps New York
        ([(0, 1, "ORG", 0, "Q1")], {}),
        ([], {"blocked": [(2, 3)]}),
        ([(6, 7, "DATE")], {"blocked": [(5, 6)]}),  # half of New York
        ([], {"default": "outside"}),  # isn't taken for a decision
        ([], {"outside": [(5, 6)]}),
    ],
)
def test_entities_and_blocked_tokens_that_a_doc_has_stay_as_with_spacys_ner(entities, more, learned):
    docs = []
    for nlp in learned.values():
        doc = nlp.make_doc(TEXTS[0][0])
        options = {name: value if name == "default" else [doc[a:b] for a, b in value] for name, value in more.items()}
        spans = [Span(doc, *entity[:3], *({"span_id": entity[4]} if entity[4:] else ())) for entity in entities]
        for span, one in zip(spans, entities, strict=True):
            span.kb_id_ = one[4] if one[4:] else ""
        doc.set_ents(spans, **{"default": "missing", **options})
        docs.append(nlp.get_pipe("ner")(doc))
    assert len(docs[0].ents) >= 2
    assert len({str(doc.to_json()["ents"]) for doc in docs}) == 1
    assert [[(t.ent_iob_, t.ent_type_, t.ent_kb_id_) for t in doc] for doc in docs[:1]] == [
        [(t.ent_iob_, t.ent_type_, t.ent_kb_id_) for t in doc] for doc in docs[1:]
    ]


def test_two_of_them_keep_what_they_find_apart():
    nlp = with_ner("per_label", spans_key="first")
    nlp.add_pipe("per_label", name="other", config={"spans_key": "second"})
    learn(nlp, read_texts(nlp))
    nlp.get_pipe("other").cfg["outside"] = 100.0
    nlp = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    doc = nlp(TEXTS[0][0])
    assert [len(doc.spans[name]) for name in ("first", "second")] == [3, 0]
    assert "labels" not in doc.spans


def test_it_can_be_initialized_again_with_other_labels_as_spacys_can(learned):
    others = {"PER": "DOG", "LOC": "CAT"}
    for factory in learned:
        nlp = with_ner(factory)
        learn(nlp, read_texts(nlp))
        if factory == "per_label":
            nlp.get_pipe("ner").cfg |= {"outside": 50.0, "slopes": {"DOG": 0.0}}
        learn(nlp, read_texts(nlp, **others))
        assert {*nlp.get_pipe("ner").labels} == {"PER", "LOC", "DOG", "CAT"}
        assert nlp.evaluate(read_texts(nlp, **others))["ents_f"] == 1.0


def test_a_label_that_no_text_is_complete_for_stays_out_of_entities():
    nlp = with_ner("per_label")
    examples = read_texts(nlp)
    for eg in examples:
        set_known(eg.reference, gold=eg.reference.ents, coverage={"LOC": "partial"})
    learn(nlp, examples)
    ner, (doc, *_) = nlp.get_pipe("ner"), nlp.pipe([TEXTS[0][0]])
    assert (ner.excluded_labels, {ent.label_ for ent in doc.ents}) == (("LOC",), {"PER"})
    assert "LOC" in {span.label_ for span in doc.spans["labels"]}
    ner.cfg["taught"].append("LOC")
    assert "LOC" in {ent.label_ for ent in nlp(TEXTS[0][0]).ents}


@pytest.mark.parametrize("scale", [1, 60, 1000])
def test_probabilities_of_sure_models_are_exact(scale):
    """In single precision, logits of scale 60 give NaN."""
    logits = scale * np.random.default_rng(0).normal(size=(40, 3, TAGS))
    logits[..., BEGIN] -= 0.5 * scale
    exact, single = (decode(log_softmax(one), [25, 15]) for one in (logits, logits.astype("f")))
    for one, other in zip(exact, single, strict=True):
        assert one.starts.tolist() == other.starts.tolist()
        assert np.isfinite(other.probabilities).all()
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=5e-7 * scale)


def test_behind_thousands_of_tokens_a_little_is_still_seen():
    """In single precision, sums near -100,000 are multiples of 0.008."""
    log_p = np.full((5002, 1, TAGS), -25, "f")
    log_p[..., OUT] = -20
    log_p[5000, 0, BEGIN] = log_p[5001, 0, LAST] = -19.999
    (spans,) = decode(log_p, [5002])
    assert list(spans.rows()) == [(5000, 5002, 0)]


def test_labels_are_given_or_found_and_added_before_there_are_heads():
    doc = NLP.make_doc("Ann")
    doc.ents = [Span(doc, 0, 1, "PER")]
    for labels, expected in ((None, ("PER",)), (["B", "A"], ("B", "A"))):
        nlp = spacy.blank("en")
        pipe = nlp.add_pipe("per_label", name="ner")
        pipe.initialize(lambda: [Example(NLP.make_doc("Ann"), doc)], nlp=nlp, labels=labels)
        assert pipe.labels == expected == tuple(pipe.label_data)
    assert pipe.add_label("B") == 0
    with pytest.raises(ValueError, match="'DATE': the model has its heads; train again with all labels"):
        pipe.add_label("DATE")
    pipe = spacy.blank("en").add_pipe("per_label", name="ner")
    with pytest.raises(ValueError, match="no label; give `labels`"):
        pipe.initialize(lambda: [Example(NLP.make_doc("a"), NLP.make_doc("a"))])
    with pytest.raises(ValueError, match="'' is no label"):
        pipe.add_label("")
    assert pipe.add_label("A") == 1
    assert pipe.labels == ("A",)
