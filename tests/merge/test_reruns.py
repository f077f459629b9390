"""A merge that is run again: after a kill, with more data, with other settings; two at a time; on a full disk."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import psutil
import pytest

from labelwise.common.errors import InputError
from labelwise.common.files import locked, remove
from labelwise.corpus import docbin_writer
from labelwise.merge import cache, commit, partition, run
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.merge.runs import RunWriter
from labelwise.sources.declarations import load_datasets
from tests.conftest import ROOT, another_process
from tests.merge.test_run import random_datasets


def text_files(merging, count: int) -> None:
    """Two data sets over the same texts."""
    for name, label in (("a", "A"), ("b", "B")):
        rows = [{"text": f"text {i} cat", "spans": [{"start": 0, "end": 4, "label": label}]} for i in range(count)]
        merging.add(name, [label], rows)


def run_in_process_group(merging, out: str, **settings) -> int:
    """Start a merge with two workers in a process group of its own; returns its process."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        try:
            datasets = [merging.root / "tasks" / "datasets.yml"]
            merge_data(datasets, merging.root / out, Settings(**settings), workers=2)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.setpgid(pid, pid)  # whichever of the two comes first
    return pid


def kill_group(process: int) -> None:
    """Kill a process and its workers, and wait until none of them writes any more."""
    workers = psutil.Process(process).children(recursive=True)
    os.killpg(process, signal.SIGKILL)
    while any(is_alive(worker) for worker in workers):
        time.sleep(0.005)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process runs; one that nobody has waited for doesn't, but is still listed."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def count_work(monkeypatch) -> dict[str, int]:
    """Count the runs that are written and the texts that are merged, from now on."""
    done = {"files": 0, "texts": 0}
    write, merge_one = RunWriter.write, partition.merge_one

    def counting_write(self):
        before = len(self.runs)
        write(self)
        done["files"] += len(self.runs) - before

    def counting_merge(*args):
        done["texts"] += 1
        return merge_one(*args)

    monkeypatch.setattr(RunWriter, "write", counting_write)
    monkeypatch.setattr(partition, "merge_one", counting_merge)
    return done


def test_a_data_set_more_costs_what_it_touches(merging, monkeypatch):
    text_files(merging, 1000)
    settings = {"docs_per_partition": 100}
    merging.run(**settings)
    written = {path: path.stat().st_ino for path in (merging.root / "corpus").glob("*/*.spacy")}
    new = [{"text": f"text {i} cat", "spans": [{"start": 5, "end": 6, "label": "A"}]} for i in (1, 2, 3)]
    merging.add("c", ["A"], new)
    done = count_work(monkeypatch)
    ledger = merging.run(**settings)
    assert done["files"] == 1
    assert 3 <= done["texts"] < 3 * 100, "three of sixteen partitions"
    same = [path for path, inode in written.items() if path.stat().st_ino == inode]
    assert len(written) - len(same) <= 3 * 3, "three partitions, a file for each split"
    assert len(written) > 20
    monkeypatch.undo()
    assert merging.run("fresh", **settings) == ledger
    assert merging.files() == merging.files("fresh")


def test_nothing_is_done_when_nothing_is_new(merging, monkeypatch):
    random_datasets(merging, 1)
    ledger = merging.run()
    whole = merging.files()
    done = count_work(monkeypatch)
    assert merging.run() == ledger
    assert done == {"files": 0, "texts": 0}
    assert merging.files() == whole


@pytest.mark.parametrize(
    "settings",
    [
        {"policies": Policies(overlap="first")},
        {"lang": "de"},
        {"split_salt": "other"},
        {"normalize": True},
        {"near_duplicates": "group"},
    ],
)
def test_other_settings_redo_all(merging, monkeypatch, settings):
    random_datasets(merging, 1)
    merging.run("fresh", **settings)
    done = count_work(monkeypatch)
    merging.run()
    once = done["texts"]
    merging.run(**settings)
    assert done["texts"] == 2 * once
    monkeypatch.undo()
    assert merging.files() == merging.files("fresh")


@pytest.mark.parametrize("options", [{"kind": "binary"}, {"split": "test"}, {"labels": ["A", "Z"]}, {"name": "other"}])
def test_another_declaration_redoes_what_it_says(merging, options):
    random_datasets(merging, 1)
    merging.run()
    merging.declared[0] |= options
    merging.add("empty", ["A"], [])
    merging.run()
    merging.run("fresh")
    assert merging.files() == merging.files("fresh")


def test_other_code_redoes_all(merging, monkeypatch):
    random_datasets(merging, 1)
    merging.run()
    monkeypatch.setattr(cache, "digest_code", lambda *facts: "newer")
    done = count_work(monkeypatch)
    merging.run()
    assert done["texts"]
    assert {path.name for path in (merging.root / "corpus/.cache").iterdir()} == {"CACHEDIR.TAG", "newer"}


@pytest.mark.parametrize("what", ["folder", "file", "link", "another program's tag", "link to a cache"])
def test_a_cache_of_others_is_refused_and_stays(merging, what):
    """A home folder has a `.cache`, too."""
    random_datasets(merging, 1)
    home, elsewhere = merging.root / "home", merging.root / "elsewhere"
    theirs = elsewhere if what.startswith("link") else home / ".cache"
    home.mkdir()
    if what == "file":
        theirs.write_text("mine")
    elif what == "link to a cache":
        merging.run("elsewhere")
        theirs = elsewhere / ".cache"
        (theirs / "0123456789abcdef").mkdir()
    else:
        (theirs / "0123456789abcdef").mkdir(parents=True)
    if what.startswith("link"):
        (home / ".cache").symlink_to(theirs)
    if what == "another program's tag":
        (theirs / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# pip's\n")
    before = sorted(merging.root.rglob("*"))
    with pytest.raises(InputError, match=r"home/\.cache: this isn't marked as the cache of a merge.* delete it if"):
        merging.run("home")
    assert sorted(merging.root.rglob("*")) == before


def test_what_others_put_into_the_cache_stays(merging):
    random_datasets(merging, 1)
    merging.run()
    theirs = merging.root / "corpus/.cache/pip"
    theirs.mkdir()
    merging.run(split_salt="other")
    assert theirs.is_dir()


def test_an_empty_cache_is_taken(merging):
    random_datasets(merging, 1)
    (merging.root / "corpus/.cache").mkdir(parents=True)
    merging.run()
    merging.run()
    tag = (merging.root / "corpus/.cache/CACHEDIR.TAG").read_bytes()
    assert tag.startswith(b"Signature: 8a477f597d28d172789f06886806bc55\n")  # https://bford.info/cachedir


def test_the_cache_forgets_what_is_no_longer_used(merging):
    random_datasets(merging, 1)
    merging.run(docs_per_partition=3)
    merging.run()
    merging.run("fresh")
    sizes = [
        sorted(path.name for path in (merging.root / out / ".cache").rglob("*") if path.is_file())
        for out in ("corpus", "fresh")
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("name", ["result", "train.spacy", "*.tasks", "*.index", "*.extract", "*.problems"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_cache_does_no_harm(merging, name, damage):
    random_datasets(merging, 1)
    merging.run(docs_per_partition=10)
    whole = merging.files()
    found = sorted((merging.root / "corpus/.cache").rglob(name))
    assert found
    for number, file in enumerate(found):
        content = file.read_bytes()
        file.unlink()
        if damage == "cut":
            file.write_bytes(content[: len(content) // 2] if number % 2 else b"")
    merging.run(docs_per_partition=10)
    assert merging.files() == whole


def test_a_text_in_the_cache_that_is_another_is_an_error(merging):
    merging.add("a", ["A"], [{"text": "a text"}])
    merging.run()
    (tasks,) = (merging.root / "corpus/.cache").rglob("*.tasks")
    tasks.write_bytes(tasks.read_bytes().replace(b"a text", b"b text"))
    with pytest.raises(InputError, match=r"\.cache/\w+: the cache is damaged; delete it and run the merge again"):
        merging.run(split_salt="other")


def test_a_changed_partition_is_made_again(merging):
    """The corpus shares its files with the cache, but not what others do to them."""
    random_datasets(merging, 1)
    merging.run()
    whole = merging.files()
    file = next((merging.root / "corpus/train").glob("*.spacy"))
    with file.open("r+b") as partition:
        partition.write(b"mine")
    merging.run()
    assert merging.files() == whole


def test_two_merges_to_one_folder_are_an_error(merging):
    random_datasets(merging, 1)
    merging.run()
    before = merging.files()
    with another_process(locked(merging.root / "corpus/manifest.json")):
        with pytest.raises(InputError, match=r"manifest\.json: another process is writing this; wait"):
            merging.run()
        merging.run("other")
        assert merging.files() == before
    merging.run()


def test_workers_end_with_a_merge_that_is_killed(merging):
    """Else they would go on, and hold what they hold."""
    random_datasets(merging, 1, texts=2000)
    process = run_in_process_group(merging, "corpus", docs_per_partition=5)
    parent = psutil.Process(process)
    deadline = time.monotonic() + 20
    while not (workers := parent.children(recursive=True)) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert workers
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    merging.run(docs_per_partition=5)


def test_a_corpus_is_not_merged_into_itself(merging, tmp_path):
    random_datasets(merging, 1)
    merging.run()
    before = merging.files()
    merging.declared[:] = [{"name": "earlier", "path": "../corpus", "labels": ["A"]}]
    merging.add("a", ["A"], [{"text": "one"}])
    message = r"data set 'earlier': .*\.spacy is an input, so .*corpus can't be written there"
    with pytest.raises(InputError, match=message):
        merging.run()
    assert merging.files() == before


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


def test_what_no_merge_made_is_not_replaced(merging):
    random_datasets(merging, 1)
    mine = merging.root / "mine" / "train" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(InputError, match=r"mine: it has train/mine\.txt, which no merge made; choose another"):
        merging.run("mine")
    declared = [merging.root / "tasks/datasets.yml"]
    with pytest.raises(InputError, match=r"tasks: this is a folder, but a file is to be written there"):
        merge_data(declared, merging.root / "corpus", Settings(), metrics=merging.root / "tasks")
    assert mine.read_text() == "mine"
    assert (merging.root / "tasks/a.jsonl").is_file()


@pytest.mark.parametrize("name", ["labels/mine.json", "train/part-mine.spacy", "tokenizer.json", "manifest.json"])
def test_what_has_a_name_that_a_merge_gives_is_not_replaced(merging, name):
    """A folder with a tokenizer.json may be a transformer's."""
    random_datasets(merging, 1)
    mine = merging.root / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(
        InputError, match=rf"mine: it has {name.partition('/')[0]}, which no merge made; choose another"
    ):
        merging.run("mine")
    assert mine.read_text() == "{}"


def test_what_an_earlier_merge_left_is_replaced(merging):
    """A killed one leaves no manifest, and a fetched corpus has no cache."""
    random_datasets(merging, 1)
    merging.run("killed")
    (merging.root / "killed/manifest.json").unlink()
    merging.run("fetched")
    remove(merging.root / "fetched/.cache")
    for out in ("killed", "fetched"):
        merging.run(out, split_salt="other")
    assert merging.files("killed") == merging.files("fetched")


@pytest.mark.parametrize(
    "path", ["**/*.jsonl", "corpus/problems.jsonl", "../tasks/c*/lost_*", "link/*.jsonl", ".cache"]
)
def test_what_a_merge_wrote_is_not_read_by_the_next_to_the_same_folder(merging, path):
    merging.add("a", ["A"], [{"text": "one"}, "oops"])
    merging.run("tasks/corpus")
    (merging.root / "tasks/link").symlink_to("corpus")
    if path == ".cache":
        (tasks,) = (merging.root / "tasks/corpus/.cache").rglob("*.tasks")
        path = str(tasks.relative_to(merging.root / "tasks"))
    before = merging.files("tasks/corpus")
    merging.add("all", ["A"], [])
    merging.declared[:] = [{"name": "all", "path": path, "labels": ["A"]}]
    merging.add("b", ["A"], [{"text": "two"}])
    if path == "**/*.jsonl":
        merging.declared.pop()
        (merging.root / "tasks/datasets.yml").write_text(json.dumps(merging.declared))
    with pytest.raises(InputError, match=r"'all': .*/corpus/.* is an input, so .*corpus can't be written there; write"):
        merging.run("tasks/corpus")
    assert merging.files("tasks/corpus") == before
    merging.run("elsewhere")


def test_data_sets_beside_what_a_merge_writes_are_read(merging):
    """So it is in project.yml: corpus/tasks."""
    merging.add("a", ["A"], [{"text": "one"}])
    for _ in range(2):
        assert merging.run(".").rows["merged"] == 1


def test_a_corpus_is_an_input_of_another_merge(merging):
    merging.add("a", ["A"], [{"text": "one"}])
    merging.run()
    merging.declared[:] = [{"name": "earlier", "path": "../corpus", "labels": ["A"]}]
    merging.add("b", ["A"], [{"text": "two"}])
    for _ in range(2):
        assert merging.run("other").rows["merged"] == 2


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (RunWriter, "write"),
        (docbin_writer.DocWriter, "write"),
        (docbin_writer, "encode"),
        (run, "_append"),
        (commit, "write_manifest"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_an_error_and_the_old_corpus_stays(merging, monkeypatch, module, name, workers):
    random_datasets(merging, 2)
    merging.run()
    before = merging.files()
    random_datasets(merging, 3)
    merging.declared = merging.declared[3:]
    merging.add("z", ["A"], [{"text": "a new text"}])

    def fail(*args, **kwargs):
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail)
        with pytest.raises(InputError, match=r"corpus\S*: No space left on device; free some"):
            merge_data([merging.root / "tasks/datasets.yml"], merging.root / "corpus", Settings(), workers=workers)
    assert merging.files() == before
    merging.run()
    merging.run("fresh")
    assert merging.files() == merging.files("fresh")


def test_files_that_vanish_or_cannot_be_read_are_named(merging, monkeypatch):
    random_datasets(merging, 2)
    merging.run()
    before = merging.files()
    datasets = load_datasets([merging.root / "tasks/datasets.yml"])
    (merging.root / "tasks/b.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"b\.jsonl"):
        run.merge_datasets(datasets, merging.root / "corpus", Settings())
    (merging.root / "tasks/b.jsonl").symlink_to("b.jsonl")
    with pytest.raises(OSError, match=r"b\.jsonl"):
        run.merge_datasets(datasets, merging.root / "corpus", Settings())
    assert merging.files() == before


@pytest.mark.long
def test_bytes_depend_on_the_data_alone(merging, tmp_path):
    """Not on the number of workers, the hash seed, the order of declarations' files, or the folder."""
    random_datasets(merging, 5, texts=200)
    rows = {name: (merging.root / "tasks" / f"{name}.jsonl").read_bytes() for name in "abc"}
    made = []
    for number, (workers, seed) in enumerate([(1, "0"), (2, "1"), (4, "random")]):
        tasks = tmp_path / f"tasks-{number}"
        (tasks / "x").mkdir(parents=True)
        order = random.Random(number).sample("abc", 3)
        for name in order:
            (tasks / f"{name}.jsonl").write_bytes(rows[name])
        items = {item["name"]: item for item in merging.declared}
        files = []
        for name in order:
            files.append(tasks / f"{name}.yml")
            files[-1].write_text(json.dumps([items[name]]))
        command = [sys.executable, "-m", "scripts.merge", *map(str, files), str(tasks / "out")]
        (tasks / "project.yml").write_text("merge: {docs_per_partition: 9, near_duplicates: group}")
        options = ["--workers", str(workers), "--project", str(tasks / "project.yml")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([*command, *options], cwd=ROOT, env=environment, check=True, capture_output=True)
        folder = Path(tasks / "out")
        made.append(
            {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in folder.rglob("*")
                if path.is_file() and ".cache" not in path.parts
            }
        )
    assert made[0] == made[1] == made[2]
    assert len(made[0]) > 20
