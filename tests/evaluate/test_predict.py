"""Predictions for a split: what the pipeline itself says, beside what the corpus has, however they are made."""

import gc
import random
import shutil
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from labelwise.common.code import digest_folder
from labelwise.common.errors import InputError
from labelwise.corpus.annotation import annotation_of, entities
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.evaluate import predict as predict_module
from labelwise.evaluate.predict import Done, PredictJob, hold_pipeline, predict_partition, predict_split
from labelwise.evaluate.predictions import PredictedDoc, read_predictions
from labelwise.train.reader import read_docs
from tests.merge.test_run import random_datasets


def predict(model: Path, split: Path, out: Path, **options) -> tuple[list[Done], list[PredictedDoc]]:
    done = list(predict_split(model, split, out, **options))
    return done, list(read_predictions(out))


def save_ruler(folder: Path, patterns: dict[str, str], nlp=None) -> Path:
    """A pipeline that finds each of some texts as its label."""
    nlp = nlp or spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", last=True)
    ruler.add_patterns([{"label": label, "pattern": text} for text, label in patterns.items()])
    nlp.to_disk(folder)
    return folder


def save_demo_ruler(corpus: Path, folder: Path) -> Path:
    """Rules that are right about some entities of the test set, wrong about others, with the project's tokenizer."""
    nlp = make_nlp(*read_tokenizer(corpus / "tokenizer.json"))
    found = sorted({(ent.text, ent.label_) for doc in read_docs(corpus / "test", nlp) for ent in doc.ents})
    patterns = dict(found[::2]) | {text: found[0][1] for text, _ in found[1::6]} | {"of": "UNKNOWN"}
    return save_ruler(folder, patterns, nlp)


@pytest.fixture(scope="module")
def ruler(demo_corpus, tmp_path_factory) -> Path:
    return save_demo_ruler(demo_corpus, tmp_path_factory.mktemp("ruler") / "model")


@pytest.fixture(scope="module")
def trained(demo_corpus, tmp_path_factory) -> Path:
    """A small ner that has learned something, in a pipeline with a tokenizer that isn't the corpus's."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    ner = {"model": {"@architectures": "spacy.TransitionBasedParser.v2", "tok2vec": TOK2VEC, **PARSER}}
    nlp.add_pipe("ner", config=ner)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in read_docs(demo_corpus / "train", nlp)]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for eg in examples * 8:
        nlp.update([eg], sgd=optimizer)
    nlp.to_disk(folder := tmp_path_factory.mktemp("trained") / "model")
    return folder


TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 16,
    "depth": 1,
    "embed_size": 200,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
PARSER = {
    "state_type": "ner",
    "extra_state_tokens": False,
    "hidden_width": 16,
    "maxout_pieces": 1,
    "use_upper": True,
    "nO": None,
}


@pytest.fixture(params=["ruler", "trained"])
def model(request) -> Path:
    return request.getfixturevalue(request.param)


def test_predictions_are_the_pipelines(model, demo_corpus, tmp_path):
    """Doc by doc, and the gold is what the merge's Docs carry."""
    done, found = predict(model, demo_corpus / "test", tmp_path / "p.jsonl")
    nlp = spacy.load(model)
    gold_docs = {doc.text: doc for doc in read_docs(demo_corpus / "test", spacy.blank("en"))}
    assert [doc.key for doc in found] == sorted({doc.key for doc in found})
    assert len(found) == len(gold_docs) > 3
    for doc in found:
        expected, gold = nlp(doc.text), gold_docs.pop(doc.text)
        assert doc.predicted == sorted((ent.start_char, ent.end_char, ent.label_) for ent in expected.ents)
        assert doc.gold == sorted(annotation_of(gold).accepted)
        assert doc.entities == sorted(entities(gold))
        assert doc.uncovered == annotation_of(gold).uncovered
    assert not gold_docs
    # One of each partition, of as many words as the pipeline's tokenizer makes.
    assert len(done) == len(find_partitions(demo_corpus / "test")) > 1
    assert sum(part.texts for part in done) == len(found)
    assert sum(part.words for part in done) == sum(len(nlp.make_doc(doc.text)) for doc in found)
    # There is something to get wrong.
    right = sum(len({*doc.predicted} & {*doc.gold}) for doc in found)
    assert 0 < right < min(sum(len(doc.predicted) for doc in found), sum(len(doc.gold) for doc in found))


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_give_the_same_bytes(model, workers, demo_corpus, tmp_path):
    done = [predict(model, demo_corpus / "train", tmp_path / str(n), workers=n)[0] for n in (1, workers)]
    assert done[0] == done[1]
    assert (tmp_path / "1").read_bytes() == (tmp_path / str(workers)).read_bytes()


def test_more_workers_than_partitions(ruler, demo_corpus, tmp_path):
    predict(ruler, demo_corpus / "dev", tmp_path / "a", workers=9)
    predict(ruler, demo_corpus / "dev", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_size_of_partitions_does_not_matter(merging, tmp_path):
    """Nor that of batches. The corpus has gold of all kinds: nested, inside of tokens, rejected, not covered."""
    random_datasets(merging, 2)
    model = save_ruler(tmp_path / "model", {"big": "A", "cat sat": "B", "60degC": "C", "mat": "UNKNOWN"})
    files = []
    for size in (3, 100):
        merging.run(f"corpus{size}", docs_per_partition=size, dev_ratio=0.0, test_ratio=0.9)
        done, found = predict(
            model, tmp_path / f"corpus{size}" / "test", tmp_path / f"{size}.jsonl", workers=size % 2 + 1
        )
        files.append((tmp_path / f"{size}.jsonl").read_bytes())
        assert len(done) == len(find_partitions(tmp_path / f"corpus{size}" / "test"))
    assert files[0] == files[1]
    assert len(found) > 40
    assert any(set(doc.gold) - set(doc.entities) for doc in found)
    assert any(doc.uncovered for doc in found)


@pytest.mark.parametrize(("batch", "batch_size"), [(1, 1000), (100, 1000), (10**6, 2)])
@pytest.mark.long
def test_the_size_of_batches_does_not_matter(batch, batch_size, ruler, demo_corpus, tmp_path, monkeypatch):
    predict(ruler, demo_corpus / "train", tmp_path / "a")
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", batch)
    monkeypatch.setattr(hold_pipeline(ruler, digest_folder(ruler)), "batch_size", batch_size)
    predict(ruler, demo_corpus / "train", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.long
def test_a_vocabulary_that_forgets_gives_the_same_bytes(model, workers, demo_corpus, tmp_path, monkeypatch):
    predict(model, demo_corpus / "train", tmp_path / "a")
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", 100)
    hold_pipeline.cache_clear()
    monkeypatch.setattr("labelwise.corpus.pipeline.MAX_STRINGS", 0)
    before = len(hold_pipeline(model, digest_folder(model)).vocab.strings)
    predict(model, demo_corpus / "train", tmp_path / "b", workers=workers)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(hold_pipeline(model, digest_folder(model)).vocab.strings) == before


def spans(*spans) -> list[dict]:
    return [{"start": start, "end": end, "label": label} for start, end, label in spans]


def test_what_was_lost_rejected_or_not_covered_is_there(merging, tmp_path):
    text, binary = "big cat at 60degC", "the big cat sat"
    merging.add("manual", ["A", "B"], [{"text": text, "spans": spans((0, 7, "A"), (4, 7, "B"), (11, 13, "A"))}])
    merging.add(
        "binary",
        ["C"],
        [
            {"text": binary, "spans": spans((4, 7, "C")), "answer": "accept", "_view_id": "ner"},
            {"text": binary, "spans": spans((12, 15, "C")), "answer": "reject", "_view_id": "ner"},
            {"text": binary, "spans": spans((8, 10, "C")), "answer": "reject", "_view_id": "ner"},
        ],
        kind="binary",
    )
    merging.declared[0]["split"] = merging.declared[1]["split"] = "test"
    (merging.root / "tasks" / "datasets.yml").write_text(str(merging.declared))
    merging.run()
    model = save_ruler(tmp_path / "model", {"big cat": "A", "at": "B", "sat": "C", "the": "C"})
    found = {doc.text: doc for doc in predict(model, tmp_path / "corpus" / "test", tmp_path / "p")[1]}
    one, other = found.pop(text), found.pop(binary)
    assert not found
    assert one.gold == [(0, 7, "A"), (4, 7, "B"), (11, 13, "A")]
    assert (one.entities, one.rejected, one.uncovered) == ([(0, 7, "A")], [], {"C": "none"})
    assert one.predicted == [(0, 7, "A"), (8, 10, "B")]
    assert (other.gold, other.entities) == ([(4, 7, "C")], [(4, 7, "C")])
    # One rejected span ends inside of a token: no pipeline with these tokens predicts it, but one with others may.
    assert other.rejected == [(8, 10, "C"), (12, 15, "C")]
    assert other.uncovered == {"A": "none", "B": "none", "C": "partial"}
    assert other.predicted == [(0, 3, "C"), (4, 11, "A"), (12, 15, "C")]


def test_a_span_of_half_a_token_is_found_by_other_tokens(merging, tmp_path):
    """Offsets are in characters: a pipeline may have a tokenizer that isn't the corpus's."""
    merging.add("a", ["A"], [{"text": "at 60degC", "spans": spans((3, 5, "A"))}], split="test")
    merging.run()
    nlp = spacy.blank("en")
    nlp.tokenizer.infix_finditer = spacy.util.compile_infix_regex([r"(?<=\d)(?=[a-z])"]).finditer
    model = save_ruler(tmp_path / "model", {"60": "A"}, nlp)
    _, [doc] = predict(model, tmp_path / "corpus" / "test", tmp_path / "p")
    assert doc.predicted == doc.gold == [(3, 5, "A")]
    assert doc.entities == []


ODD = ["a\r\nb  c\t", "\x00 a", "e\u0301 😀 a", "\ufeffa", "a\u2028b", "\xa0a\xa0"]


def test_odd_texts_are_predicted_as_they_are(merging, tmp_path):
    merging.add("a", ["A"], [{"text": text, "spans": []} for text in ODD], split="test")
    merging.run()
    _, found = predict(save_ruler(tmp_path / "model", {"a": "A"}), tmp_path / "corpus" / "test", tmp_path / "p")
    assert sorted(doc.text for doc in found) == sorted(ODD)
    for doc in found:
        assert all(doc.text[start:end] == "a" for start, end, _ in doc.predicted)
    assert sum(len(doc.predicted) for doc in found) >= 5


@pytest.mark.long
def test_a_long_text(merging, tmp_path):
    """Longer than what spaCy takes unless told otherwise."""
    rng = random.Random(0)
    words = rng.choices(["cat", "mat", "sat"], k=260_000)
    text = " ".join(words)
    assert len(text) > 10**6
    merging.add("a", ["A"], [{"text": text, "spans": spans((0, 3, "A"))}], split="test")
    merging.run()
    done, [doc] = predict(save_ruler(tmp_path / "model", {"cat": "A"}), tmp_path / "corpus" / "test", tmp_path / "p")
    assert doc.text == text
    assert len(doc.predicted) == words.count("cat")
    assert done == [Done(texts=1, words=260_000)]


@spacy.Language.component("labelwise_tests_fail")
def fail(doc: Doc) -> Doc:
    if "needle" in doc.text:
        raise RuntimeError("found the needle")
    return doc


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.long
def test_nothing_is_left_when_it_fails_in_the_middle(workers, before, merging, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    rows = [{"text": f"text {number}", "spans": []} for number in range(40)]
    merging.add("a", ["A"], [*rows, {"text": "needle", "spans": []}], split="test")
    merging.run(docs_per_partition=4)
    nlp = spacy.blank("en")
    nlp.add_pipe("labelwise_tests_fail")
    nlp.to_disk(tmp_path / "model")
    out = tmp_path / "out" / "p.jsonl"
    if before is not None:
        out.parent.mkdir()
        out.write_bytes(before)
    done = []
    with pytest.raises(RuntimeError, match="found the needle"):
        done.extend(predict_split(tmp_path / "model", tmp_path / "corpus" / "test", out, workers=workers))
    found = [path.read_bytes() for path in out.parent.iterdir()]
    assert found == ([] if before is None else [before])
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_output_is_there_when_all_is_done(ruler, demo_corpus, tmp_path):
    out = tmp_path / "p.jsonl"
    run = predict_split(ruler, demo_corpus / "test", out)
    next(run)
    assert not out.exists()
    run.close()
    assert list(tmp_path.iterdir()) == []
    list(predict_split(ruler, demo_corpus / "test", out))
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


def test_no_pipeline_is_an_error(demo_corpus, tmp_path):
    with pytest.raises(InputError, match=r"model: no trained pipeline; run the training first"):
        list(predict_split(tmp_path / "model", demo_corpus / "test", tmp_path / "p"))
    assert list(tmp_path.iterdir()) == []


def test_no_partition_is_an_error(ruler, demo_corpus, tmp_path):
    with pytest.raises(InputError, match=r"none: no \.spacy file; run the merge, with a share for this split"):
        list(predict_split(ruler, demo_corpus / "none", tmp_path / "p"))
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_that_is_not_from_a_merge_is_an_error(ruler, tmp_path):
    (tmp_path / "test").mkdir()
    spacy.tokens.DocBin(docs=[spacy.blank("en")("a cat")], store_user_data=True).to_disk(tmp_path / "test" / "a.spacy")
    with pytest.raises(InputError, match="use the merge's corpus"):
        list(predict_split(ruler, tmp_path / "test", tmp_path / "p"))


def test_a_worker_reads_the_corpus_that_it_was_sent_and_no_other(ruler, demo_corpus, tmp_path):
    """One of a cluster is sent jobs alone."""
    corpus = Path(shutil.copytree(demo_corpus, tmp_path / "corpus"))
    one, *_ = find_partitions(corpus / "train")
    job = PredictJob(ruler, digest_folder(ruler), one, tmp_path / "out")
    assert predict_partition(job).texts > 0
    one.file.write_text("another")
    with pytest.raises(InputError, match=r"part-00000\.spacy: it has changed since it was merged; start again"):
        predict_partition(job)


def test_docs_are_freed_batch_by_batch(ruler, demo_corpus, tmp_path, monkeypatch):
    """Of all that a pipeline has computed, a batch of one text, and what is referred to of the one before, is alive."""
    before = {id(item) for item in gc.get_objects() if type(item) is Doc}
    join, alive = predict_module.join, []

    def count(packed, doc):
        alive.append(sum(type(item) is Doc and id(item) not in before for item in gc.get_objects()))
        return join(packed, doc)

    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", 1)
    monkeypatch.setattr(predict_module, "join", count)
    predict(ruler, demo_corpus / "train", tmp_path / "p")
    assert len(alive) > 10
    assert max(alive) <= alive[0] + 3
