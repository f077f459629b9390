"""Commands are killed, and have writes fail; `python -m tests.faults` does more of it."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


def disturb(commands: str, *options: str) -> subprocess.CompletedProcess[str]:
    names = [part for name in commands.split() for part in ("--command", name)]
    command = [sys.executable, "-m", "tests.faults", *names, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("commands", "trials"),
    # Trainings that are killed at random: tests/train/test_resume.py.
    [
        ("make_demo convert_brat", 2),
        pytest.param("db_out export", 20, marks=pytest.mark.long),
        pytest.param("merge", 40, marks=pytest.mark.long),
        pytest.param("evaluate report", 8, marks=pytest.mark.long),
        pytest.param("package", 4, marks=pytest.mark.long),
    ],
)
def test_a_command_that_is_disturbed_leaves_nothing_partial_and_can_be_run_again(commands, trials):
    done = disturb(commands, "--trials", str(trials))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("nothing") == 2 * len(commands.split())


@pytest.mark.long
def test_a_training_that_is_killed_while_it_moves_its_outputs_is_old_or_new_or_refused():
    done = disturb("train", "--fault", "kills", "--trials", "20")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("mutation", "command", "trials", "found"),
    [
        pytest.param("move-away", "convert_brat", 3, "it is neither old nor new", marks=pytest.mark.long),
        pytest.param("no-second-rename", "merge", 12, "lists it; run the merge again", marks=pytest.mark.long),
    ],
)
def test_what_would_lose_or_mix_outputs_is_seen(mutation, command, trials, found):
    done = disturb(command, "--fault", "kills", "--trials", str(trials), "--mutation", mutation)
    assert done.returncode
    assert found in done.stderr + done.stdout
