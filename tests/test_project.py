"""project.yml, dvc.yaml, requirements, pages and code are in step; `make lint` runs this file."""

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest
import srsly
import yaml
from labelwise.project.stages import SECTIONS, DvcSection, dvc_yaml

import labelwise
from labelwise.base.sections import CheckSection, PackageName, ReportSection
from labelwise.base.settings import read_section
from labelwise.merge.rules.policies import Annotators, Policies
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions, Discontinuous, MissingAnn, Shifted
from labelwise.train import checkpoint as train_checkpoint
from tests.conftest import ROOT
from tests.test_house import imported

PROJECT = srsly.read_yaml(ROOT / "project.yml")  # as weasel does
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
PATH = r"(?<![^\s'])(?:\$\{vars\.brat_dir\}|(?:assets|corpus|training|metrics|plots)/[^\s']+)"
CODE = ("labelwise/", "scripts/", "configs/", "spacy_per_label")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
ENVIRONMENTS = dict(re.findall(r"(?m)^(\.venv\S*)/\.ready: requirements/(\w+)\.txt", MAKEFILE))


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf8")


def imported_files(file: Path) -> set[Path]:
    """All files of the repository that a file imports, at any remove, and itself."""
    found, queue = set(), [file]
    while queue:
        current = queue.pop()
        if current not in found:
            found.add(current)
            queue += imported(current)
    return found


def needed(command) -> set[str]:
    """The commands' modules, folders of modules, and configs that a command's lines use."""
    found = set()
    for line in command["script"]:
        for module in re.findall(r"-m (scripts\.\w+)", line):
            for path in imported_files(ROOT / (module.replace(".", "/") + ".py")):
                top, *inside = path.relative_to(ROOT).parts
                if re.search(r"(?m)^\s*(from|import) spacy_per_label\b", path.read_text(encoding="utf8")):
                    found.add("spacy_per_label")
                if top in ("labelwise", "scripts") and inside[0] != "__init__.py":
                    found.add(f"{top}/{inside[0]}")
        found |= set(re.findall(r"configs/\S+", line))
    return found


def outputs(command) -> list[str]:
    return [*command.get("outputs", []), *command.get("outputs_no_cache", [])]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_depends_on_all_code_that_it_uses_and_on_no_other(name):
    code = {dep for dep in COMMANDS[name]["deps"] if dep.startswith(CODE)}
    assert code == needed(COMMANDS[name])


@pytest.mark.parametrize("pipeline", ["small", "gpu"])
@pytest.mark.parametrize("cpus", ["evaluate-cpu", "report", "package"])
def test_a_command_of_another_pipeline_depends_on_what_the_cpus_does(cpus, pipeline):
    other = f"{cpus.removesuffix('-cpu')}-{pipeline}"
    assert [dep.replace("cpu", pipeline) for dep in COMMANDS[cpus]["deps"]] == COMMANDS[other]["deps"]


@pytest.mark.parametrize("name", ["train-cpu", "train-small", "train-gpu"])
def test_a_fingerprint_covers_the_folders_that_the_command_depends_on(name):
    packages = ("labelwise/", "spacy_per_label")
    code = [dep for dep in COMMANDS[name]["deps"] if dep.startswith(packages) and not dep.endswith(".py")]
    own = [str(Path("labelwise", folder).resolve().relative_to(ROOT)) for folder in ("base", *train_checkpoint.CODE)]
    assert sorted(own) == sorted(code)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_path_on_a_command_line_is_a_dep_or_an_output(name):
    command = COMMANDS[name]
    known = [*command["deps"], *outputs(command)]
    for line in command["script"]:
        for path in re.findall(PATH, line):
            inside = any(path == item or path.startswith(item + "/") for item in known)
            assert inside or any(item.startswith(path + "/") for item in outputs(command)), path


def test_workflows_make_every_input_before_it_is_used():
    made_by = {output: command["name"] for command in COMMANDS.values() for output in outputs(command)}
    workflows = PROJECT["workflows"]
    before = {"fix": workflows["all"]}
    for title, workflow in workflows.items():
        for position, name in enumerate(workflow):
            for dep in COMMANDS[name]["deps"]:
                if dep in made_by:
                    assert made_by[dep] in [*before.get(title, ()), *workflow[:position]], (name, dep)


def test_variables_are_few_scalars_and_used():
    """What is set rarely stands in a section, or in a config."""
    lines = "".join(line for command in COMMANDS.values() for line in [*command["script"], *command["deps"]])
    assert {*re.findall(r"\$\{vars\.(\w+)\}", lines)} == PROJECT["vars"].keys()
    assert all(isinstance(value, str | int | float) for value in PROJECT["vars"].values())
    assert len(PROJECT["vars"]) <= 20


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ("brat", BratOptions),
        ("merge", Settings),
        ("check", CheckSection),
        ("report", ReportSection),
        ("package", PackageName),
        ("dvc", DvcSection),
    ],
)
def test_a_section_lists_all_its_keys_with_their_defaults(section, kind):
    defaults = msgspec.to_builtins(kind())
    defaults.pop("tokenizer", None)
    assert PROJECT[section] == defaults
    assert read_section(ROOT / "project.yml", section, kind) == kind()


def test_a_command_runs_again_if_a_section_that_it_reads_has_changed(tmp_path):
    """Under DVC that section alone, under weasel the file."""
    assert read("dvc.yaml") == dvc_yaml(ROOT / "project.yml"), "python -m scripts.update_dvc"
    srsly.write_yaml(tmp_path / "project.yml", {**PROJECT, "dvc": {"stages": " ".join(COMMANDS)}})
    stages = yaml.safe_load(dvc_yaml(tmp_path / "project.yml"))["stages"]
    params = {name: stage["params"][0]["project.yml"] for name, stage in stages.items() if "params" in stage}
    assert params == SECTIONS
    always = {name for name, stage in stages.items() if stage.get("always_changed")}
    assert always == {name for name in stages if COMMANDS[name].get("no_skip")}, "report, which check-folds adds to"
    assert params.keys() == {name for name, command in COMMANDS.items() if "project.yml" in command["deps"]}
    own = {"title", "description", "vars", "directories", "assets", "workflows", "commands"}  # weasel's
    own.add("dvc")  # which update_dvc reads
    assert {section for sections in params.values() for section in sections} == PROJECT.keys() - own


def test_assets_are_those_of_a_commit_and_have_a_checksum():
    cloned = {asset["git"]["repo"] for asset in PROJECT["assets"] if "git" in asset}
    named = {one["git"]["repo"] for one in PROJECT["assets"] if re.search(r"commit [0-9a-f]{40}", one["description"])}
    assert named == cloned
    for asset in PROJECT["assets"]:
        assert asset["extra"] is True
        assert re.fullmatch(r"[0-9a-f]{32}", asset["checksum"])
        assert "git" in asset or re.search(r"/[0-9a-f]{40}/", asset["url"])


POLICIES = get_type_hints(Policies) | {
    "annotators": Annotators,
    "missing_ann": MissingAnn,
    "discontinuous": Discontinuous,
    "shifted": Shifted,
}


@pytest.mark.parametrize("policy", POLICIES)
def test_project_docs_and_code_agree_on_the_policies(policy):
    values = get_args(POLICIES[policy])
    section = "merge" if policy in Settings.__struct_fields__ else "brat"
    assert PROJECT[section][policy] == values[0]
    [row] = re.findall(rf"(?m)^\| `{policy}` \|.*$", read("docs/accounting.md"))
    assert sorted(re.findall(r"`([a-z_-]+)`", row)[1:]) == sorted(values)
    comment = re.search(rf"(?m)^  {policy}: .*# (.*)$", read("project.yml"))[1]
    assert comment.split(": ")[-1].split(" | ") == list(values)


@pytest.mark.parametrize(("page", "lines"), [("README.md", 100), ("CONTRIBUTING.md", 110)])
def test_a_door_is_short(page, lines):
    assert read(page).count("\n") < lines


def test_the_changelog_begins_with_this_version():
    headings = re.findall(r"(?m)^## (\S+)", read("CHANGELOG.md"))
    assert headings[0] == labelwise.__version__.partition(".dev")[0]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_environment_is_pinned_and_can_be_made_anew(environment):
    name = ENVIRONMENTS[environment]
    lines = read(f"requirements/{name}.txt").splitlines()
    assert lines[0] == "# make lock"
    assert all(re.fullmatch(r"[a-z0-9-]+(\[\w+\])?==[\w.+]+", line) for line in lines[1:]), lines
    assert f"> requirements/{name}.txt\n" in MAKEFILE.partition("\nlock:")[2]
    assert environment in MAKEFILE.partition("\nclean:")[2].split()


def test_what_is_installed_with_a_package_is_a_range():
    """Whoever installs labelwise beside other packages needs room; the environments here are pinned."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    required = chain(project["dependencies"], *project["optional-dependencies"].values())
    assert [one for one in required if "==" in one] == []


def test_the_gpus_environment_reads_tokenizers_that_sentencepiece_wrote():
    """DeBERTa-v3 has no other; spacy-transformers requires neither package."""
    pinned = read("requirements/gpu.txt")
    assert "\nsentencepiece==" in pinned
    assert "\nprotobuf==" in pinned


def test_a_benchmark_that_make_is_told_to_run_is_there():
    pages = [path for folder in (".", "docs", "benchmarks") for path in (ROOT / folder).glob("*.md")]
    names = {name for path in pages for name in re.findall(r"BENCH=([a-z_]+)", path.read_text(encoding="utf8"))}
    assert {name for name in names if not (ROOT / "benchmarks" / f"{name}.py").is_file()} == set()


def test_every_test_that_ci_leaves_out_is_run_by_another_workflow():
    workflows = "".join(path.read_text(encoding="utf8") for path in (ROOT / ".github/workflows").glob("*.yml"))
    assert {"lint", "docs", "test", "test-all", "nightly"} <= {*re.findall(r"run: make (\S+)", workflows)}
