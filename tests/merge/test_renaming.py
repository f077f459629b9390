"""Labels that data sets call by other names."""

import json
from pathlib import Path

import pytest

from labelwise.common.errors import InputError
from labelwise.merge.advice import warnings
from labelwise.merge.rules.settings import Settings
from labelwise.sources.convert_brat import convert_brat
from tests.conftest import Merging


def task(text: str, *spans: tuple[int, int, str]) -> dict:
    return {"text": text, "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans]}


def test_a_label_of_two_names_becomes_one(merging: Merging):
    merging.add("a", ["PERSON"], [task("Ann", (0, 3, "PERSON"))])
    merging.add("b", ["PERSON"], [task("Bob", (0, 3, "PER")), task("Eve x", (0, 3, "PER"))], rename={"PER": "PERSON"})
    ledger = merging.run()
    assert ledger.labels == {"PERSON": {"gold": 3, "entity": 3, "complete": 3}}
    assert ledger.renamed == {"b: PER to PERSON": 2}
    assert not ledger.problems


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


def test_labels_of_nearly_one_name_are_pointed_out(merging: Merging):
    merging.add("a", ["PERSON", "PLACE"], [task("Ann", (0, 3, "PERSON"))])
    merging.add("b", ["Persons"], [task("Bob")])
    assert [doubt.what for doubt in warnings(merging.run(), Settings()) if "may be one label" in doubt.what] == [
        "'Persons' and 'PERSON' may be one label: their names are nearly equal."
    ]
