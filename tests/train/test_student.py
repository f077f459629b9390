"""A student learns train, and what a teacher thinks of raw texts."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import spacy

from labelwise.commands.train_student import train_student_cli
from labelwise.common.errors import InputError
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import partitions_of
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.recognizer.per_label import UNKNOWN, targets_of
from labelwise.train.committee import train_committee
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from labelwise.train.student import RawTexts, train_student, write_taught
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"
STEPS = {"training.max_steps": 12, "training.eval_frequency": 12}
TEXTS = [
    "Dr. Zoë Barton of Mercury Labs came to Springfield on 3 May 1999.",
    "Nobody knew, of course, that Mrs. Ada Quill was the owner of Halcyon Foods.",
    "🙂 It rained.\n\nIn Lisbon, they sold 20 mg of aspirin to Dr. Barton.",
]


@pytest.fixture(scope="module")
def committee(demo_corpus, tmp_path_factory) -> Path:
    """A committee of two, which has learnt next to nothing."""
    folder = tmp_path_factory.mktemp("teacher")
    train_committee(Recipe(CPU, demo_corpus, overrides=STEPS), folder / "model", folder / "curve.tsv", members=2)
    return folder / "model"


@pytest.fixture
def raw(demo_corpus, tmp_path) -> Path:
    """A folder of raw texts: a text file, and JSONL with others, equal ones, one of test, and one that is none."""
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXTS[0], encoding="utf8")
    known = next(read_stored_docs(next((demo_corpus / "test").glob("*.spacy")))).text
    lines = [json.dumps({"text": text}) for text in (*TEXTS[1:], TEXTS[0], TEXTS[1], known)]
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("\n".join([*lines, "{", '{"text": " "}']).encode()))
    return folder


def read_train(folder: Path) -> dict[str, tuple[list, dict]]:
    """Each text of some partitions, with its gold and what else is known of it."""
    docs = [doc for file in sorted(folder.glob("*.spacy")) for doc in read_stored_docs(file)]
    return {doc.text: (sorted(doc.gold), msgspec.structs.asdict(doc.annotation)) for doc in docs}


def test_raw_texts_are_those_that_no_split_has_each_once(demo_corpus, raw):
    texts = RawTexts(raw, demo_corpus)
    assert len(texts) == 3
    assert list(texts) == [TEXTS[0], *TEXTS[1:]]


def test_there_are_at_most_as_many_as_train_has_whatever_their_order(demo_corpus, tmp_path):
    count = len(read_train(demo_corpus / "train"))
    names = [f"This is raw text {number}." for number in range(2 * count)]
    chosen = []
    for file, order in (("one.jsonl", names), ("other.jsonl", names[::-1])):
        (tmp_path / file).write_text("\n".join(json.dumps({"text": text}) for text in order), encoding="utf8")
        texts = RawTexts(tmp_path / file, demo_corpus)
        assert len(texts) == len(list(texts)) == count
        chosen.append(set(texts))
    assert chosen[0] == chosen[1]
    numbers = [int(text.split()[-1][:-1]) for text in chosen[0]]
    assert count / 3 < sum(number < count for number in numbers) < count * 2 / 3


def test_a_teacher_says_what_it_thinks_of_raw_texts_and_gold_stays(committee, demo_corpus, raw, tmp_path):
    nlp = spacy.load(committee)
    write_taught(nlp, demo_corpus, RawTexts(raw, demo_corpus), tmp_path / "train")
    before, after = read_train(demo_corpus / "train"), read_train(tmp_path / "train")
    assert {text: after.pop(text) for text in before} == before
    assert set(after) == set(TEXTS)
    for text, (gold, known) in after.items():
        assert gold == known["gold"] == []
        assert known["uncovered"] == dict.fromkeys(nlp.get_pipe("ner").labels, "none")
        found = np.concatenate(nlp.get_pipe("ner").model.predict([nlp.make_doc(text)])).astype("float64")
        p = np.exp(found.reshape(len(found), -1, 5))
        p /= p.sum(axis=2, keepdims=True)
        for number, label in enumerate(nlp.get_pipe("ner").labels):
            given = np.frombuffer(known["soft"].get(label, b""), np.uint8).reshape(-1, 5) / 255
            expected = given if label in known["soft"] else np.tile([1, 0, 0, 0, 0], (len(p), 1))
            assert abs(p[:, number] - expected).max() <= 0.5 / 255 * (1 if label in known["soft"] else 5)


@pytest.mark.parametrize("coverage", ["by-label", "drop", "outside"])
def test_raw_texts_are_learned_with_each_policy_and_train_as_ever(
    coverage, committee, demo_corpus, raw, tmp_path, monkeypatch
):
    def partial_docs(file: Path) -> Iterator[StoredDoc]:
        """Forget a label of each text."""
        for doc in read_stored_docs(file):
            merged = msgspec.structs.replace(doc.annotation, uncovered={"PERSON": "none"})
            yield replace(doc, merged=merged)

    nlp = spacy.load(committee)
    monkeypatch.setattr("labelwise.train.student.read_stored_docs", partial_docs)
    write_taught(nlp, demo_corpus, RawTexts(raw, demo_corpus), tmp_path / "train", coverage)
    place = {label: number for number, label in enumerate(nlp.get_pipe("ner").labels)}
    read = {eg.text: targets_of(eg, place) for eg in PartitionedCorpus(tmp_path / "train", coverage=coverage)(nlp)}
    own = [read.pop(text) for text in read_train(demo_corpus / "train") if text in read]
    assert len(own) == (0 if coverage == "drop" else len(read_train(demo_corpus / "train")))
    assert all((known.tags[:, place["PERSON"]] == UNKNOWN).all() == (coverage == "by-label") for known in own)
    assert all((known.soft is not None) == (coverage == "by-label") for known in own)
    assert set(read) == set(TEXTS)
    assert all((read[text].tags == UNKNOWN).all() and (read[text].soft.sum(axis=2) > 0.99).all() for text in TEXTS)


def test_the_student_is_a_pipeline_like_any_other(committee, demo_corpus, raw, tmp_path, monkeypatch):
    monkeypatch.chdir(demo_corpus.parent)
    recipe = Recipe(CPU, Path(demo_corpus.name), seed=3, overrides=STEPS)
    train_pipeline(recipe, tmp_path / "plain", tmp_path / "plain.tsv")
    told = []
    train_student(recipe, tmp_path / "student", tmp_path / "student.tsv", teacher=committee, raw=raw, tell=told.append)
    assert told == [f"Learning what {committee} thinks of 3 texts of {raw}"]
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "plain", "plain.tsv", "student", "student.tsv"}
    plain, student = ((tmp_path / name / "config.cfg").read_text() for name in ("plain", "student"))
    assert student == plain.replace("plain.tsv", "student.tsv")
    files = [sorted(path.name for path in (tmp_path / name).rglob("*")) for name in ("plain", "student")]
    assert files[0] == files[1]
    models = [(tmp_path / name / "ner" / "model").read_bytes() for name in ("plain", "student")]
    assert models[0] != models[1]


def test_it_learns_from_raw_texts_what_gold_does_not_say(demo_corpus, tmp_path, monkeypatch):
    steps = {"training.max_steps": 60, "training.eval_frequency": 60}
    recipe = Recipe(CPU, demo_corpus, overrides=steps)
    train_pipeline(recipe, tmp_path / "teacher", tmp_path / "teacher.tsv")
    raw = tmp_path / "raw.jsonl"
    # Not those of train, of which gold isn't read here.
    texts = [{"text": f"{text} "} for text in read_train(demo_corpus / "train")]
    raw.write_text("\n".join(map(json.dumps, texts)), encoding="utf8")
    first = next(doc for file in partitions_of(demo_corpus, "train") for doc in read_stored_docs(file))
    monkeypatch.setattr("labelwise.train.student.read_stored_docs", lambda file: [first][: file.name == files[0].name])
    files = partitions_of(demo_corpus, "train")
    student, alone = tmp_path / "student", tmp_path / "alone"
    train_student(recipe, student, tmp_path / "student.tsv", teacher=tmp_path / "teacher", raw=raw)
    train_pipeline(replace(recipe, overrides={**steps, "corpora.train.limit": 1}), alone, tmp_path / "alone.tsv")
    found = [evaluate_pipeline(model, demo_corpus / "test").metrics.all_gold.f for model in (student, alone)]
    assert found[0] > found[1] + 0.2


def test_what_cannot_teach_is_refused(committee, demo_corpus, raw, tmp_path):
    empty, plain = tmp_path / "empty", tmp_path / "blank"
    empty.mkdir()
    spacy.blank("en").to_disk(plain)
    recipe = Recipe(CPU, demo_corpus, overrides=STEPS)
    out = tmp_path / "out" / "model"
    with pytest.raises(InputError, match=r"empty: no new text that can be used; put \.txt or JSONL files there"):
        train_student(recipe, out, out.with_suffix(".tsv"), teacher=committee, raw=empty)
    with pytest.raises(InputError, match="blank: it has no head for COMPANY, DATE, PERSON, PLACE; weasel"):
        train_student(recipe, out, out.with_suffix(".tsv"), teacher=plain, raw=raw)
    assert not out.exists()


def test_the_command_says_what_it_changes(committee, demo_corpus, raw, tmp_path, capsys):
    out = tmp_path / "student"
    train_student_cli(CPU, demo_corpus, out, teacher=committee, raw=raw, max_steps=12)
    shown = capsys.readouterr().out
    assert "thinks of 3 texts of" in " ".join(shown.split())
    assert "F in test" in shown
    figures = [evaluate_pipeline(model, demo_corpus / "test").metrics.all_gold.f for model in (committee, out)]
    [row] = [line.split() for line in shown.splitlines() if line.startswith("all ")]
    assert row[1:] == [f"{f:.3f}" for f in figures]
