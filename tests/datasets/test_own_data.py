import json
from pathlib import Path

import pytest

from labelwise.base.errors import InputError
from labelwise.datasets.own_data import check_project
from scripts.convert_brat import convert_brat_cli
from scripts.report import report_cli
from tests.conftest import call

LOCK = {"stages": {"a": {"deps": [{"path": "assets/brat", "nfiles": 3}, {"path": "x.py"}]}, "b": {"cmd": "b"}}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "configs/cpu.cfg")
    for folder in ("demo/brat", "demo/prodigy", "brat", "prodigy"):
        write(tmp_path, f"assets/{folder}/.gitkeep")
    write(tmp_path, "assets/demo/brat/a.txt", "Ann saw Rome.")
    write(tmp_path, "assets/demo/brat/a.ann", "T1\tPER 0 3\tAnn\n")
    return configure(tmp_path)


def write(root: Path, name: str, content: str = "") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content)


def configure(root: Path, data: str = "assets/demo", pipelines: str = "[cpu]") -> Path:
    write(root, "project.yml", f"vars:\n  data: {data}\ndvc:\n  pipelines: {pipelines}\n")
    return root


def refused(root: Path) -> str:
    with pytest.raises(InputError) as error:
        check_project(root / "project.yml")
    return str(error.value)


@pytest.mark.parametrize("own", ["brat/deep/a.ann", "prodigy/a.jsonl"])
def test_data_of_ones_own_beside_the_demo_stop_the_first_command_and_the_last(own, root, monkeypatch):
    monkeypatch.chdir(root)
    convert = (convert_brat_cli, "assets/demo/brat", "corpus/tasks", "--project", "project.yml")
    call(*convert)
    write(root, f"assets/{own}", '{"text": "a b", "spans": []}')
    for command in (convert, (report_cli, "cpu")):
        printed = " ".join(call(*command, status=1).split())
        assert f"assets/{own.partition('/')[0]} has your own data" in printed
        assert "`data: assets/demo`, the demo. Write `data: assets`" in printed
    configure(root, "assets")
    check_project(root / "project.yml")


def test_both_folders_empty_are_an_error_that_names_both_and_one_is_enough(root):
    configure(root, "assets")
    assert "no data: put a brat corpus into assets/brat, or Prodigy's datasets into assets/prodigy" in refused(root)
    write(root, "assets/prodigy/a.jsonl", '{"text": "a b", "spans": []}')
    check_project(root / "project.yml")
    (root / "assets/prodigy/a.jsonl").unlink()
    write(root, "assets/brat/a.ann")
    check_project(root / "project.yml")
    (root / "assets/demo/brat/a.txt").unlink()
    (root / "assets/demo/brat/a.ann").unlink()
    (root / "assets/brat/a.ann").unlink()
    assert "weasel run demo makes the demo" in refused(configure(root))


@pytest.mark.parametrize(
    ("pipelines", "message"),
    [
        ("[]", "pipelines: [] trains nothing; name a config, such as [cpu]"),
        ("[cpu, mine]", "pipeline 'mine': there is no configs/mine.cfg; there are cpu, pupil"),
        ("[../cpu]", "pipeline '../cpu': there is no"),
        ("[cpu, pupil]", "dvc: pipelines: pupil learns from raw texts, too; write it in `students`"),
        ("[cpu]\n  students: [pupil, cpu]", 'of its config: corpus = "training/cpu/corpus"'),
    ],
)
def test_a_list_without_pipelines_or_with_unknown_ones_is_refused(pipelines, message, root):
    write(root, "configs/pupil.cfg", '[paths]\ncorpus = "training/pupil/corpus"\n')
    assert message in refused(configure(root, pipelines=pipelines))


@pytest.mark.parametrize("folder", ["brat", "prodigy"])
def test_data_that_dvc_lock_knows_and_that_are_not_here_are_fetched_first(folder, root):
    """DVC runs experiments in folders with only what git and DVC track."""
    configure(root, "assets")
    other = "assets/brat/a.ann" if folder == "prodigy" else "assets/prodigy/a.jsonl"
    write(root, other, '{"text": "a b", "spans": []}')
    lock = json.dumps(LOCK).replace("assets/brat", f"assets/{folder}")
    write(root, "dvc.lock", lock)
    message = refused(root)
    assert f"assets/{folder}: " in message
    assert "dvc.lock knows 3 files in it, and 1 is here. Fetch them: `dvc pull`" in message
    assert message.index("dvc pull") < message.index(f"dvc add assets/{folder}/NAME")
    write(root, f"assets/{folder}/{Path(other).name}", '{"text": "a b", "spans": []}')
    check_project(root / "project.yml")  # the others are deleted
