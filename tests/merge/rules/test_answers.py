"""A data set of several files: of an annotator's answers to a question, that in the file listed last counts."""

import json
from collections import Counter

import pytest

from labelwise.merge.rules.policies import Policies
from tests.conftest import Merging

ZOE, LABS = (0, 3), (14, 26)
TEXT = "Zoë Barton of Mercury Labs paid."


def task(*spans: tuple[int, int], answer: str = "accept", view: str = "ner_manual", **more) -> dict:
    marked = [{"start": start, "end": end, "label": "NAME"} for start, end in spans]
    return {"text": TEXT, "spans": marked, "_view_id": view, "answer": answer, **more}


def exported(*spans: tuple[int, int], annotation: int = 7, who: int = 3, **more) -> dict:
    """A task of Label Studio."""
    result = [
        {"type": "labels", "value": {"start": start, "end": end, "text": TEXT[start:end], "labels": ["NAME"]}}
        for start, end in spans
    ]
    one = {"id": annotation, "completed_by": who, "updated_at": "2026-11-01T10:00:00Z", "result": result, **more}
    return {"id": 1, "data": {"text": TEXT}, "annotations": [one]}


def merged(merging: Merging, *files: list[dict], one: bool = True, **settings) -> tuple[list[str], Counter]:
    """Merge files, all of them one data set or each its own: the outcomes of spans, and of rows."""
    names = []
    for number, rows in enumerate(files):
        names.append(f"{number}.json" if "annotations" in rows[0] else f"{number}.jsonl")
        file = merging.root / "tasks" / names[-1]
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(rows) if file.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows))
    declared = [{"name": "all", "path": names}] if one else [{"name": name, "path": name} for name in names]
    text = json.dumps([{**entry, "labels": ["NAME"]} for entry in declared])
    (merging.root / "tasks" / "datasets.yml").write_text(text, encoding="utf8")
    ledger = merging.run(**settings)
    return sorted(key for key, n in ledger.spans.items() if n), ledger.rows


BOTH = ["entity", "in superseded task"]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (task(ZOE, LABS, _timestamp=9), task(ZOE, _timestamp=5)),
        (task(ZOE, LABS, _annotator_id="ann"), task(ZOE, _annotator_id="ann")),
        (exported(ZOE, LABS), exported(ZOE, annotation=8)),
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
        ([[task(ZOE, _annotator_id="ann")], [task(ZOE, _annotator_id="bob")]], {"merged": 2}),
        # two answers in the last file are for the policy on duplicates
        ([[task(ZOE)], [task(ZOE), task(LABS)]], {"merged": 2, "superseded": 1}),
        # a later answer that says nothing supersedes, too: a cancelled annotation is ignored
        ([[task(ZOE, LABS)], [task(ZOE, answer="reject")]], {"rejected": 1, "superseded": 1}),
        ([[task(ZOE, LABS)], [task(ZOE, answer="ignore")]], {"ignored": 1, "superseded": 1}),
        ([[exported(ZOE, LABS)], [exported(ZOE, was_cancelled=True)]], {"ignored": 1, "superseded": 1}),
        # what is no answer supersedes nothing
        ([[task(ZOE)], [task(LABS, answer="maybe")]], {"merged": 1, "unknown answer": 1}),
        ([[task(ZOE)], [task(LABS, view="choice")]], {"merged": 1, "other interface": 1}),
        ([[task(ZOE)], [task(LABS, meta={"predicted": "yes"})]], {"merged": 1, "prediction": 1}),
        # a judgement is superseded by one on the same span alone
        ([[task(ZOE, view="ner"), task(LABS, view="ner")], [task(ZOE, view="ner")]], {"merged": 2, "superseded": 1}),
    ],
)
def test_an_answer_in_a_later_file(merging, files, expected):
    assert merged(merging, *files, policies=Policies(duplicates="union"))[1] == expected


def test_a_number_names_somebody_in_its_data_set_alone(merging):
    """Each Label Studio counts its users from 1."""
    for one, said in ((False, ["0.json 3", "1.json 3"]), (True, [])):
        merged(merging, [exported(ZOE)], [exported(LABS)], one=one)
        pairs = json.loads(merging.files()["annotators.json"])
        assert [name for pair in pairs for name in (pair["one"], pair["other"])] == said
