import pytest
import spacy
import spacy.training.loop as spacy_loop
from spacy.pipeline.tok2vec import Tok2VecListener

from labelwise.common.errors import InputError
from labelwise.corpus import streaming
from labelwise.train.out_of_memory import Updates
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.run import train
from labelwise.train.shortcuts import batch_id
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"
SMALL = {
    "training.max_steps": 12,
    "training.eval_frequency": 4,
    "training.batcher.size": 150,
    "components.tok2vec.model.encode.width": 16,
}


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.long
def test_memory_zones_change_nothing(demo_corpus, tmp_path, monkeypatch, resume):
    """All words forgotten after each window of batches and each batch of evaluation, or none."""
    results = []
    for strings in (0, 10**9):
        monkeypatch.setattr(streaming, "MAX_STRINGS", strings)
        out = tmp_path / str(strings)
        if resume:
            with monkeypatch.context() as patched:
                patched.setattr("labelwise.train.run.tidy_pipeline", lambda *given: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    train(CPU, demo_corpus, out / "m", out / "c.tsv", overrides=SMALL)
        train(CPU, demo_corpus, out / "m", out / "c.tsv", overrides=SMALL, resume=resume)
        results.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    one, other = results
    config = next(path for path in one if path.name == "config.cfg")
    assert one.pop(config) != other.pop(config)  # names the curve
    assert one == other


def test_epochs_are_counted_and_streamed(demo_corpus, tmp_path):
    overrides = {**SMALL, "training.max_epochs": 2, "training.max_steps": 0}
    trained = train(CPU, demo_corpus, tmp_path / "m", tmp_path / "c.tsv", overrides=overrides)
    last = (tmp_path / "c.tsv").read_text().splitlines()[-1].split("\t")
    assert last[1] == "1"
    assert trained.texts["texts"] == trained.texts["pieces"] > 0


def test_spacys_loop_is_itself_again(demo_corpus, tmp_path):
    names = ("create_train_batches", "create_evaluation_callback", "subdivide_batch", "train_while_improving")
    before = [getattr(spacy_loop, name) for name in names]
    with pytest.raises(InputError, match=r"corpora\.dev: the loader in_memory is for training only"):
        train(CPU, demo_corpus, tmp_path / "m", tmp_path / "c", overrides={**SMALL, "corpora.dev.loader": "in_memory"})
    assert [getattr(spacy_loop, name) for name in names] == before


def test_a_batch_is_known_by_its_words():
    nlp = spacy.blank("en")
    one, other = nlp("a long b"), nlp("b a")
    assert batch_id([one, other]) == batch_id([other, one]) == Tok2VecListener.get_batch_id([one, other]) % 2**64
    assert batch_id([one]) != batch_id([other])


def test_a_training_without_a_second_evaluation_keeps_the_first(demo_corpus, tmp_path):
    overrides = {**SMALL, "training.max_steps": 3, "training.eval_frequency": 10}
    train(CPU, demo_corpus, tmp_path / "m", tmp_path / "c.tsv", overrides=overrides)
    assert [line.split("\t")[0] for line in (tmp_path / "c.tsv").read_text().splitlines()] == ["step", "0"]


def test_examples_of_an_epoch_that_is_held_are_not_changed(demo_corpus, tmp_path, monkeypatch):
    """Annotating components write into the predicted Docs: the loader in_memory holds its Examples for other epochs."""
    held, written = [], []
    read, update = PartitionedCorpus.__call__, Updates.update

    def reading(self, nlp):
        for eg in read(self, nlp):
            held.append(eg)
            yield eg

    def watched(self, nlp, own, batch, **options):
        update(self, nlp, own, batch, **options)
        written.append(any(eg.predicted.has_annotation("ENT_IOB") for eg in batch))

    monkeypatch.setattr(PartitionedCorpus, "__call__", reading)
    monkeypatch.setattr(Updates, "update", watched)
    overrides = {**SMALL, "corpora.train.loader": "in_memory", "training.annotating_components": ["ner"]}
    train(CPU, demo_corpus, tmp_path / "m", tmp_path / "c.tsv", overrides={**overrides, "training.max_steps": 8})
    assert written == [True] * 9
    assert not any(eg.predicted.has_annotation("ENT_IOB") for eg in held)
