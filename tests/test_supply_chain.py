"""Where packages come from, and what is made of them: every environment is pinned."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
ENVIRONMENTS = dict(re.findall(r"(?m)^(\.venv\S*)/\.ready: requirements/(\w+)\.txt", MAKEFILE))


# A Python that sets an environment up: its pip says SAID, and fails if that is something; weasel says what it is given.
PRETENDED = """#!/bin/sh
mkdir -p $3/bin
printf '#!/bin/sh\\necho "$SAID" >&2; test -z "$SAID"' > $3/bin/python
printf '#!/bin/sh\\necho "weasel $* without colours: $ANSI_COLORS_DISABLED"' > $3/bin/weasel
chmod +x $3/bin/*
"""


def start_make(*arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    # As if it weren't run by another make, which has it say where it is.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(
        ["make", *arguments], cwd=cwd, env=environment | variables, check=False, capture_output=True, text=True
    )


def make(*arguments: str) -> str:
    done = start_make(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def pretended(tmp_path):
    """A project whose environments are made within a moment."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    (tmp_path / "python").write_text(PRETENDED)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def test_an_environment_is_set_up_in_one_line_with_its_time_and_a_file_gets_no_colours(pretended):
    done = start_make("run", f"PYTHON={pretended}/python", cwd=pretended, SAID="")
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"Setting up the environment \.venv, which takes a minute or two \.\.\. 0:0\d", first)
    assert second == "weasel run all without colours: 1"
    assert start_make("run", cwd=pretended).stdout == f"{second}\n", "it is set up once"


def test_what_pip_fails_with_is_shown_and_the_environment_is_not_ready(pretended):
    for target in (".venv/.ready", ".venv-dev/.ready"):
        done = start_make(target, f"PYTHON={pretended}/python", cwd=pretended, SAID="ERROR: No matching distribution")
        assert done.returncode == 2
        assert "ERROR: No matching distribution" in done.stderr
        assert not (pretended / target).exists()


def test_every_target_is_in_the_help():
    [targets] = re.findall(r"(?m)^\.PHONY: (.*)$", MAKEFILE)
    assert re.findall(r"(?m)^(\S+) ", make("help")) == targets.split()


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_environment_is_pinned_and_can_be_made_anew(environment):
    name = ENVIRONMENTS[environment]
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf8").splitlines()
    assert lines[0] == "# make lock"
    assert all(re.fullmatch(r"[a-z0-9-]+(\[\w+\])?==[\w.+]+", line) for line in lines[1:]), lines
    assert f"> requirements/{name}.txt\n" in MAKEFILE.partition("\nlock:")[2]
    assert environment in MAKEFILE.partition("\nclean:")[2].split()
