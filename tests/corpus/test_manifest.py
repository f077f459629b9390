"""A corpus is what its manifest lists, wherever it is read."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
import yaml

from labelwise.common.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.evaluate import run as evaluation
from labelwise.evaluate.tables import Tables
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.train.reader import read_docs
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT
from tests.evaluate.test_predict import save_demo_ruler

CPU = ROOT / "configs" / "cpu.cfg"


@pytest.fixture
def corpus(demo_corpus, tmp_path) -> Path:
    return Path(shutil.copytree(demo_corpus, tmp_path / "corpus"))


@pytest.fixture(scope="module")
def model(demo_corpus, tmp_path_factory) -> Path:
    return save_demo_ruler(demo_corpus, tmp_path_factory.mktemp("ruler") / "model")


def merge_again(corpus: Path, declared: Path) -> None:
    file = corpus.parent / "datasets.yml"
    file.write_text(yaml.safe_dump([{"name": "a", "path": str(declared), "labels": ["PERSON"]}]))
    merge_data([file], corpus.parent / "merged", Settings())


READERS: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "training": (
        "train",
        lambda corpus, model: train_pipeline(
            Recipe(CPU, corpus, overrides=ONE_STEP), corpus.parent / "m", corpus.parent / "c"
        ),
    ),
    "scores while training": (
        "dev",
        lambda corpus, model: train_pipeline(
            Recipe(CPU, corpus, overrides=ONE_STEP), corpus.parent / "m", corpus.parent / "c"
        ),
    ),
    "evaluation": ("test", lambda corpus, model: evaluation.evaluate_pipeline(model, corpus / "test")),
    "evaluation in processes": (
        "test",
        lambda corpus, model: evaluation.evaluate_pipeline(model, corpus / "test", workers=2),
    ),
    "spaCy's Docs": ("train", lambda corpus, model: list(read_docs(corpus / "train", spacy.blank("en")))),
    "a merge": ("dev", lambda corpus, model: merge_again(corpus, corpus)),
    "a merge of a split": ("dev", lambda corpus, model: merge_again(corpus, corpus / "dev")),
}
ONE_STEP = {"training.max_steps": 1, "training.eval_frequency": 1}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", r"part-\d{5}\.spacy: there is no such file, but .*manifest\.json lists it; run the merge again"),
        ("more", r"more\.spacy: .*manifest\.json doesn't list it; delete it, or run the merge again"),
        ("another", r"part-\d{5}\.spacy: it has changed since .*manifest\.json was written; run the merge again"),
    ],
)
def test_a_corpus_that_is_not_what_was_merged_is_refused(corpus, model, reader, damage, message):
    split, read = READERS[reader]
    first, second, *_ = files = find_partitions(corpus / split)
    if damage == "missing":
        second.unlink()
    elif damage == "more":
        shutil.copy(first, corpus / split / "more.spacy")
    else:
        for file in files:
            file.unlink()  # other splits may have links to it
            shutil.copy(find_partitions(corpus / ("test" if split != "test" else "train"))[0], file)
    with pytest.raises(InputError, match=message):
        read(corpus, model)
    assert not (corpus.parent / "m").exists()


def test_a_split_that_is_missing_is_not_left_out_of_a_merge(corpus):
    shutil.rmtree(corpus / "dev")
    with pytest.raises(InputError, match=r"dev/part-00000\.spacy: there is no such file, but .* lists it"):
        merge_again(corpus, corpus)
    merge_again(corpus, corpus / "test")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "[" * 100_000, '{"partitions": {}}'])
def test_what_is_no_manifest_is_named(corpus, content):
    (corpus / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"manifest\.json: not the manifest of a merge; run the merge again"):
        read_manifest(corpus)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"partitions": 3}'])
def test_a_folder_of_another_program_is_read_as_it_is(demo_corpus, tmp_path, content):
    split = Path(shutil.copytree(demo_corpus / "test", tmp_path / "test"))
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    assert sum(1 for file in find_partitions(split) for _ in read_stored_docs(file))


def test_a_manifest_that_changes_is_read_again(corpus):
    file = find_partitions(corpus / "test")[0]
    assert list(read_stored_docs(file))
    manifest = json.loads((corpus / "manifest.json").read_text())
    manifest["partitions"][f"test/{file.name}"] = "0" * 64
    (corpus / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="it has changed since"):
        list(read_stored_docs(file))


def digests(corpus: Path) -> dict[str, str]:
    return read_manifest(corpus)["partitions"]


def test_predictions_of_fewer_texts_are_refused(corpus, model):
    predictions = corpus.parent / "predictions.jsonl"
    evaluation.evaluate_pipeline(model, corpus / "test", predictions=predictions)
    lines = predictions.read_bytes().splitlines(keepends=True)
    predictions.write_bytes(b"".join(lines[1:]))
    with pytest.raises(InputError, match=r"predictions\.jsonl: not the predictions for the texts of .*test;"):
        evaluation.score(predictions, corpus / "test", Tables.of(corpus.parent), {})


@pytest.mark.parametrize("number", [2, "two", None])
def test_a_corpus_of_a_later_format_is_refused_and_one_without_is_read(corpus, number):
    manifest = json.loads((corpus / "manifest.json").read_text())
    assert manifest.pop("format") == 1
    (corpus / "manifest.json").write_text(json.dumps(manifest))
    assert read_manifest(corpus)["splits"]
    (corpus / "manifest.json").write_text(json.dumps({**manifest, "format": number}))
    with pytest.raises(
        InputError, match=r"manifest\.json: a later labelwise merged this corpus, in format .*, reads format 1"
    ):
        read_manifest(corpus)
