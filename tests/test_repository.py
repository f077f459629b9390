import json
import re
from importlib.metadata import requires

import pytest
import yaml

import labelwise
from tests.conftest import ROOT


def test_a_citation_names_the_version_that_is_released_next():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == labelwise.__version__.partition(".dev")[0]
    assert {"cff-version", "message", "title", "authors", "license"} <= cited.keys()


def test_transformers_is_pinned_only_as_long_as_spacy_transformers_needs_it():
    [needed] = [
        requirement for requirement in requires("spacy-transformers") or () if requirement.startswith("transformers")
    ]
    pins = re.findall(r'"(transformers<[^"]+)"', (ROOT / "pyproject.toml").read_text())
    assert len(pins) == 2
    assert all(pin.removeprefix("transformers") in needed for pin in pins), (
        f"spacy-transformers allows {needed}: lift the pin in pyproject.toml, and change SECURITY.md"
    )


@pytest.mark.parametrize("file", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda file: file.name)
def test_actions_of_others_are_pinned_by_digest(file):
    used = re.findall(r"uses: (\S+)(.*)", file.read_text())
    others = [(name, version) for name, version in used if not name.startswith("./")]
    assert [name for name, version in others if not re.fullmatch(r"\S+@[0-9a-f]{40}", name)] == []
    assert [name for name, version in others if not re.fullmatch(r" # v\d+\.\d+\.\d+", version)] == []


def test_the_container_makes_the_environments_of_both_commands():
    lines = (ROOT / ".devcontainer/devcontainer.json").read_text().splitlines()
    container = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    makefile = (ROOT / "Makefile").read_text()
    targets = container["postCreateCommand"].removeprefix("make ").split()
    for target in ("run", "test"):
        needed = re.search(rf"^{target}: (.*) ##", makefile, re.MULTILINE)[1].split()
        assert {*needed} <= {*targets}
    assert "3.11" in container["image"]
