import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from labelwise.check.findings import Correction, OutOfFold, find_corrections
from labelwise.corpus.annotation import GOLD, Annotation, annotate
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from spacy_per_label.decode import decode
from spacy_per_label.loss import log_softmax
from spacy_per_label.targets import TAGS
from tests.conftest import write_docs
from tests.corpus.test_surface_forms import count

NLP = spacy.blank("xx")
LABELS = ["A", "B"]

CAT, DOG = [("the cat sat", [(1, 2, "A")], {})], [("the dog sat", [(1, 2, "B")], {})]


def stored(folder, *texts: tuple[str, list[tuple[int, int, str]], dict]) -> list[StoredDoc]:
    docs = []
    for text, spans, unknown in texts:
        doc = NLP(text)
        doc.spans[GOLD] = [Span(doc, *span) for span in spans]
        gold = [(span.start_char, span.end_char, span.label_, ["a"]) for span in doc.spans[GOLD]]
        annotate(doc, Annotation(gold, [], unknown, ["a"]))
        docs.append(doc)
    write_docs(docs, folder / "a.spacy")
    return list(read_stored_docs(folder / "a.spacy"))


def find_in(tmp_path, *texts, prediction=None) -> list[Correction]:
    docs = stored(tmp_path, *texts)
    return list(find_corrections(docs[-1], count(docs, LABELS), prediction))


def summary(corrections: list[Correction]) -> list[tuple]:
    return [(correction.kind, correction.current, correction.proposed) for correction in corrections]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (("a cat", [], {}), [("missing", None, (1, 2, 0))]),
        (("a cat", [], {"A": "none"}), []),
        (("a cat", [(1, 2, "A")], {}), []),
        (("a cat", [(1, 2, "B")], {}), [("wrong label", (1, 2, 1), (1, 2, 0))]),
        (("the cat", [(0, 1, "A")], {}), [("spurious", (0, 1, 0), None), ("missing", None, (1, 2, 0))]),
        (("one owl", [(1, 2, "A")], {}), []),
        # The form is B elsewhere; but this text isn't annotated for B.
        (("a dog", [(1, 2, "A")], {"B": "none"}), [("spurious", (1, 2, 0), None)]),
    ],
)
def test_the_forms_say_what_contradicts_them(last, expected, tmp_path):
    corrections = find_in(tmp_path, *CAT * 5, *DOG * 5, last)
    assert sorted(summary(corrections), key=str) == sorted(expected, key=str)
    assert all(correction.score > 0 for correction in corrections)


def test_the_occurrence_itself_is_not_counted(tmp_path):
    (left_out,) = find_in(tmp_path, *CAT * 3, ("a cat", [], {}))
    assert left_out.proposed == (1, 2, 0)
    (marked,) = find_in(tmp_path, *[("the cat sat", [], {})] * 3, ("a cat", [(1, 2, "A")], {}))
    assert (marked.current, marked.proposed) == ((1, 2, 0), None)
    assert left_out.score == pytest.approx(marked.score) == pytest.approx(np.log(3.5 / 0.5))


def prediction(words: int, *spans: tuple[int, int, int], sure: float = 0.98) -> OutOfFold:
    p = np.full((words, len(LABELS), TAGS), (1 - sure) / 4)
    p[:, :, 0] = sure
    for start, end, label in spans:
        tags = [4] if end - start == 1 else [1, *[2] * (end - start - 2), 3]
        for token, tag in zip(range(start, end), tags, strict=True):
            p[token, label] = (1 - sure) / 4
            p[token, label, tag] = sure
    log_p = np.log(p)
    return OutOfFold(log_p, decode(log_p, [words])[0], range(len(LABELS)))


def test_a_spans_probability_is_that_of_decoding():
    log_p = log_softmax(3 * np.random.default_rng(0).normal(size=(30, len(LABELS), TAGS)))
    (spans,) = decode(log_p, [30])
    thinks, places = (
        OutOfFold(log_p, spans, range(len(LABELS))),
        zip(spans.starts, spans.ends, spans.labels, strict=True),
    )
    assert [thinks.probability(place) for place in places] == pytest.approx(spans.probabilities)


@pytest.mark.parametrize(
    ("spans", "unknown", "thinks", "expected"),
    [
        ([], {}, [(1, 2, 0)], [("missing", None, (1, 2, 0))]),
        ([(1, 2, "A")], {}, [], [("spurious", (1, 2, 0), None)]),
        ([(1, 2, "A")], {}, [(1, 2, 1)], [("wrong label", (1, 2, 0), (1, 2, 1))]),
        ([(1, 2, "A")], {}, [(0, 2, 0)], [("wrong boundaries", (1, 2, 0), (0, 2, 0))]),
        ([(1, 2, "A"), (0, 2, "B")], {}, [(1, 2, 0), (0, 2, 1)], []),
        ([(1, 2, "A")], {}, [(1, 2, 0), (2, 3, 0)], [("missing", None, (2, 3, 0))]),
        # of labels that the text isn't complete for, nothing is proposed
        ([(0, 1, "A")], {"B": "none"}, [(0, 1, 0), (1, 2, 1)], []),
        ([(0, 1, "A")], {"B": "none"}, [(0, 1, 1)], [("spurious", (0, 1, 0), None)]),
    ],
)
def test_a_prediction_counts_where_the_forms_say_nothing(spans, unknown, thinks, expected, tmp_path):
    corrections = find_in(tmp_path, ("one two three", spans, unknown), prediction=prediction(3, *thinks))
    assert summary(corrections) == expected


def test_a_pipeline_says_nothing_of_a_label_that_it_was_not_taught(tmp_path):
    log_p = prediction(3)._log_p[:, :1]  # of A alone
    text = ("one two three", [(1, 2, "B")], {})
    assert find_in(tmp_path, text, prediction=OutOfFold(log_p, decode(log_p, [3])[0], [0])) == []


def test_another_label_is_as_sure_as_the_half_that_is_less_sure(tmp_path):
    spans = [(1, 2, "A")]
    (wrong,) = find_in(tmp_path, ("one owl", spans, {}), prediction=prediction(2))
    thinks = prediction(2, (1, 2, 1))
    log_p = thinks._log_p
    log_p[1, 1] = np.log([0.2, 0.05, 0.05, 0.05, 0.65])
    thinks = OutOfFold(log_p, decode(log_p, [2])[0], range(len(LABELS)))
    (out, begin, _, _, unit), (out_1, _, _, last, unit_1) = np.exp(log_p[:, 1])  # of all ways to tag two words
    p = (out + unit) * unit_1 / ((out + unit) * (out_1 + unit_1) + begin * last)
    (other,) = find_in(tmp_path, ("one owl", spans, {}), prediction=thinks)
    assert (other.kind, other.proposed) == ("wrong label", (1, 2, 1))
    assert other.score == pytest.approx(np.log(p / (1 - p)), abs=0.01)
    assert other.score < wrong.score


def test_with_a_prediction_a_form_annotated_nowhere_else_is_no_evidence(tmp_path):
    others, last = [("an owl sat", [], {})] * 20, ("one owl", [(1, 2, "A")], {})
    thinks = prediction(2)
    (alone,) = find_in(tmp_path, *others, last, prediction=thinks)
    assert alone.score == pytest.approx(thinks.log_odds(None, (1, 2, 0)))
    (twice,) = find_in(tmp_path, *others, ("my owl", [(1, 2, "A")], {}), last, prediction=thinks)
    assert twice.score == pytest.approx(alone.score + np.log(20.5 / 1.5), abs=0.01)


def test_a_form_annotated_repeatedly_in_a_text_scores_lower(tmp_path):
    others = [("an owl sat", [], {})] * 20
    many = find_in(
        tmp_path, *others, ("owl owl owl", [(n, n + 1, "A") for n in range(3)], {}), prediction=prediction(3)
    )
    few = find_in(tmp_path, *others, ("owl owl", [(0, 1, "A"), (1, 2, "A")], {}), prediction=prediction(2))
    words = np.log(20.5 / 1.5) - np.log(20.5 / 2.5)
    assert few[0].score - many[0].score == pytest.approx(np.log(3 / 2) + words, abs=0.01)
