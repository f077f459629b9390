"""project.yml, dvc.yaml, the docs and the code are in step."""

import ast
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest
import srsly
import yaml
from dvc.utils.hydra import apply_overrides

from labelwise.errors import InputError
from labelwise.merge import cache as merge_cache
from labelwise.merge.rules.policies import Annotators, Policies
from labelwise.merge.rules.settings import Settings
from labelwise.package.wheel import PackageName
from labelwise.project.stages import SECTIONS, check_values
from labelwise.settings import read_section
from labelwise.sources.brat import Discontinuous, MissingAnn, Shifted
from labelwise.train import checkpoint as train_checkpoint
from scripts.check_labels import CheckSection
from scripts.convert_brat import BratSection
from scripts.report import ReportSection
from tests.conftest import ROOT, real_corpus
from tests.report.report_inputs import write_plots

PROJECT = srsly.read_yaml(ROOT / "project.yml")  # as weasel does
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
ONLY_PRINTED = ("console.py", "errors.py")  # no output depends on these


def imported_files(file: Path) -> set[Path]:
    """All files of the repository that a file imports, at any remove, and itself."""
    found, queue = set(), [file]
    while queue:
        current = queue.pop()
        if current in found:
            continue
        found.add(current)
        for node in ast.walk(ast.parse(current.read_text(encoding="utf8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            paths = [ROOT / (name.replace(".", "/") + ".py") for name in names]
            queue += [path for path in paths if path.is_file()]
    return found


def needed(command) -> set[str]:
    """The commands' modules, folders of modules, and configs that a command's lines use."""
    found = set()
    for line in command["script"]:
        for module in re.findall(r"-m (scripts\.\w+)", line):
            for path in imported_files(ROOT / (module.replace(".", "/") + ".py")):
                top, *inside = path.relative_to(ROOT).parts
                if top in ("labelwise", "scripts") and inside[0] not in ("__init__.py", *ONLY_PRINTED):
                    found.add(f"{top}/{inside[0]}")
        found |= set(re.findall(r"configs/\S+", line))
    return found


def outputs(command) -> list[str]:
    return [*command.get("outputs", []), *command.get("outputs_no_cache", [])]


@pytest.mark.parametrize("name", COMMANDS)
def test_all_code_that_a_command_uses_is_in_its_deps(name):
    assert needed(COMMANDS[name]) <= set(COMMANDS[name]["deps"])


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_depends_on_code_that_it_does_not_use(name):
    code = {dep for dep in COMMANDS[name]["deps"] if dep.startswith(("labelwise/", "scripts/", "configs/"))}
    assert code <= needed(COMMANDS[name])


@pytest.mark.parametrize(("stage", "names"), [(merge_cache, ["merge"]), (train_checkpoint, ["train-cpu", "train-gpu"])])
def test_a_fingerprint_covers_the_folders_that_the_command_depends_on(stage, names):
    for name in names:
        packages = ("labelwise/", "spacy_per_label")
        code = [dep for dep in COMMANDS[name]["deps"] if dep.startswith(packages) and not dep.endswith(".py")]
        assert [str(Path("labelwise", folder).resolve().relative_to(ROOT)) for folder in stage.CODE] == code


@pytest.mark.parametrize("name", COMMANDS)
def test_every_path_on_a_command_line_is_a_dep_or_an_output(name):
    command = COMMANDS[name]
    known = [*command["deps"], *outputs(command)]
    for line in command["script"]:
        for path in re.findall(r"(?<!\S)(?:assets|corpus|training|metrics|plots)/\S+", line):
            inside = any(path == item or path.startswith(item + "/") for item in known)
            assert inside or any(item.startswith(path + "/") for item in outputs(command)), path


def test_no_output_is_made_twice_or_inside_another():
    made = [output for command in COMMANDS.values() for output in outputs(command)]
    for i, one in enumerate(made):
        for other in made[i + 1 :]:
            assert not (one + "/").startswith(other + "/"), (one, other)
            assert not (other + "/").startswith(one + "/"), (one, other)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_reads_what_it_writes(name):
    for output in outputs(COMMANDS[name]):
        for dep in COMMANDS[name]["deps"]:
            assert not (dep + "/").startswith(output + "/"), dep
            assert not (output + "/").startswith(dep + "/"), dep


def test_workflows_make_every_input_before_it_is_used():
    made_by = {output: command["name"] for command in COMMANDS.values() for output in outputs(command)}
    workflows = PROJECT["workflows"]
    before = {"fix": workflows["all"]}
    for title, workflow in workflows.items():
        for position, name in enumerate(workflow):
            for dep in COMMANDS[name]["deps"]:
                if dep in made_by:
                    assert made_by[dep] in [*before.get(title, ()), *workflow[:position]], (name, dep)


def test_reports_are_written_again_by_weasel_as_they_show_more_than_their_deps():
    """The findings of check-folds, where it was run."""
    assert [name for name, command in COMMANDS.items() if command.get("no_skip")] == ["report", "report-gpu"]
    assert PROJECT["workflows"]["fix"] == ["check-folds", "report"]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_one_imperative_line(name):
    text = COMMANDS[name]["help"]
    assert "\n" not in text
    assert text[0].isupper()
    assert not text.endswith(".")


def test_variables_are_few():
    """What is set rarely stands in a section, or in a config."""
    assert len(PROJECT["vars"]) <= 20


def test_variables_are_scalars_and_used():
    lines = "".join(line for command in COMMANDS.values() for line in [*command["script"], *command["deps"]])
    for name, value in PROJECT["vars"].items():
        assert isinstance(value, str | int | float), name
        assert f"${{vars.{name}}}" in lines, name
    for name in re.findall(r"\$\{vars\.(\w+)\}", lines):
        assert name in PROJECT["vars"]


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ("brat", BratSection),
        ("merge", Settings),
        ("check", CheckSection),
        ("report", ReportSection),
        ("package", PackageName),
    ],
)
def test_a_section_lists_all_its_keys_with_their_defaults(section, kind):
    defaults = msgspec.to_builtins(kind())
    defaults.pop("tokenizer", None)
    assert PROJECT[section] == defaults
    assert read_section(ROOT / "project.yml", section, kind) == kind()


def test_a_command_runs_again_if_a_section_that_it_reads_has_changed():
    """Under DVC that section alone, under weasel the file."""
    stages = srsly.read_yaml(ROOT / "dvc.yaml")["stages"]
    read = {name: stage["params"][0]["project.yml"] for name, stage in stages.items() if "params" in stage}
    assert read == SECTIONS
    assert read.keys() == {name for name, command in COMMANDS.items() if "project.yml" in command["deps"]}
    own = {"title", "description", "vars", "directories", "assets", "workflows", "commands"}  # weasel's
    assert {section for sections in read.values() for section in sections} == PROJECT.keys() - own


@pytest.mark.parametrize("asset", PROJECT["assets"], ids=lambda asset: asset["dest"])
def test_assets_name_commit_and_checksum(asset):
    assert asset["extra"] is True
    assert re.fullmatch(r"[0-9a-f]{32}", asset["checksum"])


def test_assets_descriptions_name_a_commit_for_each_repository():
    cloned = [asset for asset in PROJECT["assets"] if "git" in asset]
    for repo in {asset["git"]["repo"] for asset in cloned}:
        descriptions = [asset["description"] for asset in cloned if asset["git"]["repo"] == repo]
        assert any(re.search(r"commit [0-9a-f]{40}", text) for text in descriptions), repo


def test_assets_that_are_files_are_those_of_a_commit():
    for asset in PROJECT["assets"]:
        assert "git" in asset or re.search(r"/[0-9a-f]{40}/", asset["url"])


def test_the_public_prodigy_tasks_are_those_that_the_project_names():
    folder = real_corpus("prodigy_jsonl")
    for asset in PROJECT["assets"]:
        if "url" in asset:
            file = folder / Path(asset["dest"]).name
            assert hashlib.md5(file.read_bytes()).hexdigest() == asset["checksum"]


def test_dvc_yaml_is_up_to_date():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.update_dvc", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_curves_are_drawn_without_a_gpu_and_without_complaints(tmp_path):
    """DVC says that plots failed if one of dvc.yaml isn't there: those of the GPU are empty tables."""
    results = tmp_path / "plots"
    shutil.copytree(ROOT / "plots", results, ignore=shutil.ignore_patterns("cpu*"))
    write_plots(results, "cpu")
    (tmp_path / ".dvc").mkdir()
    for name in ("project.yml", "dvc.yaml", ".dvc/config"):
        shutil.copy(ROOT / name, tmp_path / name)

    def run(*command: str) -> str:
        return subprocess.check_output(command, cwd=tmp_path, stderr=subprocess.STDOUT, text=True)

    run("git", "init", "-q")
    run("git", "add", "-A")
    run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x")
    assert "failed" not in run(sys.executable, "-m", "dvc", "plots", "diff", "HEAD")
    page = (tmp_path / "dvc_plots" / "index.html").read_text(encoding="utf8")
    assert set(re.findall(r"plots/\w+\.tsv", page)) >= {"plots/cpu.tsv"}


def test_the_table_of_commands_is_up_to_date(tmp_path):
    command = [Path(sys.executable).with_name("weasel"), "document", "--no-emoji", "--output", tmp_path / "README.md"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    generated = (tmp_path / "README.md").read_text(encoding="utf8").strip()
    assert generated in (ROOT / "docs" / "commands.md").read_text(encoding="utf8"), "see CONTRIBUTING.md"


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
    [row] = re.findall(rf"(?m)^\| `{policy}` \|.*$", (ROOT / "docs" / "accounting.md").read_text(encoding="utf8"))
    assert sorted(re.findall(r"`([a-z_-]+)`", row)[1:]) == sorted(values)
    comment = re.search(rf"(?m)^  {policy}: .*# (.*)$", (ROOT / "project.yml").read_text(encoding="utf8"))[1]
    assert comment.split(": ")[-1].split(" | ") == list(values)


def test_the_readme_is_a_door():
    assert (ROOT / "README.md").read_text(encoding="utf8").count("\n") <= 110


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_door_begins_with_the_pitch_two_commands_and_the_report(page):
    text = (ROOT / page).read_text(encoding="utf8")
    pitch, run, test, picture = (
        text.index(part)
        for part in (
            "**Annotate label by label. Know what to fix next.**",
            "\nmake run ",
            "\nmake test ",
            "report.png)",
        )
    )
    assert pitch < run < test < picture < text.index("\n## ")


def test_the_reference_of_the_code_stands_apart_from_the_guides():
    site = srsly.read_yaml(ROOT / "mkdocs.yml")
    guides, reference = (pages for part in site["nav"] for pages in part.values())
    assert guides[0] == "index.md"
    assert [page for page in guides if page.startswith("api/")] == []
    assert [page for page in reference if not page.startswith("api/")] == []
    assert "navigation.tabs" in site["theme"]["features"]


def test_the_project_can_be_read_through():
    """Thirty lines for a command, on average, and what comes before them."""
    assert (ROOT / "project.yml").read_text(encoding="utf8").count("\n") < 75 + 30 * len(COMMANDS)


@pytest.mark.parametrize(
    ("override", "line", "changed"),
    [
        ("vars.seed=1", "  seed: 0\n", "  seed: 1\n"),
        ("merge.split_salt=x", "  split_salt: labelwise       # ", "  split_salt: x               # "),
    ],
)
def test_the_project_is_written_as_dvc_writes_it(tmp_path, override, line, changed):
    """What `dvc exp run -S` does to it: one line changes, and neither comments nor `${vars...}` are lost."""
    file = tmp_path / "project.yml"
    before = (ROOT / "project.yml").read_text(encoding="utf8")
    file.write_text(before, encoding="utf8")
    apply_overrides(file, [override])
    assert before.count(line) == 1
    assert file.read_text(encoding="utf8") == before.replace(line, changed)


@pytest.mark.parametrize("value", ["", "a b", '$HOME `x` \\ "', "; exit 3", "#", "é # x"])
@pytest.mark.parametrize("quotes", ["'", ""])
def test_a_shell_gets_the_values_of_variables_as_they_are_or_they_are_refused(tmp_path, value, quotes):
    command = {"name": "show", "script": [f"printf '<%s>' {quotes}${{vars.it}}{quotes} end"], "outputs": ["x"]}
    project = tmp_path / "project.yml"
    project.write_text(yaml.safe_dump({"vars": {"it": value}, "commands": [command]}), encoding="utf8")
    if not quotes and value != "a b":
        with pytest.raises(InputError, match=r"project\.yml: it: .* can't be part of show: it isn't in quotes"):
            check_values(project)
        return
    check_values(project)
    line = command["script"][0].replace("${vars.it}", value)
    found = subprocess.check_output(["sh", "-c", line], cwd=tmp_path, text=True)
    assert found == ("<a><b><end>" if not quotes else f"<{value}><end>")


def test_a_value_that_would_end_its_quotes_is_refused(tmp_path):
    command = {"name": "show", "script": ["echo '${vars.it}'"], "outputs": ["x"]}
    (tmp_path / "project.yml").write_text(yaml.safe_dump({"vars": {"it": "it's"}, "commands": [command]}))
    with pytest.raises(InputError, match=r"project\.yml: it: \"it's\" can't be part of show: an apostrophe"):
        check_values(tmp_path / "project.yml")
