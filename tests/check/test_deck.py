"""What a finding says is true: of the words elsewhere, and of the pipeline."""

import re
from collections import Counter

import numpy as np
import pytest

from labelwise.check import deck
from labelwise.check.deck import Kept, say_why
from labelwise.check.findings import KINDS, Correction, Opinion
from labelwise.check.folds import LOOKED_AT, CheckedDoc, read_checked
from labelwise.check.run import count_corpus
from labelwise.corpus.forms import LONGEST
from labelwise.corpus.manifest import read_manifest
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.convert_brat import convert_brat
from labelwise.text import text_key
from spacy_per_label import TAGS, decode, log_softmax
from tests.conftest import real_corpus
from tests.corpus.test_forms import stored

HERE, THERE = (3, 4, 0), (2, 4, 0)


@pytest.mark.parametrize(
    ("current", "proposed", "expected"),
    [
        (None, HERE, ("'cat' may be A", "elsewhere it is (7 times)", "isn't (1 time)")),
        (HERE, None, ("'cat' may not be A", "elsewhere it isn't (7 times)", "is (1 time)")),
        (HERE, (3, 4, 1), ("'cat' may be B", "elsewhere it is (7 times)", "is A (1 time)")),
        (HERE, THERE, ("'cat' may have to be 'big cat'", "elsewhere that is A (7 times)", "'cat' is (1 time)")),
    ],
)
def test_what_speaks_for_a_finding_is_said_and_nothing_else(current, proposed, expected):
    better = {HERE: ("cat", "A"), THERE: ("big cat", "A"), (3, 4, 1): ("cat", "B")}[proposed or current]
    change, so, not_so = expected
    agrees = "a pipeline that wasn't trained on this agrees"
    for counts, reasons in {
        (0, 0, False): "",
        (0, 1, False): "",
        (0, 1, True): f": {agrees}",
        (7, 0, False): f": {so}",
        (7, 1, False): f": {so}, and {not_so}",
        (7, 1, True): f": {so}, and {not_so}, and {agrees}",
    }.items():
        assert say_why(Correction(current, proposed, 1.0, *counts), "cat", "A", *better) == change + reasons


@pytest.fixture
def all_listed(monkeypatch):
    monkeypatch.setattr(deck, "LEAST", float("-inf"))


def with_random_opinion(doc: CheckedDoc, labels: list[str]) -> CheckedDoc:
    """An opinion that is wrong as often as not, so that only the words, or nothing at all, speak for some findings."""
    random = np.random.default_rng(len(doc.stored))
    logits = random.normal(size=(len(doc.stored), len(labels), TAGS), scale=2).astype("float32")
    logits[:, :, 0] += 4
    log_p = log_softmax(logits)
    return doc._replace(opinion=Opinion(log_p, decode(log_p, [len(doc.stored)])[0], range(len(labels))))


class In:
    """A text, to look up spans by characters in its words."""

    def __init__(self, doc: CheckedDoc, labels: list[str]) -> None:
        self.doc, self.labels = doc, labels
        self.words = tuple(doc.stored.strings[word] for word in doc.stored.words.tolist())
        self.starts, self.ends = (array.tolist() for array in doc.stored.offsets())

    def place(self, span: tuple[int, int, str]) -> tuple[int, int, int]:
        return self.starts.index(span[0]), self.ends.index(span[1]) + 1, self.labels.index(span[2])

    def form(self, span: tuple[int, int, str]) -> tuple[tuple[str, ...], str]:
        start, end, _ = self.place(span)
        return self.words[start:end], span[2]


def test_where_findings_are_many_each_of_them_says_less(tmp_path, monkeypatch):
    """A hundred of the two hundred spans of A, and two of those of B; a sure finding of A is still before an unsure."""
    found = [*[Correction((0, 1, 0), None, 9.0)] * 99, Correction((0, 1, 0), None, 12.0)]
    found += [Correction((0, 1, 1), None, 8.0), Correction((0, 1, 1), None, 2.0)]
    monkeypatch.setattr(deck, "find_corrections", lambda *_: found)
    (doc,) = stored(tmp_path, ("cat", [], {}))
    kept = Kept(["A", "B"], 3)
    kept.add(CheckedDoc("train", doc), None)
    best = kept.best({"A": 200, "B": 200})
    less = np.log(50)
    assert "".join(one.label for one in best) == "ABAAB"
    assert [one.score for one in best] == pytest.approx([12 - less, 8, 9 - less, 9 - less, 2], abs=1e-4)


@pytest.mark.long
def test_the_advice_of_each_finding_of_a_real_corpus_is_true(all_listed, tmp_path):
    """The forms are counted here anew, word by word; the opinion's places are looked up."""
    convert_brat(real_corpus("wnut2020_wlp/dev"), tmp_path / "tasks")
    merge_data([tmp_path / "tasks" / "datasets.yml"], tmp_path / "corpus", Settings())
    labels = read_manifest(tmp_path / "corpus").labels
    forms, *_ = count_corpus(tmp_path / "corpus", labels)
    kept, docs = Kept(labels, 10**6), {}
    for number, doc in enumerate(read_checked(tmp_path / "corpus", *LOOKED_AT)):
        judged = with_random_opinion(doc, labels) if number % 4 == 0 else doc
        kept.add(judged, forms)
        docs[text_key(doc.stored.text.encode()).hex()] = judged
    marked, free = Counter(), Counter()
    about = [(finding, In(docs[finding.key], labels)) for finding in kept.best({})]
    wanted = {text.form(span) for finding, text in about for span in (finding.current, finding.proposed) if span}
    words_wanted = {words for words, _ in wanted}
    for doc in docs.values():
        words = In(doc, labels).words
        spans = {(start, end, doc.stored.strings[label]) for start, end, label in doc.stored.gold}
        marked.update((words[start:end], label) for start, end, label in spans)
        for start in range(len(words)):
            for end in range(start + 1, min(start + LONGEST, len(words)) + 1):
                if words[start:end] in words_wanted:
                    taken = {label for one, other, label in spans if one < end and start < other}
                    if any(one <= start and end <= other and other - one > end - start for one, other, _ in spans):
                        continue
                    known = set(labels) - taken - set(doc.stored.annotation.uncovered)
                    free.update((words[start:end], label) for label in known)
    said = Counter()
    for finding, text in about:
        here, better = finding.current, finding.proposed
        if here is None:
            times, against = marked[text.form(better)], free[text.form(better)] - 1
        elif better is None:
            times, against = free[text.form(here)], marked[text.form(here)] - 1
        else:
            times, against = marked[text.form(better)], marked[text.form(here)] - 1
        numbers = [int(number.replace(",", "")) for number in re.findall(r"\(([\d,]+) times?\)", finding.why)]
        assert numbers == [number for number in ((times, against) if times else ()) if number], finding
        found = text.doc.opinion.found if text.doc.opinion else None
        agrees = found is not None and (text.place(better) in found if better else text.place(here) not in found)
        assert ("a pipeline" in finding.why) == agrees, finding
        said[finding.kind, bool(numbers), agrees] += 1
    assert {kind for kind, *_ in said} == set(KINDS)
    assert all(said["spurious", words, found] > 0 for words in (True, False) for found in (True, False)), said
