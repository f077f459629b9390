import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from scripts.merge import merge_cli
from tests.conftest import call, task, write_jsonl

TEXTS = [f"Ann met Bob {number}" for number in range(300)]
ANN, BOB = (0, 3), (8, 11)
prodigys = partial(task, label="PERSON", answer="accept", _view_id="ner_manual")


def run_merge(root: Path, *commands: dict, status: int = 0) -> str:
    sections = {"vars": {"own": "prodigy"}, "merge": {"dev_ratio": 0, "test_ratio": 0}, "commands": commands}
    (root / "project.yml").write_text(json.dumps(sections), encoding="utf8")
    options = ["--metrics", root / "merge.json", "--project", root / "project.yml", "--workers", 1]
    return " ".join(call(merge_cli, root / "prodigy", root / "corpus", *options, status=status).split())


def merge(root: Path) -> tuple[str, dict]:
    return run_merge(root), json.loads((root / "merge.json").read_text(encoding="utf8"))


def names_in(declared: Path) -> list[str]:
    return [entry["name"] for entry in yaml.safe_load(declared.read_text(encoding="utf8"))]


@pytest.mark.guarantee("declared")
def test_doccanos_export_of_users_who_do_not_share_is_a_data_set_for_each(tmp_path):
    """All files share the texts' ids: 23 texts are admin's and ann's, 10 ann's and bob's."""
    rows = [{"id": number, "text": text, "label": [[*ANN, "PERSON"]]} for number, text in enumerate(TEXTS[:133])]
    for name, own in (("admin", rows[:40]), ("ann", rows[17:90]), ("bob", rows[80:])):
        write_jsonl(tmp_path / "prodigy" / f"{name}.jsonl", own)
    _, ledger = merge(tmp_path)
    assert names_in(tmp_path / "prodigy/datasets.yml") == ["admin", "ann", "bob"]
    assert (ledger["rows"], ledger["rows_read"]) == ({"merged": 166}, 166)
    assert ledger["agreement"]["PERSON"] == {"texts": 33, "both": 33, "spans": 66, "f": 1.0}


@pytest.mark.guarantee("declared")
def test_a_later_export_is_listed_in_the_entry_and_what_was_deleted_stays_deleted(tmp_path):
    """50 of 150 spans were deleted; until the entry lists both, they are two datasets."""
    declared, entry = tmp_path / "prodigy/datasets.yml", "labels: [PERSON, TITLE], rename: {PER: PERSON}, split: train"
    first = [prodigys(text, ANN, BOB, label="PER") for text in TEXTS[:50]]
    first += [prodigys(text, ANN, label="PER") for text in TEXTS[50:100]]
    write_jsonl(tmp_path / "prodigy/person.jsonl", first)
    write_jsonl(tmp_path / "prodigy/person-june.jsonl", [prodigys(text, ANN, label="PER") for text in TEXTS[:100]])
    declared.write_text(before := f"# ours\n- {{name: person, path: person.jsonl, {entry}}}\n", encoding="utf8")
    printed, _ = merge(tmp_path)
    assert "has several files" not in printed
    assert declared.read_text(encoding="utf8").startswith(before), "what is there stays as it is"
    assert names_in(declared) == ["person", "person-june"]
    both = f"- {{name: person, path: [person.jsonl, person-june.jsonl], {entry}}}\n"
    declared.write_text(both, encoding="utf8")
    printed, ledger = merge(tmp_path)
    assert "Dataset 'person': 2 files and no span of 'TITLE'. If two files have an answer" in printed
    assert "If each file was annotated for other labels, give each a separate entry" in printed
    assert ledger["rows"] == {"merged": 100, "superseded": 100}
    assert ledger["spans"] == {"entity": 100, "in superseded task": 150}
    assert {label: n.get("gold") for label, n in ledger["labels"].items()} == {"PERSON": 100, "TITLE": None}


@pytest.mark.guarantee("watched-data")
def test_untracked_data_is_refused_with_the_lines_to_paste(tmp_path):
    (tmp_path / "linked").symlink_to("elsewhere")
    paths = ["ann.jsonl", "link.jsonl", "../bob.jsonl", str(tmp_path / "more/../more/sue.jsonl"), "../linked/*.jsonl"]
    for path in (*paths[2:4], "../elsewhere/x.jsonl", "../elsewhere/y.jsonl", "../elsewhere/z.jsonl", "ann.jsonl"):
        write_jsonl(tmp_path / "prodigy" / path, [prodigys(f"{text} in {path[-9:]}", ANN) for text in TEXTS[:20]])
    (tmp_path / "prodigy/link.jsonl").symlink_to("../elsewhere/x.jsonl")
    (tmp_path / "prodigy/folder").symlink_to("../elsewhere")
    declared = tmp_path / "prodigy/datasets.yml"
    command = {"name": "merge", "script": [], "deps": ["${vars.own}"], "outputs": ["corpus/manifest.json"]}

    def merged(*paths: str, status: int = 0) -> str:
        declared.write_text(json.dumps([{"name": "all", "path": paths, "labels": ["PERSON"]}]), encoding="utf8")
        return run_merge(tmp_path, command, status=status)

    printed = merged(*paths, status=1)
    assert "bob.jsonl: neither weasel nor DVC would see a change here, and both would skip 'merge'" in printed
    assert "of its stage in dvc.yaml: - bob.jsonl - elsewhere - more/sue.jsonl" in printed
    assert not (tmp_path / "corpus").exists()
    assert "of its stage in dvc.yaml: - elsewhere/y.jsonl" in merged("folder/y.jsonl", status=1)
    (tmp_path / "elsewhere/ours.yml").write_text("- {name: a, path: ../prodigy/ann.jsonl, labels: [PERSON]}\n")
    given = [tmp_path / "elsewhere/ours.yml", tmp_path / "corpus", "--project", tmp_path / "project.yml"]
    assert "ours.yml: neither weasel nor DVC would see a change" in call(merge_cli, *given, status=1)
    command["deps"] += ["bob.jsonl", str(tmp_path / "more"), "linked"]
    assert ": 120 texts" in merged(*paths)
    command["outputs"] = ["elsewhere/manifest.json"]
    assert ": 20 texts" in merged("folder/y.jsonl"), "what no command of the project writes is nobody's to skip"
