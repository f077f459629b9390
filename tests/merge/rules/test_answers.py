"""A data set of several files: of an annotator's answers to a question, that in the file listed last counts."""

import json
from collections import Counter
from functools import partial

import pytest

from labelwise.merge.rules.policies import Policies
from tests.conftest import Merging, task
from tests.sources import test_label_studio as studio
from tests.sources.reading import write

ZOE, LABS = (0, 3), (14, 26)
TEXT = "Zoë Barton of Mercury Labs paid."
answer = partial(task, TEXT, _view_id="ner_manual")
judged = partial(answer, _view_id="ner")


def exported(*spans: tuple[int, int], **more) -> dict:
    """A task of Label Studio."""
    return studio.task(TEXT, studio.annotation(*(studio.result(*span) for span in spans), **more))


def merged(merging: Merging, *files: list[dict], one: bool = True, **settings) -> tuple[list[str], Counter]:
    """Merge files, all of them one data set or each its own: the outcomes of spans, and of rows."""
    tasks = merging.root / "tasks"
    names = [f"{number}.json" if "annotations" in rows[0] else f"{number}.jsonl" for number, rows in enumerate(files)]
    for name, rows in zip(names, files, strict=True):
        write(tasks / name, rows)
    declared = [{"name": "all", "path": names}] if one else [{"name": name, "path": name} for name in names]
    write(tasks / "datasets.yml", json.dumps([{**entry, "labels": ["A"]} for entry in declared]))
    ledger = merging.run(**settings)
    return sorted(key for key, n in ledger.spans.items() if n), ledger.rows


BOTH = ["entity", "in superseded task"]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (answer(ZOE, LABS, _timestamp=9), answer(ZOE, _timestamp=5)),
        (answer(ZOE, LABS, _annotator_id="ann"), answer(ZOE, _annotator_id="ann")),
        (exported(ZOE, LABS), exported(ZOE, id=8)),
    ],
)
@pytest.mark.parametrize("duplicates", ["latest", "union", "error"])
def test_the_file_listed_last_counts_whatever_times_ids_and_the_policy_say(merging, first, last, duplicates):
    outcomes, rows = merged(merging, [first], [last], policies=Policies(duplicates=duplicates))
    assert (outcomes, rows) == (BOTH, Counter(merged=1, superseded=1))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # another annotator's answer is another one
        ([[answer(ZOE, _annotator_id="ann")], [answer(ZOE, _annotator_id="bob")]], {"merged": 2}),
        # two answers in the last file are for the policy on duplicates
        ([[answer(ZOE)], [answer(ZOE), answer(LABS)]], {"merged": 2, "superseded": 1}),
        # a later answer that says nothing supersedes, too: a cancelled annotation is ignored
        ([[answer(ZOE, LABS)], [answer(ZOE, answer="reject")]], {"rejected": 1, "superseded": 1}),
        ([[answer(ZOE, LABS)], [answer(ZOE, answer="ignore")]], {"ignored": 1, "superseded": 1}),
        ([[exported(ZOE, LABS)], [exported(ZOE, was_cancelled=True)]], {"ignored": 1, "superseded": 1}),
        # what is no answer supersedes nothing
        ([[answer(ZOE)], [answer(LABS, answer="maybe")]], {"merged": 1, "unknown answer": 1}),
        ([[answer(ZOE)], [answer(LABS, _view_id="choice")]], {"merged": 1, "other interface": 1}),
        ([[answer(ZOE)], [answer(LABS, meta={"predicted": "yes"})]], {"merged": 1, "prediction": 1}),
        # a judgement is superseded by one on the same span alone
        ([[judged(ZOE), judged(LABS)], [judged(ZOE)]], {"merged": 2, "superseded": 1}),
    ],
)
def test_an_answer_in_a_later_file(merging, files, expected):
    assert merged(merging, *files, policies=Policies(duplicates="union"))[1] == expected


def test_a_number_names_somebody_in_its_data_set_alone(merging):
    """Each Label Studio counts its users from 1."""
    pair = {"label": "A", "one": "0.json 1", "other": "1.json 1", "texts": 1, "spans": 3, "f": 2 / 3}
    for one, said in ((False, [pair]), (True, [])):
        merged(merging, [exported(ZOE)], [exported(ZOE, LABS)], one=one)
        assert json.loads(merging.files()["annotators.json"]) == said
