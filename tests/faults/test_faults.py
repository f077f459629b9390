"""Commands are killed before a write: no partial output is used, and the next run makes all outputs again.

A write opens a file to write, renames, deletes, or makes a folder. The project has an old state and a new one.
"""

import os
import random
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import spacy

from labelwise.base.errors import InputError
from labelwise.base.files import remove
from labelwise.compare.revisions import read_revision
from labelwise.corpus.manifest import SPLITS, find_partitions, read_manifest, read_partition
from labelwise.corpus.pipeline import load_pipeline
from labelwise.datasets.declarations import load_datasets
from labelwise.report.page import write_report
from labelwise.train.checkpoint import has_ended
from scripts.convert_brat import convert_brat_cli
from scripts.evaluate import evaluate_cli
from scripts.export import export_cli
from scripts.make_demo import make_demo_cli
from scripts.merge import merge_cli
from scripts.package import package_cli
from scripts.report import report_cli
from scripts.train import train_cli
from tests.conftest import ROOT, call, make_narrow

OLD, NEW = 10, 14  # texts of the corpus that was there, and of the one that comes
WRITES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"}
VOLATILE = ("resources.tsv",)  # it tells times
MORE = '{"text": "Two mg of salt, in the year %d."}\n'
PROJECT = "{merge: {docs_per_partition: 6}, package: {version: 1.0.%d}}\n"
DECLARED = "- {name: more, path: more.jsonl, labels: [%s]}\n"


class Command(NamedTuple):
    """A command of the project.

    trials (int): number of kills.
    readers (tuple[Callable, ...]): readers of several outputs, called with the project's folder.
    """

    name: str
    trials: int
    function: Callable[..., None]
    arguments: str
    outputs: tuple[str, ...]
    readers: tuple[Callable[[Path], object], ...] = ()


ALL = (
    Command("make_demo", 3, make_demo_cli, "brat --docs {docs} --labels 3 --words 20", ("brat",)),
    Command("convert_brat", 8, convert_brat_cli, "brat tasks", ("tasks",)),
    Command(
        *("merge", 24, merge_cli),
        "tasks/datasets.yml more.yml corpus --metrics metrics/merge.json --project project.yml --workers 1",
        ("corpus", "metrics/merge.json"),
        (
            lambda root: read_manifest(root / "corpus"),
            lambda root: [find_partitions(root / "corpus" / split) for split in SPLITS],
            lambda root: [
                read_partition(partition) for name in SPLITS for partition in find_partitions(root / "corpus" / name)
            ],
            lambda root: load_datasets([root / "again.yml"]),
            lambda root: write_report(root, "cpu", root / "read.html"),
        ),
    ),
    Command("export", 8, export_cli, "corpus exported --format brat --originals brat", ("exported",)),
    Command(
        *("train", 8, train_cli),
        "cpu --max-steps 4 --resume",
        ("training/cpu/model-best", "plots/cpu.tsv"),
        (lambda root: load_pipeline(root / "training/cpu/model-best"),),
    ),
    Command(
        *("evaluate", 8, evaluate_cli),
        "cpu",
        ("metrics/cpu.json", "training/cpu/texts.parquet", "training/cpu/pairs.parquet"),
        (lambda root: read_revision("workspace", "cpu", root / "read", root),),
    ),
    Command("package", 4, package_cli, "cpu", ("dist/cpu",)),
    Command("report", 8, report_cli, "cpu", ("report/cpu.html",)),
)
NAMES = [command.name for command in ALL]


def start(command: Command, folder: Path, docs: int, at: int = 0) -> int | None:
    """Run a command in a new process; return the number of writes it began, None if it was killed.

    at (int): number of the write before which it is killed; 0 for none.
    """
    result = folder.with_name("result")
    if pid := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status in (0, -signal.SIGKILL), result.read_text(encoding="utf8")
        return None if status else int(result.read_text(encoding="utf8"))
    begun = 0

    def count(event: str, given: tuple[Any, ...]) -> None:
        nonlocal begun
        if is_write(event, given, folder):
            begun += 1
            if begun == at:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        os.chdir(folder)
        sys.addaudithook(count)
        call(command.function, *command.arguments.format(docs=docs).split())
        result.write_text(str(begun), encoding="utf8")
        os._exit(0)
    except BaseException:
        result.write_text(traceback.format_exc(), encoding="utf8")
    os._exit(1)


def is_write(event: str, given: tuple[Any, ...], folder: Path) -> bool:
    """Return whether an audit event (`sys.addaudithook`) is a write in a folder."""
    if event == "open":
        path, mode, flags = given
        writes = bool(set(mode or "") & set("wax+")) or (mode is None and flags & (os.O_WRONLY | os.O_RDWR))
    else:
        path, writes = given[0] if given else 0, event in WRITES
    if not writes or not isinstance(path, str | bytes | os.PathLike):
        return False
    return Path.cwd().joinpath(os.fsdecode(path)).is_relative_to(folder)


class Projects:
    """Both states of the project, and the folder where commands are killed."""

    def __init__(self, root: Path) -> None:
        spacy.blank("en").create_pipe("ner")  # loads spaCy's entry points, once
        self.work = root / "work"
        self.states = {OLD: root / "old", NEW: root / "new"}
        self.ran = 0
        for docs, folder in self.states.items():
            folder.mkdir(parents=True)
            (folder / "configs").mkdir()
            make_narrow(ROOT / "configs/cpu.cfg", folder / "configs/cpu.cfg", 2)
            (folder / "more.jsonl").write_text("".join(MORE % year for year in range(docs)), encoding="utf8")
            (folder / "project.yml").write_text(PROJECT % docs, encoding="utf8")
            (folder / "more.yml").write_text(DECLARED % "CHEMICAL", encoding="utf8")
            (folder / "again.yml").write_text("- {name: again, path: corpus, labels: [CHEMICAL]}\n", encoding="utf8")

    def run_until(self, command: Command) -> None:
        """Run the commands up to this one in both states."""
        for earlier in ALL[self.ran : ALL.index(command) + 1]:
            self.ran += 1
            for docs, folder in self.states.items():
                start(earlier, folder, docs)

    def place(self, command: Command) -> None:
        """Make the folder as before a command: new inputs, old outputs."""
        remove(self.work)
        shutil.copytree(self.states[NEW], self.work)
        for output in [output for other in ALL[ALL.index(command) :] for output in other.outputs]:
            remove(self.work / output)
        for output in command.outputs:
            old, path = self.states[OLD] / output, self.work / output
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(old, path) if old.is_dir() else shutil.copy2(old, path)


def outputs(command: Command, root: Path) -> dict[str, bytes]:
    """Read a command's outputs, except hidden files, such as the merge's cache, and timings."""
    roots = [root / output for output in command.outputs]
    files = [file for path in roots for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in files
        if file.is_file()
        and file.name not in VOLATILE
        and not any(part[0] == "." for part in file.relative_to(root).parts)
    }


def leftovers(root: Path) -> list[str]:
    """List files outside the outputs, except an ended training's checkpoint: fitting another goal resumes it."""
    pattern = r"\..*\.labelwise\.\w+|.*\.checkpoint|.*\.tmp"
    paths = {path for path in root.rglob("*") if re.fullmatch(pattern, path.name)}
    ended = {path for path in paths if path.suffix == ".checkpoint" and has_ended(path)}
    return sorted(path.relative_to(root).as_posix() for path in paths - ended)


@pytest.fixture(scope="module")
def projects(tmp_path_factory) -> Projects:
    return Projects(tmp_path_factory.mktemp("faults"))


@pytest.mark.guarantee("old-or-new")
@pytest.mark.parametrize("name", [*NAMES[:2], *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[2:])])
def test_a_command_that_is_killed_leaves_nothing_partial_and_can_be_run_again(projects, name):
    command = ALL[NAMES.index(name)]
    projects.run_until(command)
    projects.place(command)
    old, new = outputs(command, projects.work), outputs(command, projects.states[NEW])
    writes = start(command, projects.work, NEW)
    assert old != new == outputs(command, projects.work)
    for number in random.Random(0).sample(range(1, writes + 1), min(command.trials, writes)):
        projects.place(command)
        assert start(command, projects.work, NEW, number) is None
        now = outputs(command, projects.work)
        if now not in (old, new, {}):
            assert command.readers, f"write {number}: it is neither old nor new"
            for read in command.readers:
                with pytest.raises(InputError):
                    read(projects.work)
        start(command, projects.work, NEW)
        assert outputs(command, projects.work) == new, f"after write {number}"
        assert leftovers(projects.work) == [], f"after write {number}"
