"""Errors of the machine: each command prints a line with a remedy."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from numpy.exceptions import AxisError

from labelwise.base.refusals import REMEDIES, describe_refusal
from tests.clone import DEV
from tests.conftest import ROOT, SUBPROCESSES, call_line, run_command
from tests.test_console import script

# A merged corpus of few texts, and a trained pipeline.
MADE = (
    "scripts.make_demo brat --docs 60 --labels 3 --words 30",
    "scripts.convert_brat brat tasks",
    "scripts.merge tasks/datasets.yml corpus --workers 1",
    "scripts.train cpu --max-steps 4",
)
TRAIN = "python -m scripts.train own --max-steps 4"
MERGE = "python -m scripts.merge tasks/datasets.yml merged"
PREDICT = "python -m scripts.predict training/cpu/model-best tasks --out raw.jsonl"
# A new file system, which this command alone sees.
SHM = "unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && {}'"
MOUNT = f"unshare -m sh -c 'mount -t tmpfs -o {{}} none training && {TRAIN}'"
MANY = 2 + (os.cpu_count() or 1)  # processes


class Situation(NamedTuple):
    """A situation, and its output.

    says (str): regular expression, with white space folded.
    command (str): shell command.
    edits (Mapping): keys of configs/cpu.cfg and their values in configs/own.cfg.
    """

    name: str
    says: str
    command: str = TRAIN
    edits: Mapping[str, str] = {}
    status: int = 1


TRAINING = (
    Situation(
        "patience ends a training",
        r"patience = 10 .*ended training at step 30 of 60",
        "python -m scripts.train own",
        edits={"max_steps": "60", "epochs": "0", "eval_frequency": "15", "patience": "10", "learn_rate": "0.0"},
        status=0,
    ),
    Situation("a training that finds nothing", r"^(?!.*✔).*⚠ .*finds nothing", status=0),
)
MACHINE = (
    Situation("closed standard streams", r"^$", f"{MERGE} <&- >&- 2>&-", status=0),
    Situation("a full standard output", r"standard output: No space left", f"{MERGE} > /dev/full"),
    Situation("a standard output that nobody reads", r"^$", f"{MERGE} | true; exit ${{PIPESTATUS[0]}}"),
    Situation("a read-only /dev/shm, merge", r"✘ .*/dev/shm: .*workers", SHM.format(f"{MERGE} --workers 2")),
    Situation("a read-only /dev/shm, train", r"✘ .*/dev/shm: .*workers", SHM.format(f"{TRAIN} --workers 2")),
    Situation("more workers than cores, merge", rf"⚠ {MANY} workers", f"{MERGE} --workers {MANY}", status=0),
    Situation("more workers than cores, train", rf"⚠ {MANY} workers", f"{TRAIN} --workers {MANY}", status=0),
    Situation("more workers than cores, predict", rf"⚠ {MANY} workers", f"{PREDICT} --workers {MANY}", status=0),
    *(
        Situation(
            f"900 MB of addresses, with PyTorch, {name}",
            r"✘ .*(memory|ulimit)",
            f"export WITH_TORCH=1; ulimit -v 900000; {command}",
        )
        for name, command in (("merge", f"{MERGE} --workers 1"), ("train", TRAIN))
    ),
    Situation("few open files", r"✘ .*Too many open files; raise .*ulimit -n", f"ulimit -n 8; {MERGE}"),
    Situation("files that may not grow", r"✘ .*File too large; raise .*ulimit -f", f"ulimit -f 8; {TRAIN}"),
    Situation("a read-only folder", r"✘ .*training.*: Read-only file system; write elsewhere", MOUNT.format("ro")),
    Situation("a full disk", r"✘ .*training.*: No space left on device; free some space", MOUNT.format("size=100k")),
)


def meet(situation: Situation, project: Path, folder: Path) -> tuple[int, str]:
    """Run a situation's command in a copy of a project; return status and output, white space folded."""
    shutil.copytree(project, folder, symlinks=True)
    text = (folder / "configs/cpu.cfg").read_text(encoding="utf8")
    for key, value in situation.edits.items():
        text, edited = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
        assert edited, f"configs/cpu.cfg has no {key}"
    (folder / "configs/own.cfg").write_text(text, encoding="utf8")
    if re.fullmatch(r"python -m [\w. -]+", situation.command):  # without a shell, in this process
        with chdir(folder):
            return situation.status, " ".join(
                call_line(situation.command.removeprefix("python -m "), situation.status).split()
            )
    env = os.environ | {"PYTHONPATH": f"{SUBPROCESSES}:{ROOT}", "COLUMNS": "400"}
    env["PATH"] = f"{DEV}{os.pathsep}{env['PATH']}"
    command = ["bash", "-c", situation.command]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=300, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).decode(errors="replace").split())


# How much address space is too little depends on a machine's cores, as each thread takes some.
NIGHTLY = {True: [pytest.mark.nightly], False: []}
MACHINES = [pytest.param(error, id=error.name, marks=NIGHTLY["ulimit -v" in error.command]) for error in MACHINE]
TRAININGS = [pytest.param(error, id=error.name, marks=pytest.mark.long) for error in TRAINING]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        *(
            (OSError(number, os.strerror(number), "a.txt"), re.escape(f"a.txt: {os.strerror(number)}; {remedy}"))
            for number, remedy in REMEDIES.items()
        ),
        (OSError(errno.ENOENT, "No such file or directory", "a", None, "b"), "a, b: No such file or directory"),
        (OSError("no number"), "no number"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), ""),  # the pipe is closed, and typer ends in silence
        (MemoryError(), "memory ran out; use fewer processes .*"),
        (MemoryError("Unable to allocate 8 GiB"), r"memory ran out \(Unable to allocate 8 GiB\); use fewer .*"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), r"memory ran out \(malloc of size 64 failed\); use fewer .*"),
        (pa.ArrowException("Resource temporarily unavailable"), "Resource temporarily unavailable; raise ulimit -u .*"),
        (RuntimeError("can't start new thread"), "can't start new thread; raise ulimit -u and ulimit -v; use fewer .*"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "CUDA out of memory.*; use fewer .*"),
        (ImportError("a.so: failed to map segment from shared object"), "a.so: failed to map .*; use fewer .*"),
        (ValueError("a fault of the program"), ""),
        (AxisError(3, 2), ""),
    ],
    ids=repr,
)
def test_an_error_of_the_machine_has_a_line_and_a_remedy(error, message):
    assert re.fullmatch(message, describe_refusal(error))


@pytest.mark.parametrize("within", ["with user_errors('Nothing was done'):\n    ", ""], ids=["in", "after"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise MemoryError", "memory ran out; use fewer processes"),
        ("open('/dev/full', 'w').write('x' * 10**6)", "No space left on device; free some space"),
        ("open('/dev/null/a')", "/dev/null/a: Not a directory"),
    ],
)
def test_a_command_says_it_wherever_it_happens(within, body, message):
    done = run_command(script(within + body), ROOT, {**os.environ, "COLUMNS": "400"}, status=1)
    assert re.fullmatch(rf"✘ (Nothing was done|Stopped)\n{message}.*\n", done.stdout)
    assert done.stderr == ""


def test_a_fault_of_the_program_keeps_its_traceback():
    done = run_command(script("with user_errors('Nothing was done'):\n    [][1]"), ROOT, os.environ, status=1)
    assert "IndexError" in done.stderr
    assert done.stdout == ""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("situations")
    shutil.copytree(ROOT / "configs", folder / "configs")
    (folder / "training").mkdir()
    with chdir(folder):
        for command in MADE:
            call_line(command)
    return folder


@pytest.mark.parametrize("situation", [*MACHINES, *TRAININGS])
def test_a_command_meets_a_situation(situation: Situation, project, tmp_path):
    if "unshare" in situation.command and (
        not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False).returncode
    ):
        pytest.skip("mounting a file system for one command needs root, on Linux")
    status, output = meet(situation, project, tmp_path / "folder")
    assert status == situation.status, output
    assert re.search(situation.says, output)
    assert "Traceback" not in output


def test_a_command_outside_of_any_environment_names_it():
    python, why = Path(sys.base_prefix, "bin/python3"), "import sys; sys.path.insert(0, '.'); import scripts.why"
    ran = subprocess.run([python, "-I", "-S", "-c", why], check=False, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"✘ No module named '\w+'; run `source \.venv/bin/activate` first .*\n", ran.stderr)
