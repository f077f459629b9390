"""Labels that data sets call by other names."""

import pytest

from labelwise.errors import InputError
from labelwise.merge.advice import warnings
from labelwise.merge.rules.settings import Settings
from tests.conftest import Merging


def task(text: str, *spans: tuple[int, int, str]) -> dict:
    return {"text": text, "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans]}


def test_labels_are_exchanged_in_one_pass(merging: Merging):
    rows = [task("Ann saw Rome", (0, 3, "PLACE"), (8, 12, "PERSON"))]
    merging.add("a", ["PERSON", "PLACE"], rows, rename={"PERSON": "PLACE", "PLACE": "PERSON"}, split="train")
    merging.add("b", ["PERSON"], [task("Bob", (0, 3, "PER"))], rename={"PER": "PERSON"}, split="train")
    ledger = merging.run()
    assert ledger.gold == {"train": {"PERSON": 2, "PLACE": 1}}
    assert ledger.renamed == {"a: PERSON to PLACE": 1, "a: PLACE to PERSON": 1, "b: PER to PERSON": 1}


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
        ({"PER": "PERSON"}, ["PER"], "data set 'a': 'PER' is renamed to 'PERSON', and listed as a label; list"),
    ],
)
def test_a_wrong_name_is_an_error(merging: Merging, rename, labels, message):
    merging.add("a", labels, [task("Bob", (0, 3, "PER"))], rename=rename)
    with pytest.raises(InputError, match=message):
        merging.run()


def test_labels_of_nearly_one_name_are_pointed_out(merging: Merging):
    merging.add("a", ["PERSON", "PLACE"], [task("Ann", (0, 3, "PERSON"))])
    merging.add("b", ["Persons"], [task("Bob")])
    assert [doubt.what for doubt in warnings(merging.run(), Settings()) if "may be one label" in doubt.what] == [
        "'Persons' and 'PERSON' may be one label: their names are nearly equal."
    ]
