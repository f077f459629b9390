"""Merging three ways: what the user changed stays, what the new version changed comes, the rest is shown."""

import pytest
import srsly

from labelwise.project.three_ways import merge_lines, merge_project
from tests.conftest import ROOT

BASE = """vars:
  lang: en
  memory: ''                  # such as 400MB
  # Splits.
  dev_ratio: 0.1
  split_salt: a               # another salt gives another split
  check_folds: 3              # pipelines of check
  optimize: ''

tokenizer:
  infixes:
  - one
  - two

workflows:
  all:
  - merge
commands:
- name: merge
  help: Merge
"""
# Two variables have become keys of sections, two are gone; a workflow and the tokenizer have more.
THEIRS = """vars:
  lang: en
  # Splits, by hash.
  dev_ratio: 0.2
  servers: ''
merge:
  split_salt: a               # another salt gives another split
check:
  folds: 3                    # pipelines
tokenizer:
  infixes:
  - one
  - two
  - three
workflows:
  all:
  - fetch
  - merge
commands:
- name: merge
  help: Merge all
"""


def edited(*edits: tuple[str, str]) -> str:
    text = BASE
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def merged(*edits: tuple[str, str]) -> tuple[dict, str]:
    found = merge_project(BASE, edited(*edits), THEIRS, "9.0")
    return srsly.yaml_loads(found.content), found.conflict


def test_without_edits_the_new_version_is_taken():
    assert merged() == (srsly.yaml_loads(THEIRS), "")


@pytest.mark.parametrize(
    ("old", "new", "section", "key", "value"),
    [
        ("lang: en", "lang: de", "vars", "lang", "de"),
        ("lang: en", 'lang: "de"', "vars", "lang", "de"),
        ("dev_ratio: 0.1", "dev_ratio: 0.3", "vars", "dev_ratio", 0.3),
        ("split_salt: a  ", "split_salt: mine", "merge", "split_salt", "mine"),
        ("split_salt: a  ", "split_salt: mine  ", "merge", "split_salt", "mine"),
        ("check_folds: 3", "check_folds: 5", "check", "folds", 5),
        ("  - two\n", "  - other\n", "tokenizer", "infixes", ["one", "other"]),
        ("  - one\n", "", "tokenizer", "infixes", ["two"]),
    ],
)
def test_a_value_is_the_users_wherever_its_key_is_now(old, new, section, key, value):
    content, conflict = merged((old, new))
    assert conflict == ""
    assert content[section][key] == value
    content[section][key] = srsly.yaml_loads(THEIRS)[section][key]
    assert content == srsly.yaml_loads(THEIRS)


def test_all_values_at_once():
    content, conflict = merged(("lang: en", "lang: de"), ("dev_ratio: 0.1", "dev_ratio: 0.3"), ("- two", "- other"))
    assert conflict == ""
    assert content["vars"] == {"lang": "de", "dev_ratio": 0.3, "servers": ""}


def test_a_value_whose_key_is_gone_is_shown():
    content, conflict = merged(("optimize: ''", "optimize: f"))
    assert content == srsly.yaml_loads(THEIRS)
    assert "<<<<<<< yours\n" in conflict
    assert "  optimize: f\n" in conflict
    assert ">>>>>>> labelwise 9.0\n" in conflict


def test_a_workflow_has_the_users_commands_and_the_new_ones():
    content, conflict = merged(("  - merge\n", "  - merge\n  - mine\n"))
    assert conflict == ""
    assert content["workflows"]["all"] == ["fetch", "merge", "mine"]


def test_a_file_that_both_changed_is_merged_by_lines():
    base = "".join(f"{n}\n" for n in range(9))
    assert merge_lines(base, base.replace("1\n", "one\n"), base.replace("7", "seven"), "9.0") == (
        base.replace("1\n", "one\n").replace("7", "seven"),
        "",
    )
    both = merge_lines(base, base.replace("5", "my five"), base.replace("5", "your five"), "9.0")
    assert both.content == base.replace("5", "your five")
    assert "<<<<<<< yours\nmy five\n||||||| as it was\n5\n=======\nyour five\n>>>>>>> labelwise 9.0\n" in both.conflict


def test_the_projects_own_file_is_what_is_written_again():
    text = (ROOT / "project.yml").read_text(encoding="utf8")
    assert merge_project(text, text, text, "9.0") == (text, "")
    longer = text.replace("  alignment: drop             #", "  alignment: expand           #")
    assert longer != text
    assert merge_project(text, longer, text, "9.0") == (longer, "")
