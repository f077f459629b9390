import json
import shutil
import zlib
from pathlib import Path

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import SPLITS, digest_partitions, find_partitions, read_manifest, unchanged
from labelwise.evaluate import evaluate_pipeline as evaluation
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT

DAMAGES = {
    "missing": r"part-\d{5}\.spacy: there is no such file, but .*manifest\.json lists it; run the merge again",
    "gone": r"(part-\d{5}\.spacy: there is no such file, but .*lists it; run the merge|there is no file \S+/dev)",
    "more": r"more\.spacy: .*manifest\.json doesn't list it; delete it, or run the merge again",
    "another": r"part-\d{5}\.spacy: it has changed since it was merged; start again, or run the merge again",
}


@pytest.fixture
def corpus(demo_corpus, tmp_path) -> Path:
    return Path(shutil.copytree(demo_corpus, tmp_path / "corpus"))


def damage_split(split: Path, damage: str) -> None:
    first, second, *_ = files = [partition.file for partition in find_partitions(split)]
    if damage == "missing":
        second.unlink()
    elif damage == "gone":
        shutil.rmtree(split)
    elif damage == "more":
        shutil.copy(first, split / "more.spacy")
    else:
        for file in files:
            shutil.copy(find_partitions(split.parent / ("test" if split.name != "test" else "train"))[0].file, file)


def merge_again(corpus: Path, declared: Path) -> None:
    file = corpus.parent / "datasets.yml"
    file.write_text(yaml.safe_dump([{"name": "a", "path": str(declared), "labels": ["PERSON"]}]))
    merge_data([file], corpus.parent / "merged", Settings())


def train(corpus: Path) -> None:
    one_step = {"training.max_steps": 1, "training.eval_frequency": 1}
    recipe = TrainingConfig(ROOT / "configs/cpu.cfg", corpus, overrides=one_step)
    train_pipeline(recipe, corpus.parent / "model", corpus.parent / "curve.tsv")


@pytest.mark.guarantee("changed-corpus")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("split", SPLITS)
def test_a_corpus_that_is_not_what_was_merged_is_refused(corpus, ruler, split, damage):
    damage_split(corpus / split, damage)
    readers = {
        "train": [lambda: train(corpus)],
        "dev": [
            lambda: train(corpus),
            lambda: merge_again(corpus, corpus),
            lambda: merge_again(corpus, corpus / "dev"),
        ],
        "test": [lambda: evaluation.evaluate_pipeline(ruler, corpus / "test")],
    }
    for read in readers[split]:
        with pytest.raises(InputError, match=DAMAGES[damage]):
            read()
    assert not (corpus.parent / "model").exists()
    if split == "dev":
        merge_again(corpus, corpus / "test")


def test_the_compression_of_another_zlib_is_no_change(corpus):
    [*docs] = (doc.text for partition in find_partitions(corpus / "dev") for doc in read_stored_docs(partition))
    for partition in find_partitions(corpus / "dev"):
        content = partition.file.read_bytes()
        partition.file.write_bytes(zlib.compress(zlib.decompress(content), level=9))
        assert partition.file.read_bytes() != content
    assert [doc.text for partition in find_partitions(corpus / "dev") for doc in read_stored_docs(partition)] == docs


@pytest.mark.guarantee("same-bytes")
def test_a_merge_has_the_same_digest_on_every_machine(english_corpus):
    """Computed on an AMD EPYC of family 25, with zlib 1.2.13; a change of what a merge writes changes it."""
    digest = "abc4e19bf0378d62811a33139e8dd5f89b208487373d45ef1ab88ff2d8be9d14"
    assert digest_partitions(read_manifest(english_corpus).partitions) == digest


@pytest.mark.parametrize("content", ["", "[" * 100_000, '{"partitions": {}}', "a later format"])
def test_another_manifest_is_refused(corpus, content):
    file = corpus / "manifest.json"
    later = json.dumps({**json.loads(file.read_text()), "format": 99})
    file.write_text(later if content == "a later format" else content)
    with pytest.raises(InputError, match=r"manifest\.json: not what this version's merge writes .*; run the merge"):
        read_manifest(corpus)


@pytest.mark.parametrize("content", [None, "[]"])
def test_a_folder_of_another_program_is_read_as_it_is(demo_corpus, tmp_path, content):
    split = Path(shutil.copytree(demo_corpus / "test", tmp_path / "test"))
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    assert sum(1 for file in find_partitions(split) for _ in read_stored_docs(file))


def test_a_corpus_that_is_merged_meanwhile_is_refused(corpus):
    manifest = json.loads((corpus / "manifest.json").read_text())
    manifest["partitions"].popitem()
    with (
        pytest.raises(InputError, match="another merge replaced the corpus meanwhile; run the command again"),
        unchanged(corpus),
    ):
        (corpus / "manifest.json").write_text(json.dumps(manifest))
