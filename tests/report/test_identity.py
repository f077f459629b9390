"""What a report is of: date, commit, corpus, settings, time, and the difference to another revision."""

import re
import subprocess
from datetime import date
from pathlib import Path

import msgspec
import pytest
import yaml

import labelwise
from labelwise.compare.revisions import Revision
from labelwise.evaluate.scores import Metrics
from labelwise.report.identity import DEFAULTS, SECTIONS, changed_settings, find_commit
from labelwise.report.page import render_report
from tests.conftest import ROOT
from tests.report.report_inputs import make_docs, write_results

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path) -> Path:
    write_results(tmp_path, make_docs())
    variables = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))["vars"]
    settings = {**yaml.safe_load(DEFAULTS.read_text(encoding="utf8"))} | {name: variables[name] for name in ()}
    (tmp_path / "project.yml").write_text(yaml.safe_dump({"vars": settings | {"seed": 5}}), encoding="utf8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, *IDENTITY, "commit", "-qm", "x")
    return tmp_path


def shown(html: str) -> str:
    (found,) = re.findall(r'<p class="identity">(.*?)</p>', html, re.DOTALL)
    return " ".join(re.sub("<.*?>", "", found).split())


def test_the_page_says_what_it_is_of(repository):
    commit = git(repository, "rev-parse", "HEAD")[:7]
    html = render_report(repository, "cpu", today=date(2026, 3, 1))
    assert shown(html) == (
        f"labelwise {labelwise.__version__}, 2026-03-01, commit {commit}, corpus 01234567: "
        "train 320, dev 40, test 40 texts; trained in 02:18; not as the project comes: seed: 5"
    )


def test_a_commit_with_changes_is_called_so(repository):
    assert " " not in find_commit(repository)
    (repository / "new.txt").write_text("files that git doesn't know make no difference")
    assert " " not in find_commit(repository)
    (repository / "project.yml").write_text("vars: {}")
    assert find_commit(repository).endswith(" with changes")


def test_outside_of_a_repository_there_is_no_commit(tmp_path):
    write_results(tmp_path / "none", make_docs())
    assert find_commit(tmp_path) == ""
    assert "commit" not in shown(render_report(tmp_path / "none", "cpu"))
    git(tmp_path, "init", "-q")
    assert find_commit(tmp_path) == "", "nor in one without commits"


def test_every_variable_has_a_default():
    """A variable, or a key of a section, without one would be called changed in every report."""
    project = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
    keys = {f"{section}.{key}" for section in SECTIONS for key in project[section]}
    assert yaml.safe_load(DEFAULTS.read_text(encoding="utf8")).keys() == project["vars"].keys() | keys
    assert changed_settings(ROOT / "project.yml") == {}


def test_settings_that_were_changed_or_added_are_named(tmp_path):
    project = tmp_path / "project.yml"
    assert changed_settings(project) == {}
    project.write_text("vars: {seed: 1, lang: en, mine: x, coverage: outside}")
    assert changed_settings(project) == {"seed": 1, "mine": "x", "coverage": "outside"}
    project.write_text("vars: {lang: en}\nmerge: {split_salt: x, docs_per_partition: 200}")
    assert changed_settings(project) == {"merge.split_salt": "x"}
    for other in ("", "[", "vars:", "a: 1", "{vars: {seed: 1}, merge: 1}"):
        project.write_text(other)
        assert changed_settings(project) == {}


def test_the_difference_to_another_revision_is_shown_by_label(tmp_path):
    write_results(tmp_path, make_docs())
    metrics = msgspec.json.decode((tmp_path / "metrics/cpu.json").read_bytes(), type=Metrics)
    now = metrics.all_gold.labels["PLACE"].f
    assert now is not None
    metrics.all_gold.labels["PLACE"].f = now - 0.125
    del metrics.all_gold.labels["DRUG"]
    html = render_report(tmp_path, "cpu", base=Revision("main", metrics, None))
    (table,) = re.findall(r'<section id="scores".*?</table>', html, re.DOTALL)
    found = re.findall(r'<tr><th scope="row">(?:<a [^>]*>)?([^<]*).*?</th>(.*?)</tr>', table, re.DOTALL)
    column = re.findall(r"<th .*?>(.*?)</th>", table).index("F since main") - 1
    rows = {label: re.findall(r"<td[^>]*>(.*?)</td>", cells, re.DOTALL)[column] for label, cells in found}
    assert (rows["PLACE"], rows["PERSON"], rows["DRUG"], rows["all"]) == ("+0.125", "+0.000", "–", "–")
    assert len({len(re.findall("<td", cells)) for _, cells in found}) == 1, "each row has all columns"
    assert "F since" not in render_report(tmp_path, "cpu")


def test_the_difference_of_all_labels_is_told_if_they_are_the_same(tmp_path):
    write_results(tmp_path, make_docs())
    metrics = msgspec.json.decode((tmp_path / "metrics/cpu.json").read_bytes(), type=Metrics)
    assert metrics.all_gold.f is not None
    metrics.all_gold.f -= 0.25
    base = Revision("main", metrics, None)
    assert "; +0.250 since main" in render_report(tmp_path, "cpu", base=base)
    metrics.all_gold.labels["NEW"] = metrics.all_gold.labels["DRUG"]
    assert " since main" not in render_report(tmp_path, "cpu", base=Revision("main", metrics, None)).replace(
        "F since main", ""
    )
