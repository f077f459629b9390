"""A merge that is run again: after a kill, with more data, with other settings; two at a time; on a full disk."""

import errno
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from labelwise.base.errors import InputError
from labelwise.base.files import locked
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources import jsonl
from tests.conftest import Merging, another_process, run_python, task
from tests.merge.test_run import patch_merge, random_datasets


def inodes(merging: Merging) -> set[int]:
    """Those of the corpus's partitions: the same as long as they are taken from the cache."""
    return {path.stat().st_ino for path in (merging.root / "corpus").glob("*/*.spacy")}


def test_a_data_set_more_costs_what_it_touches(merging, monkeypatch):
    for name, label in (("a", "A"), ("b", "B")):
        merging.add(name, [label], [task(f"text {i} cat", (0, 4, label)) for i in range(300)])
    merging.run(docs_per_partition=30)
    before = inodes(merging)
    merging.add("c", ["A"], [task(f"text {i} cat", (5, 6)) for i in (1, 2, 3)])
    opened: list[str] = []
    open_jsonl = jsonl.open_jsonl
    monkeypatch.setattr(jsonl, "open_jsonl", lambda path: opened.append(path.name) or open_jsonl(path))
    ledger = merging.run(docs_per_partition=30)
    assert opened == ["c.jsonl"]
    assert 1 <= len(before - inodes(merging)) <= 3 * 3 < len(before), "three partitions, a file for each split"
    assert merging.run("fresh", docs_per_partition=30) == ledger
    assert merging.files() == merging.files("fresh")


@pytest.mark.parametrize(
    ("settings", "declared", "code"),
    [
        ({"policies": Policies(overlap="first")}, {}, ""),
        ({"normalize": True}, {}, ""),
        ({}, {"labels": ["A", "Z"]}, ""),
        ({}, {"labels": ["Z"], "rename": {"A": "Z"}}, ""),
        ({}, {"name": "other"}, ""),
        ({}, {}, "0123456789abcdef"),
        ({}, {}, ""),
    ],
)
def test_what_is_not_as_it_was_is_done_again(merging, monkeypatch, settings, declared, code):
    random_datasets(merging, 1)
    merging.run()
    before = inodes(merging)
    merging.declared[0] |= declared
    merging.add("empty", ["A"], [])
    merging.run("fresh", **settings)
    if code:
        patch_merge(monkeypatch, digest_code=lambda *facts: code)
    merging.run(**settings)
    made = inodes(merging)
    assert bool(made - before) == bool(settings or declared or code)
    assert merging.files() == merging.files("fresh")
    merging.run(**settings)
    assert inodes(merging) == made, "now nothing is new"
    if not code:
        kept = (path.rglob("*") for path in (merging.root / "corpus/.cache", merging.root / "fresh/.cache"))
        one, other = ({path.name for path in paths if path.is_file()} for paths in kept)
        assert one == other, "the cache forgets what is no longer used"


def test_a_damaged_cache_does_no_harm(merging):
    """Files of each kind are cut, empty, or missing, and a partition of the corpus is another file."""
    random_datasets(merging, 1)
    merging.run(docs_per_partition=10)
    whole = merging.files()
    cached = [path for path in (merging.root / "corpus/.cache").rglob("*") if path.is_file() and path.suffix != ".TAG"]
    kinds = {path.suffix if path.suffix and path.suffix != ".spacy" else path.name for path in cached}
    assert len(kinds) > 3
    for kind in sorted(kinds):
        for number, file in enumerate(path for path in cached if path.name.endswith(kind)):
            content = file.read_bytes()
            file.unlink()
            if number % 3:
                file.write_bytes(content[: len(content) // 2] if number % 3 == 1 else b"")
        (merging.root / "corpus/train/part-00000.spacy").write_bytes(b"mine")
        merging.run(docs_per_partition=10)
        assert merging.files() == whole, kind


def test_a_text_in_the_cache_that_is_another_is_an_error(merging):
    merging.add("a", ["A"], [{"text": "a text"}])
    merging.run()
    for file in (merging.root / "corpus/.cache").rglob("*.*"):
        if file.is_file() and b"a text" in file.read_bytes():
            file.write_bytes(file.read_bytes().replace(b"a text", b"b text"))
    with pytest.raises(InputError, match=r"\.cache/\S+: the cache is damaged; delete it and run the merge again"):
        merging.run(split_salt="other")


def test_two_merges_to_one_folder_are_an_error(merging):
    random_datasets(merging, 1)
    merging.run()
    before = merging.files()
    with another_process(locked(merging.root / "corpus/manifest.json")):
        with pytest.raises(InputError, match=r"manifest\.json: another process is writing this; wait"):
            merging.run()
        assert merging.files() == before
    merging.run()


def test_workers_end_with_a_merge_that_is_killed(merging):
    """Else they would go on, and hold what they hold."""
    random_datasets(merging, 1)
    if (process := os.fork()) == 0:
        merge_data([merging.root / "tasks/datasets.yml"], merging.root / "out", Settings(), workers=2, progress=stay)
    parent = psutil.Process(process)
    deadline = time.monotonic() + 20
    while not (workers := parent.children(recursive=True)) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert workers
    assert psutil.wait_procs(workers, timeout=10)[1] == []


def stay(items: Any, *_: Any) -> Any:
    """Take results, and never end."""
    list(items)
    time.sleep(60)


def test_a_merge_of_nothing_is_an_error(merging):
    random_datasets(merging, 1)
    merging.run()
    before = merging.files()
    merging.declared.clear()
    merging.add("a", ["A"], ["{oops", {"text": "one", "answer": "ignore"}])
    with pytest.raises(
        InputError, match=r"the corpus would have no text; .*: 1 bad JSON, 1 ignored; .*'a', a\.jsonl, line 1: bad JSON"
    ):
        merge_data([merging.root / "tasks/datasets.yml"], merging.root / "corpus", Settings())
    assert merging.files() == before


@pytest.mark.parametrize("name", ["train/mine.txt", "labels/mine.json", "tokenizer.json", "manifest.json"])
def test_what_no_merge_made_is_not_replaced(merging, name):
    """A folder with a tokenizer.json may be a transformer's."""
    merging.add("a", ["A"], [{"text": "one"}])
    mine = merging.root / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(InputError, match=rf"mine: it has {name.split('/')[0]}\S*, which no merge made; choose another"):
        merging.run("mine")
    assert mine.read_text() == "{}"


@pytest.mark.parametrize("path", ["**/*.jsonl", "corpus", "corpus/problems.jsonl", "link/*.jsonl"])
def test_what_a_merge_wrote_is_not_read_by_the_next_to_the_same_folder(merging, path):
    """Data sets beside it are: so it is in project.yml, where they are in corpus/tasks."""
    merging.add("a", ["A"], [{"text": "one"}, "oops"])
    for _ in range(2):
        assert merging.run(".").rows["merged"] == 1
    merging.run("tasks/corpus")
    (merging.root / "tasks/link").symlink_to("corpus")
    before = merging.files("tasks/corpus")
    (merging.root / "tasks/datasets.yml").write_text(json.dumps([{"name": "all", "path": path, "labels": ["A"]}]))
    with pytest.raises(InputError, match=r"'all': .*/corpus/.* is an input, so .*corpus can't be written there; write"):
        merging.run("tasks/corpus")
    assert merging.files("tasks/corpus") == before
    merging.run("elsewhere")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_an_error_and_the_old_corpus_stays(merging, monkeypatch, workers):
    random_datasets(merging, 2)
    merging.run()
    before = merging.files()
    merging.add("z", ["A"], [{"text": "a new text"}])

    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(DocWriter, "write", fail)
        with pytest.raises(InputError, match=r"corpus\S*: No space left on device; free some"):
            merge_data([merging.root / "tasks/datasets.yml"], merging.root / "corpus", Settings(), workers=workers)
    assert merging.files() == before
    assert sorted(path.name for path in merging.root.iterdir()) == ["corpus", "tasks"]
    merging.run()
    merging.run("fresh")
    assert merging.files() == merging.files("fresh")


@pytest.mark.long
def test_bytes_depend_on_the_data_alone(merging, tmp_path):
    """Not on the number of workers, the hash seed, the order of declarations' files, or the folder."""
    random_datasets(merging, 5, texts=200)
    made = []
    for number, (workers, seed) in enumerate([(1, "0"), (2, "1"), (4, "random")]):
        tasks = tmp_path / f"tasks-{number}"
        tasks.mkdir()
        files = []
        for item in random.Random(number).sample(merging.declared, 3):
            (tasks / item["path"]).write_bytes((merging.root / "tasks" / item["path"]).read_bytes())
            files.append(tasks / f"{item['name']}.yml")
            files[-1].write_text(json.dumps([item]))
        (tasks / "project.yml").write_text("merge: {docs_per_partition: 9, near_duplicates: group}")
        options = ["--workers", workers, "--project", tasks / "project.yml"]
        run_python("-m", "scripts.merge", *files, tasks / "out", *options, PYTHONHASHSEED=seed)
        made.append(Merging(Path(tasks)).files("out"))
    assert made[0] == made[1] == made[2]
    assert len(made[0]) > 20
