"""What is found in a folder of data sets that nobody has declared."""

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from labelwise.commands.merge import merge_cli
from labelwise.common.errors import InputError
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources import undeclared
from labelwise.sources.convert_brat import convert_brat
from labelwise.sources.declarations import load_datasets
from labelwise.sources.files import has_data
from labelwise.sources.undeclared import Undeclared, declare_folder
from tests.conftest import Merging, write_jsonl
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


def declared(folder: Path) -> list[dict]:
    return yaml.safe_load((folder / "datasets.yml").read_text(encoding="utf8"))


def problems(found: list[Undeclared]) -> dict[str, str]:
    return {one.entry.name: one.problem.partition(";")[0] for one in found if not one.entry.labels}


def test_each_file_has_an_entry_with_the_labels_in_it(folder):
    found = declare_folder(folder)
    assert problems(found) == {
        "below": "a folder isn't looked into",
        "empty": "it has no span with a label",
        "none": "it has no span with a label",
        "numbers": "it has no span with a label (line 1: malformed: the tag 1 has no name",
    }
    assert declared(folder) == [
        {"name": "drug", "db": "prodigy.db", "labels": ["DRUG"]},
        {"name": "person", "path": "person.jsonl", "labels": ["NAME", "PERSON"]},
        {"name": "person_eval", "path": "person_eval.jsonl", "labels": ["PERSON"]},
        {"name": "places.dev", "path": "places.dev.conll", "labels": ["PLACE"]},
    ]
    assert {one.entry.name: (one.texts, len(one.spans)) for one in found if one.entry.labels} == {
        "drug": (1, 1),
        "person": (2, 3),
        "person_eval": (1, 1),
        "places.dev": (1, 1),
    }


def test_what_was_declared_can_be_merged(folder, tmp_path):
    declare_folder(folder)
    ledger = merge_data([folder], tmp_path / "corpus", Settings())
    assert (ledger.rows["merged"], ledger.rows["bad JSON"]) == (5, 1)


FORMS = [
    "# ours\n- {name: p, path: person.jsonl, labels: [PERSON]}",
    "- name: p  # a comment\n  path: [person.jsonl, ./person_eval.jsonl]\n  labels:\n    - PERSON\n",
    "  - name: p\n    path: person*\n    labels: [PERSON]\n",
]


@pytest.mark.parametrize("written", FORMS)
def test_what_is_new_is_added_once_and_what_is_there_stays_as_it_is(folder, written):
    (folder / "datasets.yml").write_text(written)
    entry = declared(folder)
    declare_folder(folder)
    whole = (folder / "datasets.yml").read_text()
    assert whole.startswith(written)
    assert declared(folder)[:1] == entry
    write_jsonl(folder / "brand.jsonl", [task("Gap", "BRAND")])
    write_jsonl(folder / "p.jsonl", [task("Gap", "BRAND")])
    (folder / "prodigy.db").unlink()
    rows = {"drug": [task("Aspirin", "DRUG")], "dose": [task("5 mg", "DOSE")], "none": []}
    make_database(folder / "prodigy.db", rows)
    assert [one.entry.name for one in declare_folder(folder) if one.entry.labels] == ["dose", "brand", "p.jsonl"]
    assert (folder / "datasets.yml").read_text().startswith(whole)
    before = (folder / "datasets.yml").read_bytes()
    assert problems(declare_folder(folder)).keys() == {"below", "empty", "none", "numbers"}
    assert (folder / "datasets.yml").read_bytes() == before


def test_a_name_that_looks_like_a_pattern_is_added_once(tmp_path):
    write_jsonl(tmp_path / "a[1].jsonl", [task("Ann", "PERSON")])
    declare_folder(tmp_path)
    assert declare_folder(tmp_path) == []
    assert [one["path"] for one in declared(tmp_path)] == ["a[1].jsonl"]


def test_an_entry_stays_where_its_file_is_gone(folder, tmp_path):
    declare_folder(folder)
    before = (folder / "datasets.yml").read_bytes()
    (folder / "person.jsonl").unlink()
    declare_folder(folder)
    assert (folder / "datasets.yml").read_bytes() == before
    with pytest.raises(FileNotFoundError, match=r"data set 'person': there is no file .*person\.jsonl"):
        merge_data([folder], tmp_path / "corpus", Settings())


def test_a_list_in_brackets_is_not_added_to_and_what_to_add_is_said(folder):
    written = "[{name: p, path: person.jsonl, labels: [PERSON]}]\n"
    (folder / "datasets.yml").write_text(written)
    with pytest.raises(InputError, match="begin each data set with `- ` on a line of its own") as raised:
        declare_folder(folder)
    assert (folder / "datasets.yml").read_text() == written
    lines = str(raised.value).partition("\n")[2]
    (folder / "datasets.yml").write_text(f"- {written[1:-2]}\n{lines}")
    assert [one["name"] for one in declared(folder)] == ["p", "drug", "person_eval", "places.dev"]
    assert not any(one.entry.labels for one in declare_folder(folder))


def test_two_data_sets_of_one_name_are_told(folder):
    """A database gives its data sets names; a file can have any."""
    (folder / "datasets.yml").write_text("- {name: drug, path: person*, labels: [PERSON]}\n")
    assert problems(declare_folder(folder))["drug"] == "another data set has this name in datasets.yml"


def test_a_declaration_of_a_stranger_is_an_error_whatever_is_in_it(folder, tmp_path):
    """YAML that is nested too deeply ends the process where nothing looks first."""
    (folder / "datasets.yml").write_text("[" * 100_000)
    with pytest.raises(InputError, match="it is nested more than"):
        declare_folder(folder)
    with pytest.raises(InputError, match="it is nested more than"):
        merge_data([folder], tmp_path / "corpus", Settings())


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
    said = problems(declare_folder(tmp_path))
    assert {name: problem.partition(":")[0] for name, problem in said.items()} == {
        "DRUG.JSONL": "its suffix isn't in small letters",
        "export.zip": "no format has such a name",
        "prodigy.db": "it can't be read as a Prodigy database",
        "train.conll.gz": "no format has such a name",
    }
    names = {one.name for one in load_datasets([tmp_path / "datasets.yml"])}
    assert names >= {"drug", "person", "person.jsonl"}, "of an old one, sessions, too"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "export.zip").write_bytes(b"x")
    assert has_data(tmp_path / "other"), "the demo isn't trained in its place"


def test_what_cannot_be_read_is_told_as_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("nothing")
    write_jsonl(tmp_path / os.fsdecode(b"caf\xe9.jsonl"), [task("Ann", "PERSON")])
    write_jsonl(tmp_path / "other.jsonl", [task("Ann", "PERSON")])
    assert problems(declare_folder(tmp_path)) == {
        "pipe.jsonl": "this is neither a file nor a folder",
        "link.jsonl": "a link to nothing",
        "caf\\xe9.jsonl": "its name isn't UTF-8",
    }
    assert [dataset.name for dataset in load_datasets([tmp_path])] == ["other"], "what was written can be read"


def test_a_label_with_half_a_character_is_not_declared(tmp_path):
    value = {"start": 0, "end": 3, "text": "Ann", "labels": ["\udcff", "PERSON"]}
    row = {"id": 1, "text": "Ann", "annotator": 1, "annotation_id": 1, "label": [value]}
    (tmp_path / "export.json").write_text(json.dumps([row]))
    (one,) = declare_folder(tmp_path)
    assert (one.entry.labels, one.problem) == (("PERSON",), "line 1: invalid: half a character in the label '\\udcff'")
    assert load_datasets([tmp_path])[0].labels == ("PERSON",)


def test_a_database_that_is_being_written_is_an_error(tmp_path, monkeypatch):
    """Else it would be missing in what is written, for good."""
    make_database(tmp_path / "prodigy.db", {"drug": [task("Aspirin", "DRUG")]})
    connect = sqlite3.connect
    monkeypatch.setattr(
        undeclared.sqlite3, "connect", lambda *given, **options: connect(*given, **options, timeout=0.1)
    )
    with closing(connect(tmp_path / "prodigy.db")) as writer:
        writer.execute("begin exclusive")
        with pytest.raises(InputError, match=r"prodigy\.db: database is locked; stop what is writing to it"):
            declare_folder(tmp_path)
    assert not (tmp_path / "datasets.yml").exists()


def test_the_command_declares_a_folder_once_and_prints_it(folder, tmp_path):
    app = typer.Typer()
    app.command()(merge_cli)

    def run() -> str:
        arguments = [str(folder), str(tmp_path / "corpus"), "--workers", "1"]
        return " ".join(CliRunner().invoke(app, arguments).output.split())

    printed = run()
    assert re.search(r"Check the 4 data sets added to \S+datasets\.yml The labels are those that were used", printed)
    assert "'numbers' isn't declared it has no span with a label (line 1: malformed:" in printed
    assert "'empty' isn't declared" in printed
    assert "added" not in run()


def test_a_folder_without_data_sets_is_passed_over(tmp_path):
    (tmp_path / "empty").mkdir()
    write_jsonl(tmp_path / "a.jsonl", [task("Ann", "A")])
    (tmp_path / "datasets.yml").write_text("- {name: a, path: a.jsonl, labels: [A]}\n")
    assert declare_folder(tmp_path / "empty") == []
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
