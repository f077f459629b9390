"""Refusals of the machine: each is a line with a remedy, for every command; the table of situations holds."""

import errno
import os
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pytest
from numpy.exceptions import AxisError

from labelwise.base.refusals import REMEDIES, describe_refusal
from tests.conftest import ROOT, call_line, run_command
from tests.situations import MACHINE, MADE, TRAINING, Situation, copy_code, is_right, meet
from tests.test_console import script

# How much address space is too little depends on a machine's cores, as each thread takes some.
NIGHTLY = {True: [pytest.mark.nightly], False: []}
MACHINES = [pytest.param(one, id=one.name, marks=NIGHTLY["ulimit -v" in one.command]) for one in MACHINE]
TRAININGS = [pytest.param(one, id=one.name, marks=pytest.mark.long) for one in TRAINING]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        *(
            (OSError(number, os.strerror(number), "a.txt"), re.escape(f"a.txt: {os.strerror(number)}; {remedy}"))
            for number, remedy in REMEDIES.items()
        ),
        (OSError(errno.ENOENT, "No such file or directory", "a", None, "b"), "a, b: No such file or directory"),
        (OSError("no number"), "no number"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), ""),  # nobody reads any more, and typer ends in silence
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
def test_an_error_of_the_machine_has_a_line_and_a_remedy(error, said):
    assert re.fullmatch(said, describe_refusal(error))


@pytest.mark.parametrize("within", ["with user_errors('Nothing was done'):\n    ", ""], ids=["in", "after"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise MemoryError", "memory ran out; use fewer processes"),
        ("open('/dev/full', 'w').write('x' * 10**6)", "No space left on device; free some space"),
        ("open('/dev/null/a')", "/dev/null/a: Not a directory"),
    ],
)
def test_a_command_says_it_wherever_it_happens(within, body, said):
    done = run_command(script(within + body), ROOT, {**os.environ, "COLUMNS": "400"}, status=1)
    assert re.fullmatch(rf"✘ (Nothing was done|Stopped)\n{said}.*\n", done.stdout)
    assert done.stderr == ""


def test_a_fault_of_the_program_keeps_its_traceback():
    done = run_command(script("with user_errors('Nothing was done'):\n    [][1]"), ROOT, os.environ, status=1)
    assert "IndexError" in done.stderr
    assert done.stdout == ""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("situations")
    copy_code(folder, ROOT)
    with chdir(folder):
        for command in MADE:
            call_line(command)
    return folder


@pytest.mark.parametrize("one", [*MACHINES, *TRAININGS])
def test_a_command_meets_a_situation(one: Situation, project, tmp_path):
    if "unshare" in one.command and (
        not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False).returncode
    ):
        pytest.skip("mounting a file system for one command needs root, on Linux")
    status, said = meet(one, project, tmp_path / "folder")
    assert is_right(one, status, said), f"{status}: {said}"


def test_a_command_outside_of_any_environment_names_it():
    python, why = Path(sys.base_prefix, "bin/python3"), "import sys; sys.path.insert(0, '.'); import scripts.why"
    ran = subprocess.run([python, "-I", "-S", "-c", why], check=False, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"✘ No module named '\w+'; run `source \.venv/bin/activate` first .*\n", ran.stderr)
