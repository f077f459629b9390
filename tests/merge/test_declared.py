"""From files that nobody has declared to a corpus, by the command: what is a data set, what counts, what is printed."""

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


class Folder:
    """A folder of data sets, and what the command makes of it."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "prodigy"
        self.declared = self.folder / "datasets.yml"
        self.folder.mkdir()
        self.settings: dict = {"merge": {"dev_ratio": 0, "test_ratio": 0}}

    def merge(self) -> str:
        project = self.root / "project.yml"
        project.write_text(yaml.safe_dump(self.settings), encoding="utf8")
        options = ["--metrics", self.root / "merge.json", "--project", project, "--workers", 1]
        return call(merge_cli, self.folder, self.root / "corpus", *options)

    @property
    def counts(self) -> dict:
        return json.loads((self.root / "merge.json").read_text(encoding="utf8"))

    @property
    def entries(self) -> list[dict]:
        return yaml.safe_load(self.declared.read_text(encoding="utf8"))


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


def test_doccanos_export_of_users_who_do_not_share_is_a_data_set_for_each(folder):
    """Ids are those of the texts, so all files have the same: 23 texts are admin's and ann's, 10 ann's and bob's."""
    rows = [{"id": number, "text": text, "label": [[*ANN, "PERSON"]]} for number, text in enumerate(TEXTS[:133])]
    for name, own in (("admin", rows[:40]), ("ann", rows[17:90]), ("bob", rows[80:])):
        write_jsonl(folder.folder / f"{name}.jsonl", own)
    folder.merge()
    assert [one["name"] for one in folder.entries] == ["admin", "ann", "bob"]
    assert (folder.counts["rows"], folder.counts["rows_read"]) == ({"merged": 166}, 166)
    assert folder.counts["agreement"]["PERSON"] == {"texts": 33, "both": 33, "spans": 66, "f": 1.0}


def test_a_later_export_is_listed_in_the_entry_and_what_was_deleted_stays_deleted(folder):
    """50 of 150 spans were deleted; until the entry lists both, these are two data sets."""
    first = [prodigys(text, ANN, BOB, label="PER") for text in TEXTS[:50]]
    first += [prodigys(text, ANN, label="PER") for text in TEXTS[50:100]]
    write_jsonl(folder.folder / "person.jsonl", first)
    entry = "- {name: person, path: PATH, labels: [PERSON, TITLE], rename: {PER: PERSON}, split: train}\n"
    folder.declared.write_text("# ours\n" + entry.replace("PATH", "person.jsonl"), encoding="utf8")
    before = folder.declared.read_text(encoding="utf8")
    write_jsonl(folder.folder / "person-june.jsonl", [prodigys(text, ANN, label="PER") for text in TEXTS[:100]])
    assert "has several files" not in folder.merge()
    assert folder.declared.read_text(encoding="utf8").startswith(before), "what is there stays as it is"
    assert folder.entries[1:] == [{"name": "person-june", "path": "person-june.jsonl", "labels": ["PER"]}]
    folder.declared.write_text(entry.replace("PATH", "[person.jsonl, person-june.jsonl]"), encoding="utf8")
    printed = " ".join(folder.merge().split())
    assert "Data set 'person' has several files, and no span of 'TITLE'. If two files have an answer" in printed
    assert "If each file was annotated for other labels, give each an entry" in printed
    assert folder.counts["rows"] == {"merged": 100, "superseded": 100}
    assert folder.counts["spans"] == {"entity": 100, "in superseded task": 150}
    assert {label: n.get("gold") for label, n in folder.counts["labels"].items()} == {"PERSON": 100, "TITLE": None}


def test_data_that_no_command_depends_on_warns(folder):
    """Neither weasel nor DVC would see when it changes."""
    commands = [{"name": "merge", "script": [], "deps": ["prodigy"], "outputs": ["corpus/manifest.json"]}]
    folder.settings["commands"] = commands
    for path in (folder.folder / "ann.jsonl", folder.root / "bob.jsonl", folder.root / "prodigy-2/sue.jsonl"):
        write_jsonl(path, [prodigys(f"{text} in {path.stem}", ANN) for text in TEXTS[:20]])
    paths = ["ann.jsonl", "../bob.jsonl", str(folder.root / "prodigy-2/../prodigy-2/sue.jsonl")]
    folder.declared.write_text(yaml.safe_dump([{"name": "all", "path": paths, "labels": ["PERSON"]}]), encoding="utf8")
    printed = "".join(folder.merge().split())
    assert printed.count("isn'tadependencyofthemerge,so`weaselrun`and`dvcrepro`don'tnoticewhenitchanges.") == 2
    assert "bob.jsonlisn'ta" in printed
    assert "sue.jsonlisn'ta" in printed
    commands[0]["deps"] += ["bob.jsonl", "prodigy-2"]
    assert "isn't a dependency" not in folder.merge()
