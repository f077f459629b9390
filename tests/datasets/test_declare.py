import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.datasets.declarations import load_datasets
from labelwise.datasets.declare import declare_folder
from labelwise.datasets.entries import Entry, read_entries, write_entries
from labelwise.datasets.undeclared import Undeclared, labels_in, patterns_in
from labelwise.merge.checks import check_undeclared, print_checks
from labelwise.sources.files import has_data
from scripts.export import export_cli
from scripts.merge import merge_cli
from tests.clone import IDENTITY
from tests.conftest import ROOT, call, read_jsonl, run_command, task, write_jsonl
from tests.sources.reading import make_database

PERSONS = ["person.jsonl", "person_eval.jsonl"]


def marked(text: str, *labels: str) -> dict:
    return task(text, *((0, 3, label) for label in labels))


@pytest.fixture
def folder(tmp_path) -> Path:
    root = tmp_path / "prodigy"
    write_jsonl(root / "person.jsonl", [marked("Ann is here", "PERSON"), marked("Bob too", "PERSON", "NAME"), "{oops"])
    write_jsonl(root / "person_eval.jsonl", [marked("Eve is here", "PERSON")])
    write_jsonl(root / "empty.jsonl", [marked("nothing")])
    write_jsonl(root / "numbers.jsonl", [{"tokens": ["Ann", "is"], "ner_tags": [1, 0]}])
    write_jsonl(root / ".hidden.jsonl", [marked("Sue", "HIDDEN")])
    write_jsonl(root / "below" / "other.jsonl", [marked("Sue", "BELOW")])
    (root / "places.dev.conll").write_text("Rom B-PLACE\n")
    (root / "README.md").write_text("text")
    make_database(root / "prodigy.db", {"drug": [marked("Aspirin", "DRUG")], "none": []})
    return root


def test_a_label_that_is_a_word_of_yaml_is_declared_and_read(tmp_path):
    """NO is a country, and false in YAML 1.1."""
    write_jsonl(tmp_path / "country.jsonl", [marked("Ann is here", "NO", "SE", "1")])
    declare_folder(tmp_path)
    assert load_datasets([tmp_path])[0].labels == ("1", "NO", "SE")
    assert declared(tmp_path)[0]["labels"] == ["1", "NO", "SE"], "to PyYAML, too"


def problems(undeclared: list[Undeclared]) -> dict[str, str]:
    return {file.entry.name: file.problem.partition(";")[0] for file in undeclared if file.problem}


def declared(folder: Path) -> list[dict]:
    return yaml.safe_load((folder / "datasets.yml").read_text(encoding="utf8"))


@pytest.mark.parametrize(
    "written",
    [
        "# ours\n- {name: p, path: person.jsonl, labels: [PERSON]}",
        "- name: p  # a comment\n  path: [person.jsonl, ./person_eval.jsonl]\n  labels:\n    - PERSON\n",
        "- {name: p, path: person*, labels: [PERSON]}",
        "- {name: p, path: ../prodigy/person.jsonl, labels: [PERSON]}",
        "- {name: p, path: '{folder}/person.jsonl', labels: [PERSON]}",
    ],
)
def test_only_new_decisions_are_added_and_others_stay(folder, written):
    written = written.replace("{folder}", str(folder))
    (folder / "datasets.yml").write_text(written)
    entry = declared(folder)
    declare_folder(folder)
    whole = (folder / "datasets.yml").read_text()
    assert whole.startswith(written)
    assert declared(folder)[:1] == entry
    for name in ("brand", "p"):  # the name of one is taken
        write_jsonl(folder / f"{name}.jsonl", [marked("Gap", "BRAND")])
    (folder / "prodigy.db").unlink()
    make_database(folder / "prodigy.db", {"drug": [marked("Aspirin", "DRUG")], "dose": [marked("5 mg", "DOSE")]})
    assert [undeclared.entry.name for undeclared in declare_folder(folder) if not undeclared.problem] == [
        "dose",
        "brand",
        "p.jsonl",
    ]
    assert (folder / "datasets.yml").read_text().startswith(whole)
    before = (folder / "datasets.yml").read_bytes()
    assert problems(declare_folder(folder)).keys() == {"below", "empty", "numbers"}
    assert (folder / "datasets.yml").read_bytes() == before
    (folder / "datasets.yml").write_text("- {name: drug, path: person*, labels: [PERSON]}\n")
    two = {undeclared.entry.name: undeclared.entry for undeclared in declare_folder(folder) if not undeclared.problem}
    assert (two["prodigy-drug"].db, two["prodigy-drug"].dataset) == ("prodigy.db", "drug"), (
        "the database has a name too"
    )
    assert len(load_datasets([folder])) == 6


@pytest.mark.parametrize(
    ("pattern", "read", "undeclared"),
    [
        ("*/other.jsonl", ["below/other.jsonl"], {"below/more.jsonl"}),
        ("**/*e*.jsonl", ["empty.jsonl", "numbers.jsonl", *PERSONS, "below/more.jsonl", "below/other.jsonl"], set()),
    ],
)
def test_a_pattern_hides_no_file(folder, pattern, read, undeclared):
    write_jsonl(folder / "below/more.jsonl", [marked("Sue", "BELOW")])
    (folder / "datasets.yml").write_text(f"- {{name: p, path: '{pattern}', labels: [PERSON]}}\n")
    found = declare_folder(folder)
    datasets = {dataset.name: dataset.files for dataset in load_datasets([folder])}
    assert sorted(file.name for file in datasets["p"]) == sorted(read)
    files = {file.name for name in datasets for file in datasets[name] if not file.name.endswith(".db")}
    assert {*PERSONS, "places.dev.conll"} <= files
    assert {name for name in problems(found) if "/" in name} == undeclared
    assert ("'below/more.jsonl' isn't declared" in call(merge_cli, folder, folder / "../corpus")) is bool(undeclared)
    skipped = "- {name: more, path: below/more.jsonl, skip: true}\n- {name: gone, path: gone.jsonl, skip: true}\n"
    (folder / "datasets.yml").write_text((folder / "datasets.yml").read_text() + skipped)
    assert not {name for name in problems(declare_folder(folder)) if "/" in name}
    assert len(load_datasets([folder])) == len(datasets)


def test_the_example_has_all_keys_and_no_other():
    entries = read_entries(ROOT / "assets/prodigy/datasets.yml.example")
    written = {key for entry in yaml.safe_load(write_entries(entries)) for key in entry}
    defaults = {"kind", "split"}  # which the example says
    assert written | defaults == set(Entry.__struct_fields__)


def test_nothing_that_is_there_is_passed_over_in_silence(tmp_path):
    """Other formats, a dangling link, a name that isn't UTF-8, a broken database, two files of one name."""
    for name in ("drug.JSONL", "export.zip", "train.conll.gz", "prodigy.db", "README.md", "datasets.yml.example"):
        (tmp_path / name).write_bytes(b"something else, of some length" * 9)
    (tmp_path / "link.jsonl").symlink_to("nothing")
    write_jsonl(tmp_path / os.fsdecode(b"caf\xe9.jsonl"), [marked("Ann", "PERSON")])
    write_jsonl(tmp_path / "person[1].jsonl", [marked("Ann", "PERSON")])
    (tmp_path / "person[1].conll").write_text("Bob B-PERSON\n")
    messages = problems(declare_folder(tmp_path))
    assert {name: problem.partition(":")[0] for name, problem in messages.items()} == {
        "caf\\xe9": "its name isn't UTF-8",
        "drug.JSONL": "its suffix has capitals",
        "export.zip": "this is an archive",
        "link": "this is a broken link",
        "prodigy.db": "it can't be read as a Prodigy database",
        "train.conll.gz": "this is compressed",
    }
    assert {dataset.name for dataset in load_datasets([tmp_path])} == {"person[1]", "person[1].jsonl"}
    assert {undeclared.entry.name for undeclared in declare_folder(tmp_path)} == messages.keys(), (
        "they are declared once"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "export.zip").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    assert declare_folder(tmp_path / "empty") == []
    found = [has_data(tmp_path / name) for name in ("", "other", "empty", "nowhere")]
    assert found == [True, True, False, False], "the demo isn't trained in place of data"
    assert len(load_datasets([tmp_path, tmp_path / "empty"])) == 2
    with pytest.raises(InputError, match="no dataset is declared"):
        load_datasets([tmp_path / "empty"])


def test_the_command_declares_a_folder_once_and_ends_with_what_to_paste(folder, tmp_path):
    arguments = [folder, tmp_path / "corpus", "--workers", 1]
    printed = " ".join(call(merge_cli, *arguments).split())
    assert re.search(r"Check the 4 datasets added to \S+datasets\.yml They list the labels that occur", printed)
    assert "a `split` is what the file is named after" in printed
    rows = "drug DRUG 1 auto person NAME, PERSON 2 auto person_eval PERSON 1 test places.dev PLACE 1 dev ⚠"
    assert rows in printed, "texts and splits, too"
    assert declared(folder) == [
        {"name": "drug", "db": "prodigy.db", "labels": ["DRUG"]},
        {"name": "person", "path": "person.jsonl", "labels": ["NAME", "PERSON"]},
        {"name": "person_eval", "path": "person_eval.jsonl", "labels": ["PERSON"], "split": "test"},
        {"name": "places.dev", "path": "places.dev.conll", "labels": ["PLACE"], "split": "dev"},
    ]
    why = problems(declare_folder(folder))
    assert why == {
        "below": "the merge doesn't search folders",
        "empty": "it has no span with a label",
        "none": "it has no rows",
        "numbers": "it has no span with a label (numbers.jsonl, line 1: malformed: the tag 1 has no name",
    }
    assert f"numbers.jsonl: 'numbers' isn't declared: {why['numbers']}" in printed
    assert "added" not in call(merge_cli, *arguments)
    written = "[{name: p, path: person.jsonl, labels: [PERSON]}]\n"
    (folder / "datasets.yml").write_text(written)
    printed = call(merge_cli, *arguments)
    assert (folder / "datasets.yml").read_text() == written
    entries = [block.partition("⚠")[0] for block in printed.split("annotators were shown:")[1:]]
    pasted = [entry for one in entries for entry in yaml.safe_load(one)]
    assert printed.index("isn't declared") > printed.index("as entities")
    (folder / "datasets.yml").write_text(yaml.safe_dump([*yaml.safe_load(written), *pasted]))
    names = ["drug", "below", "empty", "person_eval", "places.dev"]
    assert [entry["name"] for entry in declared(folder)] == ["p", *names]
    assert problems(declare_folder(folder)).keys() == {"none", "numbers"}, "they have nothing to merge"


def test_a_read_only_folder_without_an_entry_is_told_what_to_paste():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "prodigy")
        write_jsonl(folder / "person.jsonl", [marked("Ann is here", "PERSON")])
        for path in (Path(name), folder):
            path.chmod(0o555)
        user = os.geteuid()
        os.seteuid(user or 65534)  # root may write anywhere
        try:
            undeclared = declare_folder(folder)
        finally:
            os.seteuid(user)
            folder.chmod(0o755)
            Path(name).chmod(0o755)
    assert problems(undeclared) == {"person": f"its entry can't be added (Permission denied: {folder})"}
    [check] = check_undeclared(folder, undeclared)
    assert yaml.safe_load(check.values["entry"]) == [{"name": "person", "path": "person.jsonl", "labels": ["PERSON"]}]


def test_of_a_folder_the_patterns_of_its_files_are_told(tmp_path, capsys):
    """As INCEpTION exports a project: a folder for each document, and other files beside them."""
    for file in ("annotation/a.txt/ann.tsv", "annotation/b.txt/bob.tsv", "curation/a.txt/CURATION_USER.tsv"):
        (tmp_path / "prodigy/export" / file).parent.mkdir(parents=True)
        (tmp_path / "prodigy/export" / file).write_text("Ann\tB-PERSON\n")
    (tmp_path / "prodigy/export/exportedproject.json").write_text("{}")
    print_checks(check_undeclared(tmp_path / "prodigy", declare_folder(tmp_path / "prodigy")))
    [entry] = yaml.safe_load(capsys.readouterr().out.partition("annotators were shown:")[2])
    assert entry == {
        "name": "export",
        "path": ["export/annotation/*/*.tsv", "export/curation/*/*.tsv"],
        "labels": ["PERSON"],
    }
    adopted = "- {name: export, path: [export/annotation/*/*.tsv, export/curation/*/*.tsv], labels: [PERSON]}"
    (tmp_path / "prodigy/datasets.yml").write_text(adopted)
    assert declare_folder(tmp_path / "prodigy") == [], "the description of a project is no dataset"
    assert patterns_in(tmp_path / "prodigy") == ["prodigy/export/*/*/*.tsv"]
    assert patterns_in(tmp_path / "prodigy/export/annotation/a.txt") == ["a.txt/*.tsv"]
    assert patterns_in(tmp_path / "prodigy/export/annotation") == ["annotation/a.txt/*.tsv", "annotation/b.txt/*.tsv"]
    for name in "cdef":
        (tmp_path / f"prodigy/export/annotation/{name}.txt").mkdir()
        (tmp_path / f"prodigy/export/annotation/{name}.txt/ann.tsv").touch()
    assert patterns_in(tmp_path / "prodigy/export/annotation") == ["annotation/*/*.tsv"]


def test_the_digests_of_an_export_are_no_dataset_and_other_files_of_their_name_are(tmp_path, demo_corpus):
    call(export_cli, demo_corpus, tmp_path / "out", "--format", "label-studio")
    (tmp_path / "back").mkdir()
    shutil.copy(tmp_path / "out/export.json", tmp_path / "back")
    assert declare_folder(tmp_path / "back") == []
    shutil.copy(tmp_path / "out/tasks.json", tmp_path / "back/export.json")
    assert [undeclared.problem for undeclared in declare_folder(tmp_path / "back")] == [""]


def test_the_labels_of_a_folder_are_those_of_all_its_folders(tmp_path):
    """Of 60 documents, annotators' files, which come first, have one label, reviews another."""
    for folder, label in (("annotation", "LOC"), ("curation", "PER")):
        for number in range(60):
            (tmp_path / f"{folder}/{number}.txt").mkdir(parents=True)
            (tmp_path / f"{folder}/{number}.txt/a.tsv").write_text(f"Ann\tB-{label}\n")
    assert labels_in(tmp_path) == ("LOC", "PER")


def test_files_of_a_folder_that_share_texts_are_declared_one_by_one(tmp_path, monkeypatch):
    """As doccano's zip has a file for each annotator: one pattern would let the later file's answers replace others."""
    rows = [{"id": n, "text": f"Ann met {n}", "label": [[0, 3, "PER"]]} for n in range(9)]
    prodigy = tmp_path / "prodigy"
    own = [{**row, "text": f"{row['text']} again"} for row in rows * 6]
    write_jsonl(prodigy / "export/alice.jsonl", rows)
    write_jsonl(prodigy / "export/bob.jsonl", [*own, *({**row, "label": []} for row in rows[:5])])
    checks = [*check_undeclared(prodigy, declare_folder(prodigy))]
    assert all("share texts: declare each" in check.values["problem"] for check in checks)
    paths = [yaml.safe_load(check.values["entry"])[0]["path"] for check in checks]
    assert paths == ["export/alice.jsonl", "export/bob.jsonl"]
    write_jsonl(prodigy / "export/bob.jsonl", [{**row, "text": "B"} for row in rows])
    [found] = declare_folder(prodigy)
    assert found.entry.path == "export"
    monkeypatch.setattr("labelwise.datasets.undeclared.MAX_READ", 2)
    for name in ("bob", "carol"):
        write_jsonl(prodigy / f"export/{name}.jsonl", rows)
    assert len(declare_folder(prodigy)) == 3, "also a file outside the sample"


def test_git_joins_the_decisions_of_two_branches_and_leaves_entries_to_people(tmp_path):
    """A union of entries would keep one of two equal last lines, such as `split: test`."""
    shutil.copy(ROOT / ".gitattributes", tmp_path)

    def git(*command: str, status: int = 0) -> None:
        run_command(["git", *command], tmp_path, {**os.environ, **IDENTITY}, status=status)

    def commit(name: str) -> None:
        for file, line in (
            ("decisions/decisions.jsonl", f'"{name}"'),
            ("prodigy/datasets.yml", f"- name: {name}"),
        ):
            (tmp_path / "assets" / file).parent.mkdir(parents=True, exist_ok=True)
            with (tmp_path / "assets" / file).open("a") as opened:
                opened.write(f"{line}\n")
        git("add", "-A")
        git("commit", "-qm", name)

    git("init", "-qb", "main")
    commit("base")
    git("checkout", "-qb", "mine")
    commit("mine")
    git("checkout", "-q", "main")
    commit("theirs")
    git("merge", "-q", "mine", status=1)
    assert {*map(str, read_jsonl(tmp_path / "assets/decisions/decisions.jsonl"))} == {"base", "mine", "theirs"}
    with pytest.raises(InputError, match=r"datasets\.yml:2: a git conflict"):
        read_entries(tmp_path / "assets/prodigy/datasets.yml")


def test_a_second_file_is_declared_without_a_second_comment(tmp_path):
    write_jsonl(tmp_path / "person.jsonl", [marked("Ann is here", "PERSON")])
    declare_folder(tmp_path)
    write_jsonl(tmp_path / "place.jsonl", [marked("Rom", "PLACE")])
    printed = " ".join(call(merge_cli, tmp_path, tmp_path / "corpus", "--workers", 1).split())
    assert re.search(r"Check the dataset added to \S+datasets\.yml It lists the labels that occur", printed)
    assert "is named after" not in printed
    assert [entry["name"] for entry in declared(tmp_path)] == ["person", "place"]
    assert (tmp_path / "datasets.yml").read_text(encoding="utf8").count("# Found in this folder") == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Add", "not annotated: no spans, labels, tags or answer"),
        ("Add <UNIT>5 mL</UNIT>", "unsupported format: its text has tags: write it without them, with `spans`"),
    ],
)
def test_a_file_with_nothing_to_read_has_no_entry_to_paste(tmp_path, text, why):
    (tmp_path / "raw.jsonl").write_text(json.dumps({"text": text}) + "\n")
    printed = " ".join(call(merge_cli, tmp_path, tmp_path / "corpus", status=1).split())
    assert f"it has no span with a label (raw.jsonl, line 1: {why})" in printed
    assert "To merge it" not in printed
