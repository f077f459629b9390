"""Where packages come from, and what is made of them: every environment is pinned, and can be listed."""

import os
import re
import subprocess
import tomllib

import pytest

from tests.conftest import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
ENVIRONMENTS = dict(re.findall(r"(?m)^(\.venv\S*)/\.ready: requirements/(\w+)\.txt", MAKEFILE))
RUFF = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["tool"]["ruff"]["lint"]


def make(*arguments: str) -> str:
    # As if it weren't run by another make, which has it say where it is.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    command = ["make", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


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


def test_the_bill_of_materials_is_of_the_environment_that_make_run_sets_up():
    assert "`make sbom`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    [line] = [line for line in make("-n", "sbom").splitlines() if "cyclonedx-py environment" in line]
    assert line.endswith("-o build/sbom.json .venv/bin/python")
    assert {"--validate", "--output-reproducible"} <= set(line.split())
    assert ENVIRONMENTS[".venv"] == "cpu"


def test_linting_looks_for_what_bandit_looks_for():
    """Ruff's rules S are bandit's. Those that are off are named, and the code's own exceptions say their reason."""
    assert "S" in RUFF["select"]
    assert [rule for rule in RUFF["ignore"] if rule.startswith("S")] == ["S311"]
    for file in [*(ROOT / "labelwise").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]:
        for reason in re.findall(r"# noqa: S[0-9]{3}(.*)", file.read_text(encoding="utf8")):
            assert reason.strip(), file
