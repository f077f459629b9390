"""Each key of a `datasets.yml` entry takes effect: two values of it, two results."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
import yaml
from spacy.tokens import DocBin, Span

from labelwise.datasets.entries import Entry
from tests.conftest import Merging, task, write_jsonl
from tests.sources.reading import make_database

ROWS = [
    task("Ann met Bob in Rome", (0, 3, "PER"), (15, 19, "LOC"), _timestamp=1, _session_id="1"),
    task("Ann met Bob in Rome", (8, 11, "PER"), _timestamp=2, _session_id="1"),
    *(task(f"Eva met Bob in Oslo {n}", (0, 2, "PER")) for n in range(12)),  # its ends are inclusive
]
MARKED = {"type": "labels", "from_name": "label", "to_name": "text", "value": {"start": 0, "end": 3, "labels": ["PER"]}}
TAGGED = [
    {"id": 1, "data": {"text": "Ann met Bob", "title": "Bob met Ann"}, "annotations": [{"id": 1, "result": [MARKED]}]}
]
BASE = {"name": "a", "path": "one.jsonl", "labels": ["PER", "LOC"]}
STUDIO = {**BASE, "path": "studio.json"}
DOCS = {**BASE, "path": "docs.spacy"}
STORED = {"name": "a", "db": "prodigy.db", "labels": ["PER", "LOC"]}
# By key: two values, and the entry that has it.
KEYS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "name": ("a", "b", BASE),
    "path": ("one.jsonl", "two.jsonl", BASE),
    "db": ("prodigy.db", "other.db", STORED),
    "dataset": ("a", "other", STORED),
    "labels": (["PER", "LOC"], ["PER"], BASE),
    "kind": ("complete", "binary", BASE),
    "split": ("train", "test", BASE),
    "absent": ([], ["ORG"], BASE),
    "rename": ({}, {"PER": "PERSON"}, {**BASE, "labels": ["PERSON", "LOC"]}),
    "annotator": ("", {"1": "ann"}, BASE),
    "offsets": ("", "inclusive", BASE),
    "spans": ("one", "two", DOCS),
    "text": ("text", "title", STUDIO),
    "duplicates": ("latest", "union", BASE),
    "expect_losses": (False, True, BASE),
    "skip": (False, True, BASE),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    write_jsonl(folder / "one.jsonl", ROWS)
    write_jsonl(folder / "two.jsonl", ROWS[:1])
    write_jsonl(folder / "else.jsonl", ROWS[:1])
    (folder / "studio.json").write_text(json.dumps(TAGGED), encoding="utf8")
    doc = spacy.blank("xx")("Ann met Bob in Rome")
    for name, place in (("one", 0), ("two", 2)):
        doc.spans[name] = [Span(doc, place, place + 1, "PER")]
    DocBin(docs=[doc], store_user_data=True).to_disk(folder / "docs.spacy")
    make_database(folder / "prodigy.db", {"a": ROWS, "other": ROWS[:1]})
    make_database(folder / "other.db", {"a": ROWS[:1]})
    return folder


def account(root: Path, sources: Path, entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return a merge's rows, spans, splits and import checks."""
    shutil.copytree(sources, root / "tasks")
    merging = Merging(root)
    other = {"name": "other", "path": "else.jsonl", "labels": ["ORG"], "split": "dev"}
    (root / "tasks/datasets.yml").write_text(yaml.safe_dump([entry, other]), encoding="utf8")
    ledger = merging.run(lang="xx")
    texts = [(row["text"], row["split"], row["complete"]) for row in merging.table("texts")]
    stops = [check.stops for check in ledger.checks]
    return merging.table("rows"), merging.table("spans"), texts, stops, sorted(ledger.labels)


def test_each_key_of_an_entry_has_a_row():
    assert KEYS.keys() == {*Entry.__struct_fields__}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_an_entry_changes_what_it_is_for(tmp_path, sources, key):
    one, other, entry = KEYS[key]
    found = [account(tmp_path / str(n), sources, {**entry, key: value}) for n, value in enumerate((one, other))]
    assert found[0] != found[1]
