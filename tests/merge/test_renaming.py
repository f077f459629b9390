"""Labels that data sets call by other names."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from labelwise.common.errors import InputError
from labelwise.merge.similar_labels import doubts_about_labels
from labelwise.sources.convert_brat import convert_brat
from labelwise.sources.declarations import read_all_entries, write_entries
from tests.conftest import Merging


def task(text: str, *spans: tuple[int, int, str]) -> dict:
    return {"text": text, "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans]}


def test_a_label_of_two_names_becomes_one(merging: Merging):
    merging.add("a", ["PERSON"], [task("Ann", (0, 3, "PERSON"))])
    merging.add("b", ["PERSON"], [task("Bob", (0, 3, "PER")), task("Eve x", (0, 3, "PER"))], rename={"PER": "PERSON"})
    ledger = merging.run()
    assert ledger.labels == {"PERSON": {"gold": 3, "entity": 3, "complete": 3}}
    assert ledger.renamed == {"b: PER to PERSON": 2}
    assert not ledger.problems()


def test_two_labels_are_exchanged_in_one_pass(merging: Merging):
    rows = [task("Ann saw Rome", (0, 3, "PLACE"), (8, 12, "PERSON"))]
    merging.add("a", ["PERSON", "PLACE"], rows, rename={"PERSON": "PLACE", "PLACE": "PERSON"})
    ledger = merging.run()
    assert ledger.gold[next(iter(ledger.gold))] == {"PERSON": 1, "PLACE": 1}
    assert sorted(ledger.renamed) == ["a: PERSON to PLACE", "a: PLACE to PERSON"]


def test_labels_that_are_used_are_listed_by_their_new_names(merging: Merging):
    merging.add("a", "auto", [task("Bob", (0, 3, "PER"))], rename={"PER": "PERSON"})
    assert list(merging.run().labels) == ["PERSON"]


def test_a_new_name_is_seen_by_the_next_merge(merging: Merging):
    merging.add("a", ["PER"], [task("Bob", (0, 3, "PER"))])
    assert list(merging.run().labels) == ["PER"]
    merging.declared[0] |= {"labels": ["PERSON"], "rename": {"PER": "PERSON"}}
    merging.add("b", ["PLACE"], [])
    assert merging.run().labels["PERSON"]["entity"] == 1


@pytest.mark.parametrize(
    ("rename", "labels", "message"),
    [
        ({"PER": " "}, ["PERSON"], "data set 'a': `rename` gives 'PER' an empty name; give it another"),
        (
            {"PER": "PERSON"},
            ["PER"],
            "data set 'a': 'PER' is renamed to 'PERSON', and listed as a label; list 'PERSON'",
        ),
    ],
)
def test_a_wrong_name_is_an_error(merging: Merging, rename, labels, message):
    merging.add("a", labels, [task("Bob", (0, 3, "PER"))], rename=rename)
    with pytest.raises(InputError, match=message):
        merging.run()


def corpus(root: Path) -> Path:
    brat = root / "brat"
    brat.mkdir()
    (brat / "a.txt").write_text("Bob saw Ann")
    (brat / "a.ann").write_text("T1\tPER 0 3\tBob\nT2\tPERSON 8 11\tAnn\nT3\tPERSON 0 3\tBob\n")
    (brat / "lost.ann").write_text("T1\tGHOST 0 3\tBoo\n")
    return brat


def test_a_brat_corpus_is_converted_with_new_names(tmp_path: Path):
    told: list[str] = []
    rename = {"PER": "PERSON", "LOC": "PLACE"}
    report = convert_brat(corpus(tmp_path), tmp_path / "out", rename=rename, tell=told.append)
    assert report.labels == {"PERSON": 2}
    assert report.annotations["duplicate"] == 1, "one mention has both names"
    assert told == ["PER renamed to PERSON: 1 span", "LOC renamed to PLACE: 0 spans"]
    rows = [json.loads(line) for line in (tmp_path / "out/auto.jsonl").read_text().splitlines()]
    assert [span["label"] for span in rows[0]["spans"]] == ["PERSON", "PERSON"]


def test_labels_come_from_documents_that_are_read(tmp_path: Path):
    report = convert_brat(corpus(tmp_path), tmp_path / "out")
    assert sorted(report.labels) == ["PER", "PERSON"]
    assert report.documents["no text"] == 1


def doubted(merging: Merging) -> list[str]:
    ledger = merging.run(dev_ratio=0.0, test_ratio=0.0)
    declared = {one["name"]: one["labels"] for one in merging.declared}
    entries = read_all_entries([merging.root / "tasks/datasets.yml"])
    found = doubts_about_labels(ledger, merging.root / "corpus", declared, entries)
    return [f"{' '.join(doubt)}\n{write_entries([entry])}" for doubt, entry in found]


def marked(label: str, names: Sequence[str], about: str) -> list[dict]:
    return [task(f"{name} is {about}", (0, len(name), label)) for name in names]


NAMES = [first + last for first in "ABCDE" for last in ("nn", "ob", "eve", "sue", "ida")]


def test_labels_of_nearly_one_name_are_pointed_out_with_the_entry_to_write(merging: Merging):
    merging.add("a", ["PERSON"], marked("PERSON", NAMES, "old"))
    merging.add("b", ["Persons"], marked("Persons", ["Zoe"], "new"))
    assert doubted(merging) == [
        "'Persons' and 'PERSON' may be one label: their names are nearly equal. If so, give convert-brat --rename "
        "Persons=PERSON for a brat corpus, or put this in place of the entry 'b' in datasets.yml:\n"
        "- name: b\n  path: b.jsonl\n  labels:\n  - PERSON\n  rename:\n    Persons: PERSON\n"
    ]
    merging.declared[1] |= {"labels": ["PERSON"], "rename": {"Persons": "PERSON"}}
    merging.add("c", ["PLACE"], [])
    assert doubted(merging) == [], "once the entry is written"


@pytest.mark.parametrize(("common", "labels", "said"), [(25, "PER", 1), (10, "PER", 0), (25, "both", 0)])
def test_labels_for_the_same_words_are_pointed_out(merging: Merging, common, labels, said):
    """Unless one data set has both: its annotators know what differs."""
    merging.add("a", ["PERSON"], marked("PERSON", NAMES, "old"))
    names = NAMES[:common] + [f"X{name}" for name in NAMES[common:]]
    merging.add("b", ["PER"] if labels == "PER" else ["PER", "PERSON"], marked("PER", names, "new"))
    assert len(doubted(merging)) == said
