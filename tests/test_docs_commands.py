"""The commands of two pages do what the pages say, in their order."""

import json
import re
from pathlib import Path

import pytest
import yaml

from labelwise.demo.corpus import DemoDoc, add_noise, make_doc
from labelwise.demo.write import write_brat
from labelwise.export.brat import standoff
from tests.conftest import ROOT
from tests.test_end_to_end import Copy

pytestmark = pytest.mark.slow

LABELS = ("PERSON", "PLACE")


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Copy:
    """A copy of the project with a small brat corpus of two labels, some of whose tags are wrong; all was run."""
    copy = Copy(tmp_path_factory.mktemp("project"))
    for name, value in {"check_folds": "2", "check_steps": "10"}.items():
        copy.set(name, value)
    write_brat((noisy(made(number)) for number in range(24)), copy.root / "assets" / "brat" / "noisy")
    copy.run("weasel", "run", "all")
    return copy


def made(number: int, labels: tuple[str, ...] = LABELS) -> DemoDoc:
    return make_doc(number, labels=labels, words=40)


def noisy(doc: DemoDoc) -> DemoDoc:
    return add_noise(doc, 0.1, labels=LABELS)


def blocks(page: str) -> list[list[list[str]]]:
    """The commands of each block of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf8")
    found = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [[line.partition("#")[0].split() for line in block.splitlines()] for block in found]


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf8").splitlines()]


def test_what_to_fix_first(project):
    (project.root / "assets" / "raw" / "new.txt").write_text("Nadia Barton lives in Paris.")
    commands = [command for block in blocks("consistency.md") for command in block]
    assert len(commands) == 8
    for command in commands:
        project.run(*command)
        if "scripts.export" in command:
            exported = json.loads((project.root / command[4] / "export.json").read_text(encoding="utf8"))
            assert exported["texts"] > 0
    found = json.loads((project.root / "training/check/check.json").read_text(encoding="utf8"))
    assert found["texts"] == 24
    assert (project.root / "training/check/tasks/PERSON.jsonl").is_file()
    assert [path.name for path in (project.root / "training").glob("*check*")] == ["check"]
    assert len(lines(project.root / "to-annotate/PERSON.jsonl")) == 1
    assert "More texts: of which label?" in (project.root / "report/cpu.html").read_text(encoding="utf8")


def test_label_by_label(project):
    """What people do in between is done here: a wrong tag is put right, and DATE is annotated on half of the texts."""
    first, check, again, keep, texts, more, compare, last = blocks("label-by-label.md")
    for name in ("name", "email"):
        project.run("git", "config", f"user.{name}", "t")
    project.run(*first[0])
    project.run(*check[0])
    doc = next(doc for doc in map(made, range(24)) if noisy(doc) != doc)
    file = (project.root / "assets" / "brat" / "noisy" / doc.path).with_suffix(".ann")
    right = [standoff(doc.text, span, number) for number, span in enumerate(doc.spans, 1)]
    file.write_text("".join(right), encoding="utf8", newline="")
    assert "Skipping 'convert-brat'" not in project.run(*again[0])
    for command in keep:
        project.run(*command)
    project.run(*texts[0])
    tasks = lines(project.root / "texts" / "texts.jsonl")
    assert len(tasks) == 24
    dates = {made(number).text: made(number, ("DATE",)).spans for number in range(24)}
    for task in tasks[::2]:
        task["spans"] = [{"start": s, "end": e, "label": label} for s, e, label in dates[task["text"]]]
    annotated = "".join(json.dumps(task) + "\n" for task in tasks[::2])
    (project.root / "assets/prodigy/date.jsonl").write_text(annotated, encoding="utf8")
    page = (ROOT / "docs" / "label-by-label.md").read_text(encoding="utf8")
    (declared,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert yaml.safe_load(declared)[0]["labels"] == ["DATE"]
    (project.root / "assets/prodigy/datasets.yml").write_text(declared, encoding="utf8")
    project.run(*more[0])
    merged = json.loads((project.root / "metrics/merge.json").read_text(encoding="utf8"))["labels"]
    assert {label: counts["complete"] for label, counts in merged.items()} == {"PERSON": 24, "PLACE": 24, "DATE": 12}
    compared = project.run(*compare[0])
    # Ten steps find nothing, so there is no interval; p needs the predictions of before, from DVC's cache.
    compared_rows = [line.split() for line in compared.splitlines() if line.startswith((*LABELS, "all"))]
    assert {row[0]: "1.0000" in row for row in compared_rows} == {"PERSON": True, "PLACE": True, "all": True}
    assert "No intervals" not in compared
    assert "DATE" in compared.partition("mean (macro)")[2]
    for command in last:
        project.run(*command)
    to_annotate = {path.stem: lines(path) for path in (project.root / "to-annotate").glob("*.jsonl")}
    assert {label: len(tasks) for label, tasks in to_annotate.items()} == {"PERSON": 0, "PLACE": 0, "DATE": 12}
    assert {task["text"] for task in to_annotate["DATE"]} == {task["text"] for task in tasks[1::2]}
