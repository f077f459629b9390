import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest
import spacy

from labelwise.base.errors import InputError
from labelwise.base.files import digest_folder
from labelwise.corpus.annotation import annotation_of
from labelwise.corpus.manifest import find_partitions
from labelwise.evaluate import predict as module
from labelwise.evaluate.evaluate_pipeline import Evaluation, evaluate_pipeline
from labelwise.evaluate.predict import hold_pipeline, predict_texts
from labelwise.evaluate.predictions import PredictedDoc, read_predictions
from scripts.predict import predict_cli
from tests.conftest import call, read_docs, run_python, save_ruler, task
from tests.pretend_gpu import pretended
from tests.spacy_per_label.bert import make_bert
from tests.train.training import GPU, train_in, with_bert


def predict(model: Path, split: Path, out: Path, **options) -> tuple[Evaluation, list[PredictedDoc]]:
    done = evaluate_pipeline(model, split, predictions=out, **options)
    return done, list(read_predictions(out))


def test_predictions_are_the_pipelines(ruler, demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", 100)
    monkeypatch.setattr("labelwise.corpus.pipeline.MAX_STRINGS", 0)
    done, predicted = predict(ruler, demo_corpus / "test", tmp_path / "p.jsonl")
    nlp = spacy.load(ruler)
    gold_docs = {doc.text: doc for doc in read_docs(demo_corpus / "test", spacy.blank("en"))}
    assert [doc.key for doc in predicted] == sorted({doc.key for doc in predicted})
    assert len(predicted) == len(gold_docs) > 2
    for doc in predicted:
        expected, gold = nlp(doc.text), gold_docs.pop(doc.text)
        assert doc.predicted == sorted((ent.start_char, ent.end_char, ent.label_) for ent in expected.ents)
        assert doc.gold == sorted(annotation_of(gold).accepted)
        assert doc.uncovered == annotation_of(gold).uncovered
    assert not gold_docs
    assert len(find_partitions(demo_corpus / "test")) > 1
    assert done.metrics.texts == len(predicted)
    assert done.words == sum(len(nlp.make_doc(doc.text)) for doc in predicted)
    # There is something to get wrong.
    right = sum(len({*doc.predicted} & {*doc.gold}) for doc in predicted)
    assert 0 < right < min(sum(len(doc.predicted) for doc in predicted), sum(len(doc.gold) for doc in predicted))


def test_predictions_keep_lost_rejected_and_uncovered_annotation(merging, tmp_path):
    text, binary = "big cat at 60degC", "the big cat sat"
    merging.add("manual", ["A", "B"], [task(text, (0, 7), (4, 7, "B"), (11, 13))], split="test")
    judged = (("accept", (4, 7)), ("reject", (12, 15)), ("reject", (8, 10)))
    rows = [task(binary, span, label="C", answer=answer, _view_id="ner") for answer, span in judged]
    merging.add("binary", ["C"], rows, kind="binary", split="test")
    merging.run()
    model = save_ruler(tmp_path / "model", ("A", "big cat"), ("B", "at"), ("C", "sat"), ("C", "the"))
    docs = {doc.text: doc for doc in predict(model, tmp_path / "corpus" / "test", tmp_path / "p")[1]}
    one, other = docs.pop(text), docs.pop(binary)
    assert not docs
    assert one.gold == [(0, 7, "A"), (4, 7, "B"), (11, 13, "A")]
    assert (one.rejected, one.uncovered) == ([], {"C": "none"})
    assert one.predicted == [(0, 7, "A"), (8, 10, "B")]
    assert other.gold == [(4, 7, "C")]
    # One rejected span ends inside of a token: no pipeline with these tokens predicts it, but one with others may.
    assert other.rejected == [(8, 10, "C"), (12, 15, "C")]
    assert other.uncovered == {"A": "none", "B": "none", "C": "partial"}
    assert other.predicted == [(0, 3, "C"), (4, 11, "A"), (12, 15, "C")]


@pytest.fixture
def names(tmp_path) -> Path:
    return save_ruler(tmp_path / "model", ("NAME", [{"IS_TITLE": True}]))


@pytest.fixture
def inputs(tmp_path) -> list[Path]:
    folder = tmp_path / "texts" / "deep"
    folder.mkdir(parents=True)
    for number in range(7):
        (folder / f"{number}.txt").write_text(f"Text {number}")
    (folder / "bad.txt").write_bytes(b"\xff\xfe\xff")
    (folder / "other.ann").write_text("T1\tA 0 4\tText\n")
    (folder / "own.jsonl").write_text('{"text": "Own line"}\n')
    (tmp_path / "one.txt").write_text("one Name\r\n")
    with gzip.open(tmp_path / "more.jsonl.gz", "wt") as file:
        file.write('{"text": "from Bob", "meta": {"doc": "b7"}}\n{oops\n{"text": "Eve"}\n')
    return [tmp_path / "texts", tmp_path / "one.txt", tmp_path / "more.jsonl.gz"]


NAMES = [*(f"deep/{number}.txt" for number in range(7)), "deep/own.jsonl:1", "one.txt", "b7", "more.jsonl.gz:3"]


def run(model, inputs, out, **options) -> tuple[list[dict], Counter]:
    done = [
        part
        for part in predict_texts(model, inputs, out, **options)
        if options["workers"] > 1 or not [*out.parent.rglob("part.jsonl")]
    ]
    rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert sum(part.texts for part in done) == len(rows)
    return rows, sum((part.problems for part in done), Counter())


@pytest.mark.parametrize(("workers", "part"), [(1, 1), (2, 3), (1, 500)])
def test_every_raw_text_is_predicted_once_in_order(names, inputs, tmp_path, monkeypatch, workers, part):
    monkeypatch.setattr(module, "PART", part)
    rows, problems = run(names, inputs, tmp_path / "out.jsonl", workers=workers)
    assert [row["doc"] for row in rows] == NAMES
    assert [row["text"][start:end] for row in rows for start, end, _ in row["predicted"]] == [
        *["Text"] * 7, "Own", "Name", "Bob", "Eve",
    ]  # fmt: skip
    assert problems == {"not UTF-8": 1, "bad JSON": 1}
    assert rows[8]["text"] == "one Name\r\n"


@pytest.mark.parametrize("name", ["part-0.jsonl", "part.jsonl"])
def test_a_file_may_have_the_name_of_a_part(names, inputs, tmp_path, name):
    rows, _ = run(names, inputs, tmp_path / name, workers=2)
    assert [row["doc"] for row in rows] == NAMES


def test_the_command_counts_what_cannot_be_used_and_needs_a_text(names, inputs, tmp_path):
    printed = call(predict_cli, names, *inputs, "--out", tmp_path / "out.jsonl")
    assert "11 texts of 22 words" in printed  # white space at the end of a text is a token
    assert "not UTF-8" in printed
    (tmp_path / "empty").mkdir()
    printed = call(predict_cli, names, tmp_path / "empty", "--out", tmp_path / "none.jsonl", status=1)
    assert "empty: no .txt or .jsonl file with a text" in " ".join(printed.split())
    printed = call(predict_cli, names, *inputs, "--out", tmp_path / "none.jsonl", "--workers", 0, status=1)
    assert "--workers 0: give 1 or more" in printed
    assert not (tmp_path / "none.jsonl").exists()


def test_texts_that_a_worker_was_killed_with_are_named(names, inputs, ruler, demo_corpus, tmp_path, monkeypatch):
    first = os.getpid()
    monkeypatch.setattr(module, "predict_each", lambda *args: os.getpid() == first or os._exit(1))
    with pytest.raises(InputError, match=r"test/part-0000\d\.spacy: a worker was killed"):
        predict(ruler, demo_corpus / "test", tmp_path / "out.jsonl", workers=2)
    with pytest.raises(InputError, match=r"^13 texts from deep/0\.txt on: a worker was killed"):
        run(names, inputs, tmp_path / "out.jsonl", workers=2)


@pytest.mark.long
def test_a_transformer_predicts_in_processes(demo_corpus, tmp_path):
    """Its matrices are large enough for PyTorch's threads, for which a forked worker would wait forever."""
    make_bert(tmp_path / "bert", hidden_size=256, intermediate_size=256)
    train_in(tmp_path, demo_corpus, with_bert(tmp_path / "bert", max_steps=1, eval_frequency=1), GPU)
    for workers in (1, 2):
        (out := tmp_path / str(workers)).mkdir()
        arguments = [
            "--model",
            tmp_path / "model",
            "--split",
            demo_corpus / "train",
            "--gpu-id",
            -1,
            "--workers",
            workers,
        ]
        arguments += ["--predictions", out / "predicted.jsonl"]
        run_python("-m", "scripts.evaluate", "gpu", *arguments, cwd=out, WITH_TORCH="1")
    for name in ("predicted.jsonl", "metrics/gpu.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_a_pipeline_is_held_for_its_device(ruler):
    digest = digest_folder(ruler)
    on_cpu = hold_pipeline(ruler, digest)
    assert hold_pipeline(ruler, digest) is on_cpu
    with pretended():
        assert hold_pipeline(ruler, digest) is not on_cpu
