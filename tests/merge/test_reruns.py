import errno
import json
import os
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from labelwise.base.errors import InputError
from labelwise.base.files import locked
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from tests.conftest import Merging, another_process, run_python
from tests.merge.test_merge_data import random_datasets
from tests.test_files import ended_at


@pytest.mark.guarantee("exclusive")
def test_two_merges_to_one_folder_are_an_error(merging):
    random_datasets(merging, 1)
    merging.run()
    before = merging.files()
    with another_process(locked(merging.root / "corpus/manifest.json")):
        with pytest.raises(InputError, match=r"manifest\.json: another process is writing this; wait"):
            merging.run()
        assert merging.files() == before
    merging.run()


@pytest.mark.parametrize("before", [True, False])
def test_a_merge_takes_the_place_of_one_that_was_killed_while_it_moved_its_files(merging, before):
    random_datasets(merging, 1, texts=20)
    merging.run("fresh", near_duplicates="off")
    merging.run("old", near_duplicates="off", split_salt="old")
    fresh = merging.files("fresh")
    killed = 0
    for number in range(1, 100, 7):
        out = f"out-{number}"
        if before:
            shutil.copytree(merging.root / "old", merging.root / out)
        if not ended_at(number, partial(merging.run, out, near_duplicates="off")):
            break
        killed += 1
        merging.run(out, near_duplicates="off")
        assert merging.files(out) == fresh
    assert killed > 3


def test_workers_end_with_a_merge_that_is_killed(merging):
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
    """Consume results, and never end."""
    list(items)
    time.sleep(60)


def test_a_merge_of_nothing_is_an_error(merging):
    random_datasets(merging, 1)
    merging.run()
    before = merging.files()
    merging.declared.clear()
    merging.add("a", ["A"], ["{oops", {"text": "one", "answer": "ignore"}])
    with pytest.raises(
        InputError, match=r"nothing to merge: .*: 1 bad JSON, 1 ignored; .*'a', a\.jsonl, line 1: bad JSON"
    ):
        merge_data([merging.root / "tasks/datasets.yml"], merging.root / "corpus", Settings())
    assert merging.files() == before


@pytest.mark.guarantee("own-files")
@pytest.mark.parametrize("name", ["train/mine.txt", "labels/mine.json", "tokenizer.json", "manifest.json"])
def test_what_no_merge_made_is_not_replaced(merging, name):
    """A folder with a tokenizer.json may be a transformer's."""
    merging.add("a", ["A"], [{"text": "one", "spans": []}])
    mine = merging.root / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(InputError, match=rf"mine: it has {name.split('/')[0]}\S*, which no merge made; choose another"):
        merging.run("mine")
    assert mine.read_text() == "{}"


@pytest.mark.parametrize("path", ["**/*.jsonl", "corpus", "corpus/near_duplicates.jsonl", "link/*.jsonl"])
def test_what_a_merge_wrote_is_not_read_by_the_next_to_the_same_folder(merging, path):
    merging.add("a", ["A"], [{"text": "one", "spans": []}, "oops"])
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


@pytest.mark.guarantee("full-disk")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_an_error_and_the_old_corpus_stays(merging, monkeypatch, workers):
    random_datasets(merging, 2)
    merging.run()
    before = merging.files()
    merging.add("z", ["A"], [{"text": "a new text", "spans": []}])

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


@pytest.mark.guarantee("same-bytes")
@pytest.mark.long
def test_bytes_depend_on_the_data_alone(merging, tmp_path):
    random_datasets(merging, 5, texts=200)
    contents = []
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
        contents.append(Merging(Path(tasks)).files("out"))
    assert contents[0] == contents[1] == contents[2]
    assert len(contents[0]) > 20
