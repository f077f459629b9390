import os
import shutil
import struct
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.train import loop
from labelwise.train import train_pipeline as run
from labelwise.train.ahead import AHEAD, open_background
from spacy_per_label import PerLabelRecognizer
from tests.train.test_ranks import children
from tests.train.training import CPU, GPU, files, train_in, with_bert

pytest.importorskip("spacy_transformers")
UPDATE = PerLabelRecognizer.update


@pytest.fixture
def trained(tiny_bert, demo_corpus, tmp_path, monkeypatch):
    def train(
        name: str, *, ahead: bool, log: Any = None, resume: bool = False, corpus: Path = demo_corpus, **steps: Any
    ):
        with monkeypatch.context() as patched:
            if ahead:
                patched.setattr("labelwise.train.ahead.MIN_GPU_ID", -1)
                patched.setattr(Language, "update", lambda *args, **options: pytest.fail("it makes Examples itself"))
            steps = {"eval_frequency": 2, "max_steps": 4} | steps
            log = log or (lambda message: None)
            result = train_in(tmp_path / name, corpus, with_bert(tiny_bert, **steps), GPU, log, resume=resume)
        return files(tmp_path / name) | {"texts": repr(result.texts).encode()}

    return train


@pytest.mark.guarantee("prepared")
@pytest.mark.parametrize(
    "steps",
    [{"accumulate_gradient": 3}, {"max_epochs": 2, "batcher.size": 100_000}],
    ids=["three parts", "to the end of the corpus"],
)
def test_prepared_batches_teach_the_same_to_the_bit(steps, trained):
    before = children()
    alone = trained("alone", ahead=False, **steps)
    assert trained("ahead", ahead=True, **steps) == alone
    assert children() == before


def test_prepared_batches_are_cut_where_memory_runs_out(trained, monkeypatch):
    def fail_beyond(self, examples, **options):
        UPDATE(self, examples, **options)
        if sum(map(len, examples)) > 300:
            raise MemoryError

    monkeypatch.setattr(PerLabelRecognizer, "update", fail_beyond)
    alone, ahead = [], []
    assert trained("alone", ahead=False, log=alone.append) == trained("ahead", ahead=True, log=ahead.append)
    assert alone == ahead
    assert "out of memory" in alone[1]


@pytest.mark.guarantee("prepared")
def test_the_end_of_the_process_is_an_error_from_which_training_resumes_to_the_same_bytes(trained, monkeypatch):
    before, update = children(), loop.update_within_memory
    more = {"max_steps": 2 + AHEAD + 1}  # than those whose batches may be ready

    def kill(training, *args):
        if training.state.step == 2:
            for pid in children() - before:
                psutil.Process(pid).kill()
        return update(training, *args)

    with monkeypatch.context() as patched:
        patched.setattr(loop, "update_within_memory", kill)
        with pytest.raises(InputError, match=r"process that prepares batches was killed.* resumes from the last check"):
            trained("killed", ahead=True, **more)
    assert children() == before
    assert trained("killed", ahead=True, resume=True, **more) == trained("whole", ahead=False, **more)


def die_amid_a_batch():
    """End the process while a part of a result is in the pipe."""
    pipe = sys._getframe(1).f_locals["result_queue"]._writer
    os.write(pipe.fileno(), struct.pack("!i", 1000) + b"a part of it")
    os._exit(1)


def test_the_end_of_the_process_amid_a_batch_is_an_error_too(monkeypatch):
    """Python waits for the rest of a batch while any process could write it."""
    before = children()
    with open_background(0) as pool, pytest.raises(BrokenExecutor):
        pool.submit(die_amid_a_batch).result(timeout=20)
    assert children() == before


def test_a_reading_error_in_the_process_ends_training(trained, demo_corpus, tmp_path, monkeypatch):
    corpus = shutil.copytree(demo_corpus, tmp_path / "corpus")

    def merge_meanwhile(*args):
        for file in (corpus / "train").glob("*.spacy"):
            file.write_bytes(b"of another merge")

    monkeypatch.setattr(run, "check_ranks", merge_meanwhile)
    with pytest.raises(InputError, match=r"corpus/.*\.spacy: .*; start again"):
        trained("failed", ahead=True, corpus=corpus)


def test_a_pipeline_that_learns_from_docs_makes_its_own(demo_corpus, tmp_path: Path, monkeypatch):
    train_in(tmp_path / "alone", demo_corpus, config=CPU)
    monkeypatch.setattr("labelwise.train.ahead.MIN_GPU_ID", -1)
    train_in(tmp_path / "ahead", demo_corpus, config=CPU)
    assert files(tmp_path / "alone") == files(tmp_path / "ahead")
