import json
import pickle
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

import spacy_per_label  # noqa: F401  registers its component
from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.tasks import file_names
from labelwise.corpus.tokenizer import read_rules, read_tokenizer
from labelwise.datasets.declarations import load_datasets
from labelwise.datasets.own_data import check_project
from labelwise.datasets.untracked import check_tracked
from labelwise.sources.spacy_docs import read_spacy
from labelwise.train.checkpoint import restore
from labelwise.train.parameters import find_parameters
from labelwise.train.training import State, Training
from labelwise.train.training_config import TrainingConfig


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path) -> Path:
    """The file that a bomb makes."""
    mark = tmp_path / "ran"
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists(), "the bomb works"
    mark.unlink()
    return mark


def bombs(mark: Path) -> dict[str, Any]:
    packed = pickle.dumps(Bomb(mark))
    array = {b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [1], b"data": packed}
    return {"bytes": packed, "extension": msgspec.msgpack.Ext(1, packed), "array": array}


def try_to_read(read: Callable[[], Any], error: type[Exception] = InputError) -> None:
    with suppress(error):
        read()


@pytest.mark.guarantee("no-code")
@pytest.mark.parametrize("kind", ["bytes", "extension", "array"])
@pytest.mark.parametrize("field", ["user_data", "span_groups", "cats", "strings", "tokens"])
def test_no_spacy_file_runs_anything(tmp_path, mark, field, kind):
    bomb = bombs(mark)[kind]
    docs = DocBin(store_user_data=True, docs=[spacy.blank("en")("big cat")])
    content = msgspec.msgpack.decode(zlib.decompress(docs.to_bytes()))
    packed = msgspec.msgpack.encode({"a": bomb})
    lists = {"user_data": [packed], "span_groups": [packed], "cats": [bomb], "strings": [bomb]}
    content[field] = lists.get(field, bomb)
    path = tmp_path / "x.spacy"
    for data in (zlib.compress(msgspec.msgpack.encode(content)), zlib.compress(pickle.dumps(Bomb(mark)))):
        path.write_bytes(data)
        for read in (read_stored_docs, read_spacy):
            try_to_read(lambda read=read: list(read(path)))
    assert not mark.exists()


@pytest.mark.guarantee("no-code")
def test_no_checkpoint_runs_anything(tmp_path, mark):
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label").add_label("A")
    nlp.initialize()
    bomb = np.array([Bomb(mark)], dtype=object)
    nlp.config["paths"].update(train=str(tmp_path), dev=str(tmp_path))
    slots = len(find_parameters(nlp))
    training = Training(TrainingConfig(tmp_path, tmp_path), nlp, State("", updates=[0] * slots), tmp_path)
    np.savez(tmp_path / "arrays.npz", **{f"parameter-{number}": bomb for number in range(slots)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        restore(training)
    assert not mark.exists()


@pytest.mark.guarantee("no-code")
@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os.system"]
)
def test_no_yaml_runs_anything(tmp_path, mark, tag):
    for name, read in (
        ("datasets.yml", lambda path: load_datasets([path])),
        ("project.yml", read_rules),
        ("project.yml", lambda path: check_tracked([], tmp_path, path)),
        ("project.yml", check_project),
        ("tokenizer.json", read_tokenizer),
    ):
        (tmp_path / name).write_text(f"a: {tag} ['touch {mark}']\ncommands: []\nassets: []\ntokenizer: {{}}\n")
        try_to_read(lambda read=read, name=name: read(tmp_path / name), Exception)
    assert not mark.exists()


@pytest.mark.guarantee("opaque")
@pytest.mark.guarantee("paths")
def test_no_label_is_a_path():
    """Nor do two labels share a file where case doesn't count."""
    labels = ["../../etc/passwd", "/etc/passwd", "..", ".", "a\0b", "-rf", "$(id)", "C:\\x", "a" * 999]
    labels += ["N", "n", "Amount-Unit", "a/b", "a.b", "problems", "verdicts", "名", "Größe"]
    names = file_names(labels)
    assert names["Amount-Unit"] == "Amount-Unit.jsonl"
    assert len({name.lower() for name in names.values()}) == len(labels)
    assert file_names(labels[::-1]) == dict(reversed(names.items()))
    for name in names.values():
        assert Path(name).name == name not in ("problems.jsonl", "verdicts.jsonl")
        assert len(name) < 256
        assert name.isascii()
        assert not set(name) & set("/\\\0$ ;|&")


@pytest.mark.guarantee("paths")
def test_a_manifest_names_no_file_elsewhere(demo_corpus, tmp_path):
    manifest = json.loads((demo_corpus / "manifest.json").read_text())
    manifest["partitions"] |= {"train/../../../../etc/passwd": "0" * 64}
    (tmp_path / "train").mkdir()
    for file in (demo_corpus / "train").iterdir():
        (tmp_path / "train" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="there is no such file, but"):
        find_partitions(tmp_path / "train")
