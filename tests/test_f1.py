"""The baselines of `benchmarks.f1` learn, and are scored against all gold."""

import json

import pytest

from benchmarks import f1, measure, public
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from tests.conftest import ROOT

TOWNS, NAMES, DAYS = ("Rome", "Oslo", "Bern", "Lima"), ("Ann", "Bob", "Eve", "Max"), ("Monday", "Friday", "Sunday")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """300 texts with a span of each of three labels."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    file = tmp_path / "towns.jsonl"
    with file.open("w", encoding="utf8") as written:
        for number in range(300):
            words = {"NAME": NAMES[number % 4], "DAY": DAYS[number % 3], "TOWN": TOWNS[number % 5 % 4]}
            text = f"No. {number}: {words['NAME']} left {words['TOWN']} on {words['DAY']}."
            spans = [
                {"start": text.index(word), "end": text.index(word) + len(word), "label": label}
                for label, word in words.items()
            ]
            written.write(json.dumps({"text": text, "spans": spans}) + "\n")
    return file


def test_the_corpus_of_a_group_has_its_texts_and_its_labels_complete(corpus, tmp_path):
    groups = [tmp_path / str(group) for group in range(3)]
    texts = []
    for group, folder in enumerate(groups):
        folder.mkdir()
        merged = public.merge(corpus, "labels", folder, group)
        assert read_manifest(merged).labels == [sorted(["NAME", "DAY", "TOWN"])[group]]
        stored = [doc for file in find_partitions(merged / "train") for doc in read_stored_docs(file)]
        assert not any(doc.annotation.uncovered for doc in stored)
        texts.append({doc.text for doc in stored})
    assert all(texts)
    assert not set.intersection(*texts)


def test_one_baseline_for_each_set_of_labels_finds_all_of_them(corpus):
    f1.main([corpus], ["labels"], [0], ["crf"], 3, [0], 0, "", "found")
    ((name, _, _, method, penalties, seeds, score, *_),) = json.loads(
        (measure.RESULTS / "found.json").read_text(encoding="utf8")
    )["rows"]
    assert (name, method, seeds) == ("towns", "CRF, one for each set of labels", 1)
    assert penalties.startswith("L1")
    assert score > 0.99


@pytest.mark.parametrize(
    "method", [*(pytest.param(name, marks=pytest.mark.long) for name in ("spancat", "ner-missing", "ner")), "per-label"]
)
def test_each_method_is_trained_and_scored(corpus, method, monkeypatch):
    monkeypatch.setattr(f1, "BATCHES", f1.BATCHES[1:])
    annotated = "labels" if method == "ner-missing" else "all"
    f1.main([corpus], [annotated], [0], [method], 1, [4], 0, "", "found")
    ((*_, score, macro, every, seconds, words),) = json.loads(
        (measure.RESULTS / "found.json").read_text(encoding="utf8")
    )["rows"]
    assert all(0 <= one <= 1 for one in (score, macro, every))
    assert seconds > 0 < words


def test_of_spans_that_overlap_the_longest_stands():
    assert f1.longest_first({(0, 5, "A"), (3, 10, "B"), (10, 12, "A"), (0, 2, "C")}) == {
        *((3, 10, "B"), (10, 12, "A"), (0, 2, "C"))
    }


def test_a_method_of_spacys_loop_wants_a_number_of_steps(corpus):
    with pytest.raises(SystemExit, match="--steps: spaCy's loop has no number of its own; give one"):
        f1.main([corpus], ["all"], [0], ["spancat"], 1, [0], 0, "", "found")
