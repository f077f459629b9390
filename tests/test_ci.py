"""What CI runs, and on which changes; the names of benchmarks that pages and docstrings give to make."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from tests.conftest import ROOT

WORKFLOWS = ROOT / ".github/workflows"
CODE = re.compile(r"(labelwise|scripts|tests|configs|requirements|notebooks|\.ci|\.github)/|benchmarks/.*\.(py|json)$")
CODE_FILES = ("pyproject.toml", "setup.py", "project.yml", "dvc.yaml", "Makefile")


def tracked() -> list[str]:
    return subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()


def matches(name: str, patterns: list[str]) -> bool:
    """Tell whether one of GitHub's patterns is a file's: `*` is within a folder, `**` goes below."""
    parts = {"**": ".*", "*": "[^/]*"}
    expressions = (
        "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", pattern)) for pattern in patterns
    )
    return any(re.fullmatch(expression, name) for expression in expressions)


@pytest.mark.parametrize("event", ["push", "pull_request"])
def test_all_tests_run_on_changes_of_code_and_those_of_pages_on_changes_of_pages(event):
    # YAML 1.1 reads the key `on` as true.
    ci, docs = (yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf8"))[True] for name in ("ci.yml", "docs.yml"))
    ignored = {name for name in tracked() if matches(name, ci[event]["paths-ignore"])}
    assert [name for name in ignored if CODE.match(name) or name in CODE_FILES] == []
    assert not matches("src/new.py", ci[event]["paths-ignore"])
    pages = {name for name in tracked() if matches(name, docs[event]["paths"])}
    assert {name for name in ignored if name.endswith(".md")} <= pages <= ignored
    assert {"README.md", "CONTRIBUTING.md", "benchmarks/README.md", "docs/scale.md", "docs/report.png"} <= pages
    for name in ("assets/brat/a.ann", "metrics/cpu.json", "dvc.lock"):  # a commit of annotations, or of an experiment
        assert matches(name, ci[event]["paths-ignore"])


@pytest.mark.parametrize(("user", "before"), [("0", ""), ("1001", "sudo -n ")])
def test_apt_is_run_as_root(tmp_path, user, before):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    scripts = {
        "id": f"echo {user}",
        "make": "true",
        "sudo": 'echo sudo "$@" >> log',
        "apt-get": 'echo apt-get "$@" >> log',
    }
    (tmp_path / "bin").mkdir()
    for name, script in scripts.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf8")
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("bash", "sh", "dirname", "env", "rm"):  # and no chromium
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    environment = {**os.environ, "PATH": str(tmp_path / "bin")}
    subprocess.run(["bash", ".ci/run"], cwd=tmp_path, env=environment, check=True)
    update, install, *_ = (tmp_path / "log").read_text(encoding="utf8").splitlines()
    assert update == f"{before}apt-get update -q"
    assert install.startswith(before)
    assert install.endswith("apt-get install -y -q --no-install-recommends chromium")


def test_a_benchmark_that_make_is_told_to_run_is_there():
    found = subprocess.check_output(["git", "grep", "-hoE", "BENCH=[a-z_]+"], cwd=ROOT, text=True).split()
    names = {name.removeprefix("BENCH=") for name in found}
    assert {name for name in names if not (ROOT / "benchmarks" / f"{name}.py").is_file()} == set()
    assert "loaders" in names
