import ast
import json
import re
from importlib import import_module

import pytest
import typer
from spacy.cli.train import train_cli as spacy_train
from spacy.util import load_config

from benchmarks.gpu_kit import common, row, stages
from scripts.train import train_cli
from tests.conftest import ROOT

KIT = ROOT / "benchmarks" / "gpu_kit"
SHELL = (KIT / "device.sh").read_text(encoding="utf8")
PLANS = dict(re.findall(r'(?m)^(full|short)="(.*)"$', SHELL))


@pytest.fixture(autouse=True)
def no_transformer(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(stages, "transformer", lambda kind: tmp_path / kind)
    monkeypatch.setattr(common, "transformer", lambda kind: tmp_path / kind)


def parse(function, arguments: list[str]) -> dict:
    app = typer.Typer()
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": function is spacy_train})(
        function
    )
    return typer.main.get_command(app).make_context("command", arguments).params


@pytest.mark.parametrize("cpu", [True, False])
def test_the_commands_of_stages_have_options_that_are_there(cpu, monkeypatch, tmp_path):
    monkeypatch.setattr(stages, "CPU", cpu)
    (tmp_path / "peer.cfg").touch()
    started = {
        "scripts.train": (train_cli, stages.resume_command()),
        "spacy": (spacy_train, stages.peer_command(tmp_path)),
        "benchmarks.gpu": (import_module("benchmarks.gpu").main, stages.benchmarks_command()),
    }
    for module, (function, command) in started.items():
        assert command[1:4] == ["-m", "benchmarks.gpu_kit.watched", module]
        assert parse(function, command[5 if module == "spacy" else 4 :])
    *_, file = stages.pytest_command()
    assert (ROOT / file).is_file()


def test_what_stages_override_is_in_the_config():
    tree = ast.parse((KIT / "stages.py").read_text(encoding="utf8"))
    written = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    written |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    names = {name.replace("__", ".") for name in written if re.match(r"(training|corpora|components)(__|\.)", name)}
    assert len(names) > 4
    config = load_config(ROOT / "configs" / "gpu.cfg", interpolate=False)
    peers = load_config_of_peer()
    for name in {*names, "training.eval_frequency"}:
        *path, last = name.removeprefix("--").split(".")
        for source in (config, peers):
            block = source
            for part in path:
                block = block.get(part, {})
            if last in block:
                break
        else:
            pytest.fail(f"no config has {name}")


def load_config_of_peer():
    from thinc.api import Config

    from benchmarks.gpu_kit.peer import CONFIG

    return Config().from_str(CONFIG, interpolate=False)


def test_a_stage_that_was_cut_off_has_what_it_told(tmp_path, monkeypatch, capsys):
    log = tmp_path / "log"
    log.write_text('RESULT {"imports_s": 1.5}\nwarning\nRESULT {"ms_until_step_10": 40.0}\nRESULT {"ms_un')
    monkeypatch.setenv("OUT", str(tmp_path))
    monkeypatch.setenv("KIT_START", "0")
    row.main("train-roberta-bf16", 124, 0.0, log)
    result = json.loads((tmp_path / "results.jsonl").read_text())
    assert (result["imports_s"], result["ms_until_step_10"], result["error"]) == (1.5, 40.0, "timed out")
    assert "ms_until_step_10 40.0" in (tmp_path / "table.txt").read_text()
    assert "===== train-roberta-bf16, rc 124\n" in (tmp_path / "log.txt").read_text()
    assert "ERROR timed out" in capsys.readouterr().out


@pytest.mark.parametrize("plan", PLANS)
def test_each_stage_of_a_plan_is_there_and_fits_its_time(plan):
    steps = [stage.rsplit(":", 1) for stage in PLANS[plan].split()]
    names = [name for names, _ in steps for name in names.split("+")]
    assert {name.split("-")[0] for name in names} <= stages.STAGES.keys()
    assert all(15 <= int(limit) <= 120 for _, limit in steps)
    if plan == "full":
        assert {name.split("-")[0] for name in names} == stages.STAGES.keys() - {"benchmarks"}


def test_the_packages_are_those_of_the_gpu_environment():
    files = (KIT / "wheels.txt", ROOT / "requirements" / "gpu.txt")
    ours, pinned = ({*re.findall(r"(?m)^[\w.-]+==\S+$", path.read_text(encoding="utf8"))} for path in files)
    assert ours <= pinned
