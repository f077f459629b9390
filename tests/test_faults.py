"""Commands are killed, run twice at once, and have writes fail; `benchmarks.faults` does more of it."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")]


@pytest.mark.parametrize(
    ("commands", "trials"),
    # Trainings that are killed: tests/train/test_resume.py.
    [("make_demo convert_brat", 4), ("merge", 2), ("evaluate report", 1)],
)
def test_a_command_that_is_disturbed_leaves_nothing_partial_and_can_be_run_again(commands, trials):
    names = [part for name in commands.split() for part in ("--command", name)]
    command = [sys.executable, "-m", "benchmarks.faults", *names, "--trials", str(trials)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("nothing") == 3 * len(commands.split())
