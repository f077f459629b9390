"""The commands of docs/consistency.md do what the page says, in its order."""

import json
import re

import pytest

from labelwise.demo.corpus import add_noise, make_doc
from labelwise.demo.write import write_brat
from tests.conftest import ROOT
from tests.test_end_to_end import Copy

pytestmark = pytest.mark.slow


def test_the_commands_of_the_page_can_be_run(tmp_path):
    (tmp_path / "project").mkdir()
    copy = Copy(tmp_path / "project")
    for name, value in {"check_folds": "2", "check_steps": "10", "raw_dir": "assets/raw"}.items():
        copy.set(name, value)
    labels = ("PERSON", "PLACE")
    docs = (add_noise(make_doc(number, labels=labels), 0.1, labels=labels) for number in range(24))
    write_brat(docs, copy.root / "assets" / "brat" / "noisy")
    (copy.root / "assets" / "raw" / "new.txt").write_text("Nadia Barton lives in Paris.")
    copy.run("weasel", "run", "all")
    page = (ROOT / "docs" / "consistency.md").read_text(encoding="utf8")
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    commands = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    assert len(commands) == 8
    for command in commands:
        copy.run(*command)
        if command[:2] == ["python", "-m"]:
            exported = json.loads((copy.root / command[4] / "export.json").read_text(encoding="utf8"))
            assert exported["texts"] == (1 if "raw" in command[3] else exported["texts"])
            assert exported["texts"] > 0
    found = json.loads((copy.root / "training/check/check.json").read_text(encoding="utf8"))
    assert found["texts"] == 24
    assert (copy.root / "training/check/tasks/PERSON.jsonl").is_file()
    assert not (copy.root / "training/check.folds").exists()
    assert (copy.root / "to-annotate/PERSON.jsonl").read_text(encoding="utf8").count("\n") == 1
