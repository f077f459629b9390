"""Completing a corpus: what is filled, what isn't, what is skipped, and what spaCy's ner makes of it."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from labelwise.common.errors import InputError
from labelwise.complete.run import complete
from labelwise.evaluate.run import evaluate
from labelwise.merge.rules.policies import Policies
from labelwise.train.completed import is_completed
from labelwise.train.run import train
from tests.train.test_resume import CPU, files

STEPS = {"training.max_steps": 60, "training.eval_frequency": 60}
PLACES = {"PER": ("Ann", "Bob", "Cleo", "Dan"), "LOC": ("Rome", "Oslo", "Lima", "Bonn")}
TEXTS = [f"{PLACES['PER'][n % 4]} saw {PLACES['LOC'][n // 4 % 4]} {n} times." for n in range(160)]


def spans(text: str, *labels: str) -> list[dict[str, object]]:
    words = [(word, label) for label in labels for word in PLACES[label] if word in text]
    return [{"start": text.index(word), "end": text.index(word) + len(word), "label": label} for word, label in words]


def add(merging, name: str, label: str, texts: list[str], **options) -> None:
    merging.add(name, [label], [{"text": text, "spans": spans(text, label)} for text in texts], **options)


@pytest.fixture
def partial(merging):
    """PER and LOC, each known on its own half of the texts; the test texts are complete."""
    add(merging, "people", "PER", TEXTS[:80])
    add(merging, "places", "LOC", TEXTS[80:140])
    for name, label in (("tp", "PER"), ("tl", "LOC")):
        add(merging, name, label, TEXTS[140:], split="test")
    for name, label in (("dp", "PER"), ("dl", "LOC")):
        add(merging, name, label, [f"{text} Then." for text in TEXTS[100:120]], split="dev")
    merging.run(test_ratio=0, dev_ratio=0)
    return merging.root


@pytest.mark.slow
def test_a_ner_learns_from_completed_texts(partial):
    done = complete(CPU, partial / "corpus", partial / "completed", overrides=STEPS)
    assert done.texts == {"filled": 140}
    assert done.outside == {}
    assert all(rate.plausible for rate in done.rates)
    assert {(rate.dataset, rate.label) for rate in done.rates} == {("people", "LOC"), ("places", "PER")}
    # An oracle: nearly all entities are there now, those of gold and those that were found.
    nlp = spacy.blank("en")
    docs = [
        doc
        for file in sorted((partial / "completed/train").iterdir())
        for doc in DocBin().from_disk(file).get_docs(nlp.vocab)
    ]
    assert sorted(doc.text for doc in docs) == sorted(TEXTS[:140])
    found = {(doc.text, ent.start_char, ent.end_char, ent.label_) for doc in docs for ent in doc.ents}
    true = {
        (text, each["start"], each["end"], each["label"]) for text in TEXTS[:140] for each in spans(text, "PER", "LOC")
    }
    assert len(found & true) > 0.95 * len(true)
    assert len(found - true) < 0.05 * len(true)
    filled = sum(counts.get("filled", 0) for counts in done.spans.values())
    assert filled == sum(len(doc.spans["completed"]) for doc in docs) == len(found) - 140
    books = json.loads((partial / "completed/completion.json").read_text())
    assert books["spans"] == done.spans
    # And what it is for.
    given = {"overrides": STEPS, "recognizer": "ner"}
    with pytest.raises(InputError, match="spaCy's ner can't learn from them as they are"):
        train(CPU, partial / "corpus", partial / "model", partial / "c.tsv", **given)
    train(CPU, partial / "corpus", partial / "model", partial / "c.tsv", completed=partial / "completed", **given)
    model = spacy.load(partial / "model")
    assert model.get_pipe_meta("ner").factory == "ner"
    assert evaluate(partial / "model", partial / "corpus/test").metrics.all_gold.f > 0.9


@pytest.mark.slow
def test_equal_completions_are_equal_to_the_byte_and_dev_and_test_stay(partial):
    before = files(partial / "corpus")
    for name in ("one", "other"):
        complete(CPU, partial / "corpus", partial / name / "completed", overrides=STEPS)
    assert files(partial / "one/completed/train") == files(partial / "other/completed/train")
    assert files(partial / "corpus") == before
    assert sorted(path.name for path in (partial / "one").iterdir()) == ["completed"]


@pytest.mark.slow
def test_a_completion_does_not_tell_where_it_was_made(partial, monkeypatch):
    """Else its bytes, and its digest in dvc.lock, would differ from folder to folder."""
    monkeypatch.chdir(partial)
    steps = {"training.max_steps": 1, "training.eval_frequency": 1}
    complete(CPU, Path("corpus"), Path("completed"), overrides=steps)
    assert [name for name, content in files(Path("completed")).items() if str(partial).encode() in content] == []


@pytest.mark.slow
def test_labels_that_cannot_be_there_are_not_filled_in(merging):
    """Half of the texts are of another kind, in which there are far fewer names."""
    add(merging, "people", "PER", TEXTS[:120])
    others = [f"Ann saw {' and '.join(str(n + m) for m in range(20))} times." for n in range(100)]
    merging.add("codes", ["LOC"], [{"text": text, "spans": []} for text in others])
    merging.add(
        "dev", ["PER"], [{"text": f"{text} So.", "spans": spans(text, "PER")} for text in TEXTS[:60]], split="dev"
    )
    merging.run(test_ratio=0, dev_ratio=0)
    done = complete(CPU, merging.root / "corpus", merging.root / "completed", overrides=STEPS)
    [rate] = [rate for rate in done.rates if rate.dataset == "codes"]
    assert (rate.label, rate.plausible) == ("PER", False)
    assert 0 < rate.per_1000 < rate.known_per_1000 / 2
    assert set(done.spans["PER"]) == {"not plausible"}


@pytest.mark.slow
def test_a_label_that_no_text_is_complete_for_is_not_filled_in(merging):
    add(merging, "people", "PER", TEXTS[:60])
    judged = [{"text": text, "spans": spans(text, "LOC"), "answer": "accept"} for text in TEXTS[30:90]]
    merging.add("judged", ["LOC"], judged, kind="binary")
    add(merging, "dev", "PER", [f"{text} So." for text in TEXTS[:20]], split="dev")
    merging.run(test_ratio=0, dev_ratio=0)
    done = complete(CPU, merging.root / "corpus", merging.root / "completed", overrides=STEPS)
    assert done.outside == {"LOC": "no text in train is complete for it"}
    assert done.texts == {"complete for no label": 30, "filled": 60}
    assert done.spans.get("LOC", {}).keys() <= {"not plausible"}


@pytest.mark.parametrize(
    ("recognizer", "coverage", "covered", "why"),
    [
        ("per-label", "by-label", False, "recognizer per-label learns from texts as they are annotated"),
        ("ner", "outside", False, "coverage is outside"),
        ("ner", "drop", False, "coverage is drop"),
        ("ner", "by-label", True, "all texts in train are complete for all labels"),
    ],
)
def test_where_there_is_nothing_to_complete_that_is_said(merging, recognizer, coverage, covered, why):
    add(merging, "people", "PER", TEXTS[:10])
    add(merging, "places", "LOC", TEXTS[:10] if covered else TEXTS[:9])
    merging.run(test_ratio=0, dev_ratio=0, policies=Policies(coverage=coverage))
    done = complete(CPU, merging.root / "corpus", merging.root / "completed", recognizer=recognizer)
    assert done.skipped == why
    assert json.loads((merging.root / "completed/completion.json").read_text())["skipped"] == why
    assert not list((merging.root / "completed").rglob("*.spacy"))


def test_only_a_completion_is_replaced(merging):
    add(merging, "people", "PER", TEXTS[:40])
    merging.run()
    mine = merging.root / "mine" / "completed.txt"
    mine.parent.mkdir()
    mine.touch()
    with pytest.raises(InputError, match=r"mine would be replaced, and isn't an earlier completion, as it has no"):
        complete(CPU, merging.root / "corpus", merging.root / "mine")
    assert mine.exists()
    for _ in range(2):
        complete(CPU, merging.root / "corpus", merging.root / "completed")


def test_a_completion_of_another_corpus_is_refused(merging):
    add(merging, "people", "PER", TEXTS[:10])
    merging.run(test_ratio=0, dev_ratio=0.3)
    complete(CPU, merging.root / "corpus", merging.root / "completed")
    add(merging, "places", "LOC", TEXTS[:9])
    merging.run(test_ratio=0, dev_ratio=0.3)
    for path, message in (("completed", "it completes another corpus"), ("none", "run the completion")):
        with pytest.raises(InputError, match=message):
            train(
                CPU,
                merging.root / "corpus",
                merging.root / "m",
                merging.root / "c.tsv",
                recognizer="ner",
                completed=merging.root / path,
            )


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "{}", "3"])
def test_books_that_are_none_are_named(tmp_path, content):
    (tmp_path / "completion.json").write_text(content)
    with pytest.raises(InputError, match=r"completion\.json: .*; run the completion"):
        is_completed(tmp_path, tmp_path)
