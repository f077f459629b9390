"""What a report is of: pipeline, corpus, settings, time, and the difference to another revision; no commit, no date."""

import re
import subprocess
from datetime import date
from pathlib import Path

import pytest
import yaml

import labelwise
from labelwise.report.identity import DEFAULTS, SECTIONS, changed_settings
from labelwise.report.page import render_report, write_report
from tests.conftest import ROOT
from tests.report.report_inputs import make_docs, write_results

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path) -> Path:
    root = tmp_path / "repository"
    write_results(root, make_docs())
    settings = yaml.safe_load(DEFAULTS.read_text(encoding="utf8")) | {"seed": 5}
    (root / "project.yml").write_text(yaml.safe_dump({"vars": settings}), encoding="utf8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, *IDENTITY, "commit", "-qm", "x")
    return root


def shown(html: str) -> str:
    found, *_ = re.findall(r'<p class="note">(.*?)</p>', html, re.DOTALL)
    return " ".join(re.sub("<.*?>", "", found).split())


def test_the_page_says_what_it_is_of(repository):
    assert shown(render_report(repository, "cpu")) == (
        f"labelwise {labelwise.__version__} · CPU pipeline 89abcdef · corpus 01234567 · "
        "train 320, dev 40, test 40 texts · seed: 5"
    )


def test_two_clones_at_different_commits_make_the_same_page(repository, tmp_path):
    git(tmp_path, "clone", "-q", "repository", "clone")
    clone = tmp_path / "clone"
    git(clone, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "y")
    (clone / "dvc.lock").write_text("not committed")
    for root in (repository, clone):
        write_report(root, "cpu", root / "report" / "cpu.html")
    page = (clone / "report" / "cpu.html").read_bytes()
    assert page == (repository / "report" / "cpu.html").read_bytes()
    assert date.today().isoformat().encode() not in page


def test_every_variable_has_a_default():
    """A variable, or a key of a section, without one would be called changed in every report."""
    project = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
    keys = {f"{section}.{key}" for section in SECTIONS for key in project[section]}
    assert yaml.safe_load(DEFAULTS.read_text(encoding="utf8")).keys() == project["vars"].keys() | keys
    assert changed_settings(ROOT / "project.yml") == {}


def test_settings_that_were_changed_or_added_are_named(tmp_path):
    project = tmp_path / "project.yml"
    assert changed_settings(project) == {}
    project.write_text("vars: {seed: 1, mine: x}\nmerge: {lang: en, coverage: outside}")
    assert changed_settings(project) == {"seed": 1, "mine": "x", "merge.coverage": "outside"}
    project.write_text("vars: {seed: 0}\nmerge: {split_salt: x, docs_per_partition: 200}")
    assert changed_settings(project) == {"merge.split_salt": "x"}
    for other in ("", "[", "vars:", "a: 1", "{vars: {seed: 1}, merge: 1}"):
        project.write_text(other)
        assert changed_settings(project) == {}
