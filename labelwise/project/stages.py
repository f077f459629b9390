"""dvc.yaml, made from project.yml, so that DVC runs the very commands that weasel runs.

1. dvc.yaml names project.yml under `vars`, so `${vars.seed}` means in DVC what it means in weasel, and a change of one
   variable re-runs the stages whose commands have it.
2. `outputs` become `outs`; of `outputs_no_cache`, which stay in git, JSON files become metrics and TSV files plots.
3. A dependency on project.yml becomes one on the sections that the command reads by itself, as parameters.
4. The stages are the commands that the section `dvc` names, alone or by workflow, and that have outputs. DVC's bare
   commands are about all stages: `dvc pull` fails for outputs of a stage that nobody has run, in whatever file it is.
5. `no_skip` becomes `always_changed`: a report also shows what `check-folds` has found, if it has run. As a dependency,
   DVC would start it.
6. A command is one line, where project.yml has a line for each option.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import srsly
import yaml
from dvc.utils.hydra import apply_overrides

from labelwise.base.environment import command_line
from labelwise.base.errors import InputError
from labelwise.base.settings import read_section

SECTIONS = {  # that commands read by themselves
    "convert-brat": ["brat"],
    "export-prodigy": ["tokenizer", "merge"],
    "merge": ["tokenizer", "merge"],
    "check-folds": ["check"],
    "report": ["report"],
    "report-small": ["report"],
    "report-gpu": ["report"],
    "package": ["package", "report"],
    "package-small": ["package", "report"],
    "package-gpu": ["package", "report"],
}
# Outputs that DVC keeps until their stage runs: a merge prints what has changed since the earlier one.
# DVC's run cache skips such stages, and those with an uncached output that is neither metrics nor plots.
KEPT = ("metrics/merge.json",)


class DvcSection(msgspec.Struct, frozen=True):
    """The section `dvc` of project.yml.

    stages (str): the workflows and commands that DVC runs, separated by spaces.
    """

    stages: str = "all"


def as_dvc_writes(project: Path) -> str:
    """Return the content of project.yml as DVC writes it when an experiment changes a variable.

    RAISES (InputError): a comment, or a variable in a command, would be lost.
    """
    before = project.read_text(encoding="utf8")
    with TemporaryDirectory() as folder:
        copy = Path(folder) / project.name
        copy.write_text(before, encoding="utf8")
        apply_overrides(copy, [])
        after = copy.read_text(encoding="utf8")
    kept = after.splitlines()
    for number, line in enumerate(before.splitlines(), 1):
        if line.lstrip().startswith("#") and line not in kept:
            raise InputError(
                f"{project}:{number}: DVC would delete this comment; put it above a section or into one: {line}"
            )
    if before.count("${vars.") != after.count("${vars."):
        raise InputError(
            f"{project}: DVC would replace some ${{vars...}} by their values; begin those items with !!str"
        )
    return after


def dvc_yaml(project: Path) -> str:
    """Make the content of dvc.yaml.

    RAISES (InputError): the section `dvc` names something else than workflows and commands, or an uncached output is
        neither JSON nor TSV, so that DVC couldn't compare it.
    """
    content = srsly.read_yaml(project)
    workflows, commands = content.get("workflows", {}), content["commands"]
    stages = read_section(project, "dvc", DvcSection).stages.split()
    named = {name for one in stages for name in workflows.get(one, [one])}
    known = [command["name"] for command in commands]
    for unknown in sorted(named.difference(known)):
        raise InputError(
            f"{project}: dvc: stages: {unknown!r} is neither a workflow nor a command; give some of "
            f"{', '.join([*workflows, *known])}"
        )
    chosen = [command for command in commands if command["name"] in named and _outputs(command)]
    # As parameters, its values can be compared: dvc params diff.
    made: dict[str, Any] = {"params": [project.name], "vars": [project.name]}
    made["stages"] = {command["name"]: _stage(command, project.name) for command in chosen}
    return header() + yaml.safe_dump(made, sort_keys=False, width=110, allow_unicode=True)


def header() -> str:
    """Return the comment that says where dvc.yaml comes from."""
    return f"# Made from project.yml by `{command_line('update_dvc')}`; edit that, then run this.\n"


def _outputs(command: dict[str, Any]) -> list[str]:
    return [*command.get("outputs", []), *command.get("outputs_no_cache", [])]


def _stage(command: dict[str, Any], project: str) -> dict[str, Any]:
    script = [" ".join(line.split("\n")) for line in command["script"]]
    stage: dict[str, Any] = {
        "desc": command["help"],
        "cmd": script[0] if len(script) == 1 else script,
        "deps": [dep for dep in command["deps"] if dep != project],
    }
    if command.get("no_skip"):
        stage["always_changed"] = True
    if project in command["deps"]:
        stage["params"] = [{project: SECTIONS[command["name"]]}]
    if command.get("outputs"):
        stage["outs"] = command["outputs"]
    for path in command.get("outputs_no_cache", []):
        kind = {".json": "metrics", ".tsv": "plots"}.get(Path(path).suffix)
        if kind is None:
            raise InputError(f"{command['name']}: {path} is neither .json nor .tsv; cache it, as one of `outputs`")
        options: dict[str, Any] = {"cache": False}
        if path in KEPT:
            options["persist"] = True
        if kind == "plots":
            options |= {"x": "step", "y": "score"}
        stage.setdefault(kind, []).append({path: options})
    return stage
