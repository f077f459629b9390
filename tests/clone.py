"""A clone of the project for whole workflows, in `.venv` (no PyTorch)."""

import os
import pickle
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory

import dvc.cli
import pytest
import yaml
from filelock import FileLock

from tests.conftest import ROOT, SUBPROCESSES, call_line, make_narrow, run_command

DEMO = "scripts.make_demo assets/demo"
OWN = "--format both --docs 24 --labels 3"
SMALL = {"dev_ratio": "0.2", "test_ratio": "0.2", "steps": "10"}
IDENTITY = {f"GIT_{who}_{key}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
# The commands of `weasel run all` that a second run skips: all but the report, which may show what others have found.
SKIPPED = len(yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))["workflows"]["all"]) - 1
RESULTS = ("corpus", "metrics", "plots", "training/cpu")
APART = re.compile(r"/resources\.tsv|\.checkpoint/")  # what takes a clock, and what no stage owns
# What keeps tools from calling home anyway; the project has to do so alone.
SILENCING = ("CI", "DVC_NO_ANALYTICS", "DVC_TEST", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_OFFLINE", "DO_NOT_TRACK")
DEV = Path(sys.executable).parent
PLAIN = ROOT / ".venv" / "bin"


class Clone:
    """The files in a new git repository, with a narrow model and small numbers in project.yml.

    connections (Path): log of attempts to reach another machine; all are refused.
    """

    def __init__(self, root: Path, programs: Path = PLAIN) -> None:
        self.root = root
        self.connections = root.with_name(f"{root.name}.connections")
        left_out = ("PYTHONDONTWRITEBYTECODE", *SILENCING)  # write bytecode, as by default
        self.environment = {name: value for name, value in os.environ.items() if name not in left_out} | IDENTITY
        path = os.pathsep.join([str(programs if programs.is_dir() else DEV), os.environ["PATH"]])
        watched = {"PYTHONPATH": SUBPROCESSES, "CONNECTIONS": str(self.connections)}
        self.environment |= {**watched, "PATH": path, "COLUMNS": "200"}
        if programs == DEV:
            self.environment["WITH_TORCH"] = "1"
        for name in tracked():
            if not name.startswith(("tests/", "metrics/", "plots/cpu", "dvc.lock")):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes((ROOT / name).read_bytes())
        make_narrow(ROOT / "configs/cpu.cfg", root / "configs/cpu.cfg", 10)
        replace_once(root / "project.yml", DEMO, f"{DEMO} --docs 24 --labels 3")
        for name, value in SMALL.items():
            self.set(name, value)
        replace_once(root / "project.yml", "\nmerge:  ", "\nmerge:\n  docs_per_partition: 8\n ")
        self.run("git", "init", "-q", "-b", "main")
        self.commit("start")

    def set(self, name: str, value: str) -> None:
        path = self.root / "project.yml"
        [old] = re.findall(rf"(?m)^  {name}: \S+", path.read_text(encoding="utf8"))
        replace_once(path, f"\n{old}", f"\n  {name}: {value}")

    def stop_after_merge(self) -> None:
        """End the workflow `all` after the merge."""
        replace_once(self.root / "project.yml", "  - train-cpu\n  - evaluate-cpu\n  - check\n  - report-cpu\n", "")

    def use_own_data(self) -> None:
        """Set `data: assets`, with the demo's texts in a brat folder and a Prodigy file per label."""
        self.set("data", "assets")
        with TemporaryDirectory() as demo:
            self.call_lines(f"python -m scripts.make_demo {demo}/demo {OWN}")
            shutil.move(f"{demo}/demo/brat", self.root / "assets/brat/mine")
            for file in Path(demo, "demo/prodigy").glob("*.jsonl"):
                shutil.move(file, self.root / "assets/prodigy")

    def clone(self, root: Path) -> "Clone":
        other = copy(self)
        other.root = root
        self.run("git", "clone", "-q", ".", str(root))
        return other

    def commit(self, message: str) -> None:
        self.run("git", "add", "-A")
        self.run("git", "commit", "--allow-empty", "-qm", message)

    def run(self, *command: str, status: int = 0) -> str:
        done = run_command(command, self.root, self.environment, status)
        return done.stdout + done.stderr

    def call(self, *names: str, status: int = 0) -> str:
        """Run commands of project.yml in this process; return their output."""
        project = yaml.safe_load((self.root / "project.yml").read_text(encoding="utf8"))
        scripts = {command["name"]: command["script"] for command in project["commands"]}
        lines = "\n".join(" ".join(line.split()) for name in names for line in scripts[name])
        return self.call_lines(
            re.sub(r"\$\{vars\.(\w+)\}", lambda found: str(project["vars"][found[1]]), lines), status
        )

    def call_lines(self, lines: str, status: int = 0) -> str:
        """Run lines `python -m …` in this process, ten times as fast; return their output."""
        with chdir(self.root):
            return "".join(call_line(line.removeprefix("python -m "), status) for line in lines.splitlines())

    def paste(self, commands: str) -> str:
        """Run commands as if pasted into a terminal; return their output."""
        return self.run("bash", "-euc", commands)

    def results(self) -> dict[str, bytes]:
        """Read the outputs, except APART, by path."""
        files = [path for name in RESULTS for path in (self.root / name).rglob("*") if path.is_file()]
        named = {path.relative_to(self.root).as_posix(): path for path in files}
        return {name: path.read_bytes() for name, path in named.items() if not APART.search(name)}


def run_by_weasel(factory: pytest.TempPathFactory) -> tuple[Clone, str]:
    """Return a clone after `weasel run all` with a short training, and the output.

    Pytest's processes share the original.
    """
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    record = base / "by_weasel.pickle"
    with FileLock(f"{record}.lock"):
        if not record.exists():
            clone = make_clone(base / "by_weasel")
            printed = clone.run("weasel", "run", "demo") + clone.run("weasel", "run", "all")
            record.write_bytes(pickle.dumps((clone, printed)))
    clone, printed = pickle.loads(record.read_bytes())
    own = copy(clone)
    own.root = shutil.copytree(clone.root, factory.mktemp("weasel"), symlinks=True, dirs_exist_ok=True)
    return own, printed


def make_clone(root: Path) -> Clone:
    clone = Clone(root)
    clone.set("steps", "40")
    replace_once(root / "configs/cpu.cfg", "learn_rate = 0.002", "learn_rate = 0.01")
    return clone


def tracked() -> list[str]:
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    return [name for name in names if (ROOT / name).is_file()]


def call_dvc(folder: Path, *command: str) -> None:
    """Run DVC in this process, ten times as fast."""
    with chdir(folder):
        assert dvc.cli.main([*command]) == 0


def replace_once(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf8")
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new), encoding="utf8")
