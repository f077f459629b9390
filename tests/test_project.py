"""project.yml, dvc.yaml, requirements, pages and code are in step; `make lint` runs this file."""

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest
import srsly
import yaml
from dvc.utils.hydra import apply_overrides

import labelwise
from labelwise.base.sections import DvcSection, PackageName, ReportSection, VarsSection
from labelwise.base.settings import decode_yaml, read_section
from labelwise.merge.rules.policies import Annotators, Policies
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions, Discontinuous, MissingAnn, Shifted
from labelwise.train import checkpoint as train_checkpoint
from tests.conftest import ROOT
from tests.test_house import imported

PROJECT = srsly.read_yaml(ROOT / "project.yml")  # as weasel does
BENCHMARKS = srsly.read_yaml(ROOT / "benchmarks/project.yml")
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
CACHED = {name: command for name, command in COMMANDS.items() if "outputs" in command and name != "demo"}
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf8"))["stages"]
OF_STUDENTS = ("label-raw", "train-student", "evaluate-student", "report-student")
OF_WORKFLOWS = {name: stage for name, stage in STAGES.items() if name not in ("seeds", *OF_STUDENTS)}
PIPELINES = ("cpu", "small", "gpu")
# The sections that commands read, with what stands in each.
SECTIONS = {
    "vars": VarsSection,
    "dvc": DvcSection,
    "brat": BratOptions,
    "merge": Settings,
    "report": ReportSection,
    "package": PackageName,
}
PATH = r"(?<![^\s'])(?:\$\{vars\.data\}|(?:assets|corpus|configs|training|metrics|plots)(?=/))/[^\s']+"
CODE = ("labelwise", "scripts", "spacy_per_label")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
ENVIRONMENTS = dict(re.findall(r"(?m)^(\.venv\S*)/\.ready: requirements/(\w+)\.txt", MAKEFILE))


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf8")


def imported_files(module: str) -> set[Path]:
    """Return a module's file and all files of the repository that it imports, directly or not."""
    files, queue = set(), [ROOT / f"{module.replace('.', '/')}.py"]
    while queue:
        current = queue.pop()
        if current not in files:
            files.add(current)
            queue += imported(current)
    return files


def needed(command) -> set[str]:
    names = set()
    for module in re.findall(r"-m (scripts\.\w+)", " ".join(command["script"])):
        for path in imported_files(module):
            top, *inside = path.relative_to(ROOT).parts
            if re.search(r"(?m)^\s*(from|import) spacy_per_label\b", path.read_text(encoding="utf8")):
                names.add("spacy_per_label")
            if top in ("labelwise", "scripts") and inside[0] != "__init__.py":
                names.add(f"{top}/{inside[0]}")
    return names


def outputs(command) -> list[str]:
    return [*command.get("outputs", []), *command.get("outputs_no_cache", [])]


def stages():
    for name, stage in OF_WORKFLOWS.items():
        for pipeline in PIPELINES if "matrix" in stage else [""]:
            text = yaml.safe_dump(stage, width=1000).replace("${item.pipeline}", pipeline)
            yield f"{name}-{pipeline}".strip("-"), yaml.safe_load(text)


@pytest.mark.guarantee("second-run")
@pytest.mark.parametrize("name", CACHED)
def test_a_command_depends_on_the_rooms_that_it_runs_through_and_on_no_others(name):
    code = {dep for dep in CACHED[name]["deps"] if dep.split("/")[0] in CODE}
    assert code == needed(CACHED[name])
    whole = [dep for dep in code if not dep.endswith(".py")]
    assert all((ROOT / dep).is_dir() for dep in whole)
    assert len(whole) <= 6


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - CACHED.keys()))
def test_a_command_that_isnt_skipped_needs_no_dependency_on_code(name):
    """Without outputs, weasel always runs it; the demo is made once."""
    command = COMMANDS[name]
    assert not [dep for dep in command.get("deps", ()) if dep.split("/")[0] in CODE]
    assert command.get("no_skip") or not command.get("outputs") or name == "demo"


@pytest.mark.parametrize("pipeline", ["small", "gpu"])
@pytest.mark.parametrize("name", ["train", "evaluate", "report"])
def test_a_command_of_another_pipeline_is_that_of_the_cpus(name, pipeline):
    cpus, other = ({**COMMANDS[f"{name}-{command_name}"]} for command_name in ("cpu", pipeline))
    for command in (cpus, other):
        del command["help"]
        command["script"] = [re.sub(r" --(workers|gpus) \S+", "", line) for line in command["script"]]
    assert yaml.safe_dump(cpus).replace("cpu", pipeline) == yaml.safe_dump(other)


@pytest.mark.parametrize("name", ["train-cpu", "train-small", "train-gpu"])
def test_a_fingerprint_covers_the_folders_that_the_command_depends_on(name):
    code = [dep for dep in COMMANDS[name]["deps"] if dep.startswith(CODE) and not dep.endswith(".py")]
    own = [str(Path("labelwise", folder).resolve().relative_to(ROOT)) for folder in ("base", *train_checkpoint.CODE)]
    assert sorted(own) == sorted(code)


@pytest.mark.parametrize("name", CACHED)
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


def test_the_workflow_of_a_pipeline_is_the_stages_of_dvc():
    for workflow, pipeline in (("all", "cpu"), ("small", "small"), ("gpu", "gpu")):
        names = [f"{name}-{pipeline}" if "matrix" in stage else name for name, stage in OF_WORKFLOWS.items()]
        assert PROJECT["workflows"][workflow] == names


@pytest.mark.parametrize(("name", "stage"), [*stages()])
def test_a_stage_is_the_command_of_that_name(name, stage):
    command = COMMANDS[name]
    (line,) = (" ".join(line.split()) for line in command["script"])
    options = re.compile(r" --(workers|gpus) \S+")  # a stage, which is any pipeline's, has both
    assert options.sub("", " ".join(stage["cmd"].split())) == options.sub("", line)
    assert set(options.findall(line)) <= set(options.findall(stage["cmd"]))
    outs = [
        dependency if isinstance(dependency, str) else next(iter(dependency))
        for kind in OUTS
        for dependency in stage.get(kind, ())
    ]
    if command.get("no_skip"):
        assert stage["always_changed"]
        assert {*command["deps"]} <= {*stage["deps"]}
    else:
        assert [dep for dep in command["deps"] if dep != "project.yml"] == stage["deps"]
        assert outputs(command) == outs
        assert ("project.yml" in command["deps"]) == ("params" in stage)


def test_the_stage_of_seeds_is_their_command_which_is_no_workflows():
    stage, command = STAGES["seeds"], COMMANDS["seeds"]
    assert stage["matrix"] == {"pipeline": "${dvc.seeds}"}
    assert [stage["cmd"].replace("item.", "vars.")] == command["script"]
    assert needed(command) == {dep for dep in stage["deps"] if dep.split("/")[0] in CODE}
    assert {"training/${item.pipeline}/model-best", *(f"corpus/{split}" for split in ("train", "dev", "test"))} <= {
        *stage["deps"]
    }
    assert not [name for name, workflow in PROJECT["workflows"].items() if "seeds" in workflow]


def test_the_stages_of_students_are_the_lines_of_their_command():
    command, stages = COMMANDS["student"], [STAGES[name] for name in OF_STUDENTS]
    *lines, compare = (" ".join(line.split()) for line in command["script"])
    commands = [" ".join(stage["cmd"].replace("${item.student}", "student").split()) for stage in stages]
    assert [line.replace(" --gpus ${vars.gpus}", "") for line in commands] == lines
    assert "scripts.compare" in compare
    assert all(stage["matrix"] == {"student": "${dvc.students}"} for stage in stages)
    for stage in stages[:-1]:
        assert {dep for dep in stage["deps"] if dep.split("/")[0] in CODE} == needed({"script": [stage["cmd"]]})
    for name, other in (("train-student", "train"), ("evaluate-student", "evaluate"), ("report-student", "report")):
        own, others = (
            yaml.safe_dump({key: value for key, value in STAGES[one].items() if key not in ("matrix", "deps")})
            for one in (name, other)
        )
        assert own.replace("student", "pipeline") == others
    own, others = ({*STAGES[name]["deps"]} for name in ("evaluate-student", "evaluate"))
    assert {dep.replace("item.student", "item.pipeline") for dep in own} == others


OUTS = ("outs", "metrics", "plots")


def test_a_stage_runs_again_if_a_section_that_it_reads_has_changed():
    """DVC watches that section, weasel the file."""
    params = {name: stage["params"] for name, stage in STAGES.items() if "params" in stage}
    assert params == {
        "convert-brat": [{"project.yml": ["brat", "dvc"]}],
        "merge": [{"project.yml": ["merge"]}],
        "report": [{"project.yml": ["report"]}],
        "report-student": [{"project.yml": ["report"]}],
    }


def test_dvc_changes_one_line_of_project_yml(tmp_path):
    copy = tmp_path / "project.yml"
    copy.write_bytes((ROOT / "project.yml").read_bytes())
    apply_overrides(copy, ["vars.seed=1"])
    before, after = (path.read_text(encoding="utf8").splitlines() for path in (ROOT / "project.yml", copy))
    changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert [(one.partition("#")[0].strip(), other.partition("#")[0].strip()) for one, other in changed] == [
        ("seed: 0", "seed: 1")
    ]
    assert changed[0][0].partition("#")[2] == changed[0][1].partition("#")[2]


def test_tools_that_read_yaml_1_1_and_1_2_read_the_same():
    """Weasel reads 1.1, DVC and labelwise 1.2."""
    for name in ("project.yml", "benchmarks/project.yml"):
        assert (
            decode_yaml(read(name).encode(), dict, name, "")
            == yaml.safe_load(read(name))
            == srsly.read_yaml(ROOT / name)
        )


def test_a_variable_on_a_line_or_of_a_stage_is_defined():
    """DVC reports an undefined one only when it runs the stage."""
    values = {"vars": PROJECT["vars"], "dvc": PROJECT["dvc"], "item": {"pipeline": "cpu", "student": "student"}}
    for name in ("project.yml", "dvc.yaml"):
        for names in re.findall(r"\$\{([\w.]+)\}", re.sub(r"(?m)#.*", "", read(name))):
            value = values
            for key in names.split("."):
                assert key in value, (name, names)
                value = value[key]


def test_variables_are_few_scalars_and_used():
    lines = "".join(line for command in COMMANDS.values() for line in [*command["script"], *command.get("deps", ())])
    assert {*re.findall(r"\$\{vars\.(\w+)\}", lines)} == PROJECT["vars"].keys()
    assert all(isinstance(value, str | int | float) for value in PROJECT["vars"].values())


@pytest.mark.parametrize("section", SECTIONS)
def test_what_a_section_lists_has_its_default(section):
    defaults = msgspec.to_builtins(SECTIONS[section]())
    assert PROJECT[section] == {key: defaults[key] for key in PROJECT[section]}
    assert PROJECT[section]
    assert read_section(ROOT / "project.yml", section, SECTIONS[section]) == SECTIONS[section]()
    if section in ("vars", "dvc"):
        assert PROJECT[section].keys() == defaults.keys()


def test_there_is_no_section_that_nobody_reads():
    weasels = {"title", "description", "workflows", "commands"}
    assert PROJECT.keys() == SECTIONS.keys() | weasels


def test_the_benchmarks_corpora_are_those_of_a_commit_and_have_a_checksum():
    assets = BENCHMARKS["assets"]
    cloned = {asset["git"]["repo"] for asset in assets if "git" in asset}
    named = {asset["git"]["repo"] for asset in assets if re.search(r"commit [0-9a-f]{40}", asset["description"])}
    assert named == cloned
    for asset in assets:
        assert asset["extra"] is True
        assert re.fullmatch(r"[0-9a-f]{32}", asset["checksum"])
        assert "git" in asset or re.search(r"/[0-9a-f]{40}/", asset["url"])


def test_ci_compares_every_pipeline_that_dvc_trains():
    script = yaml.safe_load(read(".github/workflows/compare.yml"))["jobs"]["compare"]["steps"]
    (lines,) = [step["run"] for step in script if step.get("name") == "Compare"]
    (listing,) = re.findall(r"for pipeline in \$\((.*)\); do", lines)
    printed = subprocess.check_output(["bash", "-c", f"PATH={Path(sys.executable).parent}:$PATH; {listing}"], cwd=ROOT)
    assert printed.decode().split() == PROJECT["dvc"]["pipelines"]


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
    assert getattr(SECTIONS[section](), policy) == values[0]
    [row] = re.findall(rf"(?m)^\| `{policy}` \|.*$", read("docs/settings.md").partition("## Policies")[2])
    assert sorted(re.findall(r"`([a-z_-]+)`", row)[1:]) == sorted(values)
    if policy in PROJECT[section]:
        comment = re.search(rf"(?m)^  {policy}: .*# (.*)$", read("project.yml"))[1]
        assert comment.split(": ")[-1].split(" | ") == list(values)


def test_the_changelog_begins_with_this_version():
    headings = re.findall(r"(?m)^## (\S+)", read("CHANGELOG.md"))
    assert headings[0] == labelwise.__version__.partition(".dev")[0]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_environment_is_pinned_and_can_be_made_anew(environment):
    name = ENVIRONMENTS[environment]
    lines = read(f"requirements/{name}.txt").splitlines()
    assert lines[0] == "# make lock"
    pin, digest = r"[a-z0-9-]+(\[\w+\])?==[\w.+]+", r"( \\\n    --hash=sha256:[0-9a-f]{64})"
    digests = "*" if name in ("dev", "gpu") else "+"  # torch has its own index, and pip wants all digests or none
    assert re.fullmatch(rf"({pin}{digest}{digests}\n)+", "\n".join([*lines[1:], ""])), name
    assert f"> requirements/{name}.txt\n" in MAKEFILE.partition("\nlock:")[2]
    assert environment in MAKEFILE.partition("\nclean:")[2].split()


def test_what_is_installed_with_a_package_is_a_range():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    required = chain(project["dependencies"], *project["optional-dependencies"].values())
    assert [requirement for requirement in required if "==" in requirement] == []


def test_the_recognizer_needs_the_versions_that_labelwise_needs():
    of_both = []
    for file in ("spacy_per_label/pyproject.toml", "pyproject.toml"):
        project = tomllib.loads(read(file))["project"]
        required = chain(project["dependencies"], *project["optional-dependencies"].values())
        of_both.append({re.split(r"\W*[<>=]", requirement)[0]: requirement for requirement in required})
    shared = of_both[0].keys() & of_both[1].keys()
    assert {"spacy", "thinc", "numpy", "spacy-transformers", "ctranslate2"} == shared
    assert {name: of_both[0][name] for name in shared} == {name: of_both[1][name] for name in shared}


def test_the_gpus_environment_reads_tokenizers_that_sentencepiece_wrote():
    """DeBERTa-v3 has no other; spacy-transformers requires neither package."""
    pinned = read("requirements/gpu.txt")
    assert "\nsentencepiece==" in pinned
    assert "\nprotobuf==" in pinned
