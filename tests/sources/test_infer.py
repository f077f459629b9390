"""What is found in a folder of data sets that nobody has declared."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from labelwise.commands.merge import merge_cli
from labelwise.common.errors import InputError
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources import own_data
from labelwise.sources.convert_brat import convert_brat
from labelwise.sources.declarations import load_datasets
from labelwise.sources.infer import declare_folder, find_datasets, split_of
from labelwise.sources.own_data import has_data
from tests.conftest import ROOT, Merging, write_jsonl
from tests.sources.test_formats import make_database


def task(text: str, *labels: str) -> dict:
    return {"text": text, "spans": [{"start": 0, "end": 3, "label": label} for label in labels]}


@pytest.fixture
def folder(tmp_path) -> Path:
    """Data sets in several formats, and what is none."""
    root = tmp_path / "prodigy"
    write_jsonl(root / "person.jsonl", [task("Ann is here", "PERSON"), task("Bob too", "PERSON", "NAME"), "{oops"])
    write_jsonl(root / "person_eval.jsonl", [task("Eve is here", "PERSON")])
    write_jsonl(root / "empty.jsonl", [task("nothing")])
    write_jsonl(root / "numbers.jsonl", [{"tokens": ["Ann", "is"], "ner_tags": [1, 0]}])
    write_jsonl(root / ".hidden.jsonl", [task("Sue", "HIDDEN")])
    write_jsonl(root / "below" / "other.jsonl", [task("Sue", "BELOW")])
    (root / "places.dev.conll").write_text("Rom B-PLACE\n")
    (root / "README.md").write_text("text")
    make_database(root / "prodigy.db", {"drug": [task("Aspirin", "DRUG")], "none": []})
    return root


def test_what_is_there_is_found_with_labels_and_splits(folder):
    all_found = find_datasets(folder)
    found = {one.name: (one.file, one.labels, one.split, one.texts, one.spans) for one in all_found if one.labels}
    assert {one.name: one.kinds for one in all_found if one.labels}["person"] == ["complete"]
    assert {one.name: one.problem for one in all_found if not one.labels} == {
        "below": "a folder isn't looked into; declare a pattern or a folder in datasets.yml",
        "empty": "",
        "none": "",
        "numbers": "line 1: malformed: the tag 1 has no name; write the tags' names, or Parquet with them",
    }
    assert found == {
        "person": ("person.jsonl", ["NAME", "PERSON"], "auto", 2, 3),
        "person_eval": ("person_eval.jsonl", ["PERSON"], "test", 1, 1),
        "places.dev": ("places.dev.conll", ["PLACE"], "dev", 1, 1),
        "drug": ("prodigy.db", ["DRUG"], "auto", 1, 1),
    }


def test_it_is_declared_so_that_it_can_be_merged(folder, tmp_path):
    declare_folder(folder)
    assert {one["name"]: one["labels"] for one in yaml.safe_load((folder / "datasets.yml").read_text())} == {
        "drug": ["DRUG"],
        "person": ["NAME", "PERSON"],
        "person_eval": ["PERSON"],
        "places.dev": ["PLACE"],
    }
    ledger = merge_data([folder], tmp_path / "corpus", Settings())
    assert (ledger.rows["merged"], ledger.rows["bad JSON"]) == (5, 1)
    assert (ledger.texts["test"] >= 1, ledger.texts["dev"] >= 1) == (True, True)


def test_a_new_file_is_added_to_what_nobody_has_edited(folder):
    declare_folder(folder)
    before = yaml.safe_load((folder / "datasets.yml").read_text())
    write_jsonl(folder / "brand.jsonl", [task("Gap", "BRAND")])
    (folder / "prodigy.db").unlink()
    make_database(folder / "prodigy.db", {"drug": [task("Aspirin", "DRUG")], "dose": [task("5 mg", "DOSE")]})
    (folder / "person.conll").write_text("Bob B-PERSON\n")
    assert {one.name for one in declare_folder(folder).found if one.labels} == {"brand", "dose", "person-conll"}
    after = yaml.safe_load((folder / "datasets.yml").read_text())
    assert after[: len(before)] == before
    assert {one["name"]: one["labels"] for one in after[len(before) :]} == {
        "brand": ["BRAND"],
        "dose": ["DOSE"],
        "person-conll": ["PERSON"],
    }
    written = (folder / "datasets.yml").read_bytes()
    declare_folder(folder)
    assert (folder / "datasets.yml").read_bytes() == written


def test_what_somebody_has_edited_is_never_touched_and_the_lines_to_add_are_given(folder):
    declare_folder(folder)
    edited = (folder / "datasets.yml").read_text().replace("- NAME\n", "- NAME\n  - TITLE\n", 1)
    (folder / "datasets.yml").write_text(edited)
    write_jsonl(folder / "brand.jsonl", [task("Gap", "BRAND")])
    declared = declare_folder(folder)
    assert not declared.written
    line = {"name": "brand", "path": "brand.jsonl", "labels": ["BRAND"], "kind": "auto", "split": "auto"}
    assert yaml.safe_load(declared.lines) == [line]
    assert (folder / "datasets.yml").read_text() == edited


def test_a_declaration_of_a_stranger_is_an_error_whatever_is_in_it(folder, tmp_path):
    """YAML that is nested too deeply ends the process where nothing looks first."""
    (folder / "datasets.yml").write_text("[" * 100_000)
    code = "import sys, pathlib, labelwise.commands.declare as made; made.declare(pathlib.Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(InputError, match="it is nested more than"):
        merge_data([folder], tmp_path / "corpus", Settings())


def test_a_later_export_joins_the_data_set_that_it_is_of(tmp_path):
    """It has the same labels, and at least half of the answers; then the later counts, and nothing comes twice."""
    rows = [task(f"Ann {number}", "PERSON") | {"_task_hash": number, "_view_id": "ner_manual"} for number in range(6)]
    write_jsonl(tmp_path / "person.jsonl", rows)
    declare_folder(tmp_path)
    later = [
        *rows[:2],
        {**rows[2], "spans": []},
        *(task(f"Bob {n}", "PERSON") | {"_task_hash": 9 + n} for n in range(9)),
    ]
    write_jsonl(tmp_path / "person-2026-11-20.jsonl", later)
    write_jsonl(tmp_path / "staff.jsonl", [{**row, "_task_hash": row["_task_hash"] + 4} for row in rows])  # a third
    assert [one.later_than for one in declare_folder(tmp_path).found] == ["person", ""]
    declared = yaml.safe_load((tmp_path / "datasets.yml").read_text())
    assert [one["path"] for one in declared] == [["person.jsonl", "person-2026-11-20.jsonl"], "staff.jsonl"]
    ledger = merge_data([tmp_path / "datasets.yml"], tmp_path / "corpus", Settings())
    assert (ledger.rows["superseded"], ledger.spans["in superseded task"]) == (3, 3)


def test_nothing_that_is_there_is_passed_over_in_silence(tmp_path):
    """Capitals, other formats, a database that is none, one of an old Prodigy, and two files of one name."""
    for name in ("DRUG.JSONL", "export.zip", "train.conll.gz", "prodigy.db", "README.md", "datasets.yml.example"):
        (tmp_path / name).write_bytes(b"something else, of some length" * 9)
    make_database(tmp_path / "old.db", {"drug": [task("Aspirin", "DRUG")]})
    with closing(sqlite3.connect(tmp_path / "old.db")) as database:
        database.execute("alter table dataset drop column session")
        database.commit()
    write_jsonl(tmp_path / "person.jsonl", [task("Ann", "PERSON")])
    (tmp_path / "person.conll").write_text("Bob B-PERSON\n")
    found = declare_folder(tmp_path).found
    said = {one.name: one.problem.partition(":")[0].partition(";")[0] for one in found if one.problem}
    assert said == {
        "DRUG.JSONL": "its suffix isn't in small letters",
        "export.zip": "no format has such a name",
        "prodigy.db": "it can't be read as a Prodigy database",
        "train.conll.gz": "no format has such a name",
    }
    declared = load_datasets([tmp_path / "datasets.yml"])
    assert {one.name for one in declared} >= {"drug", "person-conll", "person-jsonl"}, "of an old one, sessions, too"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "export.zip").write_bytes(b"x")
    assert has_data(tmp_path / "other"), "the demo isn't trained in its place"


def test_what_cannot_be_read_is_told_as_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("nothing")
    write_jsonl(tmp_path / os.fsdecode(b"caf\xe9.jsonl"), [task("Ann", "PERSON")])
    write_jsonl(tmp_path / "other.jsonl", [task("Ann", "PERSON")])
    assert {one.file: one.problem.partition(";")[0] for one in declare_folder(tmp_path).found if one.problem} == {
        "pipe.jsonl": "this is neither a file nor a folder",
        "link.jsonl": "a link to nothing",
        "caf\\xe9.jsonl": "its name isn't UTF-8",
    }
    assert [dataset.name for dataset in load_datasets([tmp_path])] == ["other"], "what was written can be read"


def test_a_label_with_half_a_character_is_not_declared(tmp_path):
    value = {"start": 0, "end": 3, "text": "Ann", "labels": ["\udcff", "PERSON"]}
    row = {"id": 1, "text": "Ann", "annotator": 1, "annotation_id": 1, "label": [value]}
    (tmp_path / "export.json").write_text(json.dumps([row]))
    (one,) = declare_folder(tmp_path).found
    assert (one.labels, one.problem) == (["PERSON"], "line 1: invalid: half a character in the label '\\udcff'")
    assert load_datasets([tmp_path])[0].labels == ("PERSON",)


def test_a_database_whose_rows_are_all_in_sessions_says_so(tmp_path):
    make_database(tmp_path / "prodigy.db", {"drug": [task("Aspirin", "DRUG")]})
    with closing(sqlite3.connect(tmp_path / "prodigy.db")) as database, database:
        database.execute("delete from link where dataset_id < 100")
    (one,) = find_datasets(tmp_path)
    assert (one.texts, one.labels) == (0, [])
    assert one.problem == "all rows are in data sets of sessions, such as 2020-01-01_12-00-00: declare them by name"


def test_a_database_that_is_being_written_is_an_error(tmp_path, monkeypatch):
    """Else it would be missing in what is written, for good."""
    make_database(tmp_path / "prodigy.db", {"drug": [task("Aspirin", "DRUG")]})
    connect = sqlite3.connect
    monkeypatch.setattr(own_data.sqlite3, "connect", lambda *given, **options: connect(*given, **options, timeout=0.1))
    with closing(connect(tmp_path / "prodigy.db")) as writer:
        writer.execute("begin exclusive")
        with pytest.raises(InputError, match=r"prodigy\.db: database is locked; stop what is writing to it"):
            declare_folder(tmp_path)
    assert not (tmp_path / "datasets.yml").exists()


@pytest.mark.parametrize("names", [("train", "dev", "test"), ("train", "test")])
def test_train_is_all_of_train_if_there_are_dev_and_test(tmp_path, names):
    for name in names:
        (tmp_path / f"{name}.conll").write_text(f"{name} B-A\n")
    splits = {one.name: one.split for one in find_datasets(tmp_path)}
    assert splits == {name: "auto" if (name, len(names)) == ("train", 2) else name for name in names}


@pytest.mark.parametrize(
    ("name", "split"),
    [("a_test", "test"), ("Evaluation", "test"), ("x.dev.y", "dev"), ("valid", "dev"), ("latest", "auto"),
     ("medieval", "auto"), ("training", "train"), ("devices", "auto")],
)  # fmt: skip
def test_a_name_tells_the_split_if_it_has_the_word(name, split):
    assert split_of(name) == split


def test_the_command_declares_a_folder_once_and_prints_it(folder, tmp_path):
    import typer

    app = typer.Typer()
    app.command()(merge_cli)
    arguments = [str(folder), str(tmp_path / "corpus"), "--test-ratio", "0.1", "--workers", "1"]
    printed = CliRunner().invoke(app, arguments).output
    assert "person_eval" in printed
    printed = " ".join(printed.split())
    assert "datasets.yml was written: check it" in printed
    assert "numbers isn't declared It has no span with a label (line 1: malformed:" in printed
    assert "empty isn't declared" in printed
    (folder / "datasets.yml").write_text("- {name: p, path: person.jsonl, labels: [PERSON]}\n")
    assert "was written" not in CliRunner().invoke(app, arguments).output
    assert "person.jsonl" in (folder / "datasets.yml").read_text()


def test_a_folder_without_data_sets_is_passed_over(tmp_path):
    (tmp_path / "empty").mkdir()
    write_jsonl(tmp_path / "a.jsonl", [task("Ann", "A")])
    (tmp_path / "datasets.yml").write_text("- {name: a, path: a.jsonl, labels: [A]}\n")
    assert declare_folder(tmp_path / "empty").found == []
    assert not has_data(tmp_path / "empty")
    assert not has_data(tmp_path / "nowhere")
    assert has_data(tmp_path), "its datasets.yml declares some, wherever they are"
    assert [one.name for one in load_datasets([tmp_path / "datasets.yml", tmp_path / "empty"])] == ["a"]
    with pytest.raises(InputError, match="no data set is declared"):
        load_datasets([tmp_path / "empty"])


def test_labels_can_be_those_that_were_used_and_the_books_say_so(merging: Merging):
    merging.add("a", "auto", [task("Ann", "PERSON"), task("Rome", "PLACE")])
    merging.add("b", ["PERSON"], [task("Bob", "PERSON")])
    metrics = merging.root / "merge.json"
    merge_data([merging.root / "tasks/datasets.yml"], merging.root / "corpus", Settings(), metrics=metrics)
    written = json.loads(metrics.read_text())
    assert written["inferred"] == {"a": 2}
    assert (written["compared"], written["problems"]) == (True, 0)
    assert set(written["labels"]) == {"PERSON", "PLACE"}
    merging.declared.clear()
    merging.add("c", "auto", [task("nothing")])
    with pytest.raises(InputError, match="no span has a label; list the labels"):
        merging.run()
    (merging.root / "tasks/c.jsonl").write_text('{"tokens": ["Ann"], "ner_tags": [1]}\n')
    with pytest.raises(
        InputError, match=r"no span has a label \(c\.jsonl, line 1: malformed: the tag 1 has no name;.*\)"
    ):
        merging.run()


def test_beside_data_sets_of_ones_own_the_demo_is_not_converted(folder, tmp_path):
    """Nor is it an error that there is no brat document; but if there is one, it is converted."""
    (tmp_path / "brat").mkdir()
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "a.txt").write_text("Ann")
    (tmp_path / "demo" / "a.ann").write_text("T1\tA 0 3\tAnn\n")
    options = {"fallback": tmp_path / "demo", "unless": folder}
    convert_brat(tmp_path / "brat", tmp_path / "tasks", **options)
    assert yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text()) == []
    assert convert_brat(tmp_path / "demo", tmp_path / "tasks", unless=folder).labels == {"A": 1}
    convert_brat(tmp_path / "brat", tmp_path / "tasks", fallback=tmp_path / "demo", unless=tmp_path / "nowhere")
    assert len(yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())) == 1


def test_a_blank_label_does_not_cost_the_data_set(tmp_path):
    spans = [{"start": 0, "end": 1, "label": label} for label in ("A", " ", None)]
    rows = [{"text": "abc", "spans": [span]} for span in spans]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "datasets.yml").write_text("- {name: a, path: a.jsonl, labels: auto}")
    (dataset,) = load_datasets([tmp_path / "datasets.yml"])
    assert dataset.labels == ("A",)
