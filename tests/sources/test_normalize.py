"""The normal form of texts, and where their spans go."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.corpus.annotation import annotation_of
from labelwise.corpus.tasks import input_hash
from labelwise.sources.normalize import normalize, normalize_task
from labelwise.sources.prodigy import Task, TaskSpan
from labelwise.text import trim_usable
from tests.merge.test_run import read_docs


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("one  two\tthree\xa0four", "one two three four"),
        ("one\r\ntwo\rthree \n\n four\u2028five", "one\ntwo\nthree\nfour\nfive"),
        (" \n edges \r\n", "edges"),
        ("cafe\u0301", "caf\xe9"),
        ("e\u0323\u0302x", "\u1ec7x"),  # one letter of three characters
        ("\u1100\u1161\u11a8", "\uac01"),  # a Hangul syllable
        ("\u212b", "\xe5".upper()),  # one character for another
        ("\u0958", "\u0915\u093c"),  # a character that gets two
        ("\ufb01", "\ufb01"),  # a ligature isn't one of canonical equivalence
        ("e \u0301", "e \u0301"),  # a mark on a space
        ("\u0f74\u0f73", "\u0f71\u0f72\u0f74"),  # a mark of two, on both sides of one
    ],
)
def test_normal_forms(text, normal):
    assert normalize(text)[0] == normal


pieces = st.sampled_from("ab e\u0301\u0323\t\r\n\xa0\u1100\u1161\u11a8\u0958\u0f71\u0f73\u0f74\u0344\u0f81")


@given(st.lists(pieces | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join))
def test_the_normal_form_is_that_of_unicode_with_folded_white_space(text):
    normal, starts, ends = normalize(text)
    assert normal.split() == unicodedata.normalize("NFC", text).split()
    assert normalize(normal)[0] == normal
    assert len(starts) == len(normal)
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    # What is between two words that were apart is one character.
    assert "  " not in normal
    assert normal == normal.strip()


@pytest.mark.parametrize(
    ("span", "moved"),
    [
        ((0, 4), (0, 4)),
        ((6, 11), (5, 9)),
        ((9, 10), (8, 9)),  # a letter without its accent gets it
        ((10, 11), (8, 9)),
        ((4, 6), (4, 5)),
        ((6, 12), (5, 9)),  # the white space behind it is gone
        ((0, 13), None),  # not inside the text
        ((False, True), None),
        ((5, 5), None),
    ],
)
def test_spans_are_moved(span, moved):
    task = normalize_task(Task("big  \ncafe\u0301 ".replace("big  \n", "wide \n"), [TaskSpan(*span, "A")]))
    assert task.text == "wide\ncaf\xe9"
    start, end = task.spans[0].start, task.spans[0].end
    if moved is None:
        assert trim_usable(task.text, start, end) == (0, 0)
    else:
        assert (start, end) == moved


@pytest.mark.parametrize(
    ("text", "span", "normal"),
    [
        ("\u0958\u0932\u092e x", (0, 3), "\u0915\u093c\u0932\u092e"),
        ("y \u09dc\u09be z", (2, 4), "\u09a1\u09bc\u09be"),
        ("abcq\u0301\u0323", (3, 6), "q\u0323\u0301"),
        ("\ufb2a", (0, 1), "\u05e9\u05c1"),
    ],
)
def test_characters_that_become_several_stay_in_their_span(text, span, normal):
    task = normalize_task(Task(text, [TaskSpan(*span, "A")]))
    assert task.text[task.spans[0].start : task.spans[0].end] == normal


def test_a_stored_hash_stays_right_or_wrong():
    old = "one  two"
    assert normalize_task(Task(old, input_hash=input_hash(old))).input_hash == input_hash("one two")
    assert normalize_task(Task(old, input_hash=input_hash("one two"))).input_hash != input_hash("one two")
    assert normalize_task(Task(old)).input_hash is None


def test_texts_that_differ_only_so_are_one_document(merging):
    texts = ["The cafe\u0301\r\nof Ann", "The caf\xe9\nof  Ann", "The caf\xe9\nof Ann"]
    for name, text, span in zip("abc", texts, [(4, 9), (13, 16), (4, 8)], strict=True):
        label = "PLACE" if name in "ac" else "PERSON"
        spans = [{"start": span[0], "end": span[1], "label": label}]
        merging.add(name, [label], [{"text": text, "spans": spans, "_input_hash": input_hash(text)}])
    ledger = merging.run("apart")
    assert (ledger.texts.total(), ledger.stored_hash_differs) == (3, 0)
    ledger = merging.run(normalize=True)
    assert (ledger.rows["merged"], ledger.spans["duplicate"], ledger.stored_hash_differs) == (3, 1, 0)
    ((text, (_, doc)),) = read_docs(merging.root).items()
    assert text == "The caf\xe9\nof Ann"
    assert {(text[start:end], label) for start, end, label in annotation_of(doc).accepted} == {
        ("caf\xe9", "PLACE"),
        ("Ann", "PERSON"),
    }
