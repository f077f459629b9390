"""The same annotation in several exports: what was deleted stays deleted."""

import json
from collections import Counter

import pytest

from labelwise.merge.advice import warnings
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from tests.conftest import Merging

ZOE, LABS = (0, 3), (14, 26)
TEXT = "Zoë Barton of Mercury Labs paid."
NOVEMBER = "2026-11-01T10:00:00Z"


def exported(*spans: tuple[int, int], task: int = 1, annotation: int = 7, updated: str = NOVEMBER) -> dict:
    result = [
        {"type": "labels", "value": {"start": start, "end": end, "text": TEXT[start:end], "labels": ["NAME"]}}
        for start, end in spans
    ]
    one = {"id": annotation, "completed_by": 3, "updated_at": updated, "result": result}
    return {"id": task, "data": {"text": TEXT}, "annotations": [one], "project": 1}


def minimal(*spans: tuple[int, int], task: int = 1, annotation: int = 7, updated: str = NOVEMBER) -> dict:
    values = [{"start": start, "end": end, "text": TEXT[start:end], "labels": ["NAME"]} for start, end in spans]
    return {
        "id": task,
        "text": TEXT,
        "label": values,
        "annotator": 3,
        "annotation_id": annotation,
        "updated_at": updated,
    }


def merged(merging: Merging, files: dict[str, list], split: bool = True, **settings) -> tuple[list, Counter, Counter]:
    """Merge files, each a data set or all of them one: the spans that stand, what became of rows, what was exported."""
    for name, rows in files.items():
        file = merging.root / "tasks" / name
        file.parent.mkdir(exist_ok=True)
        content = json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
        file.write_text(content, encoding="utf8")
    several = [{"name": name.partition(".")[0], "path": name} for name in files]
    declared = several if split else [{"name": "all", "path": list(files)}]
    text = json.dumps([{**one, "labels": ["NAME"]} for one in declared])
    (merging.root / "tasks" / "datasets.yml").write_text(text, encoding="utf8")
    ledger = merging.run(**settings)
    assert ledger.spans.total() == ledger.spans_read
    return sorted(Counter({key: n for key, n in ledger.spans.items() if n})), ledger.rows, ledger.exported


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("form", [exported, minimal])
def test_a_label_studio_annotation_counts_as_it_was_exported_last(merging, form, split):
    files = {
        "project-1-at-2026-11-20-10-32-ab.json": [form(ZOE, updated="2026-11-19T10:00:00Z")],
        "project-1-at-2026-11-01-10-32-cd.json": [exported(ZOE, LABS)],
    }
    outcomes, rows, found = merged(merging, files, split)
    assert outcomes == ["entity", "in superseded task"]
    assert rows == Counter(merged=1, superseded=1)
    assert found == {
        '["project-1-at-2026-11-01-10-32-cd.json","project-1-at-2026-11-20-10-32-ab.json"]': 1,
        '["project-1-at-2026-11-20-10-32-ab.json",""]': 1,
    }


def test_the_date_in_the_name_decides_where_times_are_equal_and_then_the_order(merging):
    later, earlier = [exported(ZOE)], [exported(ZOE, LABS)]
    assert merged(merging, {"b-2026-11-20.json": later, "c-20261119.json": earlier})[1] == Counter(
        merged=1, superseded=1
    )
    assert Counter(merging.run().spans)["in superseded task"] == 2
    assert merged(merging, {"c.json": earlier, "b.json": later})[0] == ["entity", "in superseded task"]
    assert Counter(merging.run().spans)["in superseded task"] == 2


def test_another_annotation_of_the_task_is_another_answer(merging):
    files = {"a.json": [exported(ZOE)], "b.json": [exported(ZOE, annotation=8)]}
    assert merged(merging, files)[1] == Counter(merged=2)


def prodigys(*spans: tuple[int, int], task: int = 5, **more) -> dict:
    marked = [{"start": start, "end": end, "label": "NAME"} for start, end in spans]
    return {"text": TEXT, "spans": marked, "_task_hash": task, "_view_id": "ner_manual", "answer": "accept", **more}


def test_in_files_of_one_data_set_prodigys_task_hash_tells_the_annotation(merging):
    """With `union`, the answers of a data set are united; not those of one annotation, exported twice."""
    files = {"a.jsonl": [prodigys(ZOE, LABS), prodigys(LABS, task=6)], "b.jsonl": [prodigys(ZOE)]}
    outcomes, rows, found = merged(merging, files, split=False, policies=Policies(duplicates="union"))
    assert (outcomes, rows) == (["entity", "in superseded task"], Counter(merged=2, superseded=1))
    assert found == {'["a.jsonl","b.jsonl"]': 1, '["a.jsonl",""]': 1, '["b.jsonl",""]': 1}


def test_what_is_in_two_exports_is_reported_and_what_the_later_lacks(merging):
    files = {"a.jsonl": [prodigys(ZOE, LABS), {**prodigys(task=6), "text": "Gone."}], "b.jsonl": [prodigys(ZOE)]}
    merged(merging, files, split=False)
    said = " ".join(f"{title} {remedy}" for title, remedy in warnings(merging.run(), Settings()))
    expected = "1 answer of a.jsonl superseded: b.jsonl has them as they are now. 1 answer of it is in no later export"
    assert expected in said


def test_another_annotators_answer_is_another_annotation(merging):
    files = {"a.jsonl": [prodigys(ZOE, _annotator_id="ann")], "b.jsonl": [prodigys(ZOE, _annotator_id="bob")]}
    assert merged(merging, files, split=False)[1] == Counter(merged=2)


def test_two_answers_in_one_file_are_for_the_policy_on_duplicates(merging):
    files = {"a.jsonl": [prodigys(ZOE), prodigys(LABS)], "b.jsonl": [prodigys(LABS, task=9)]}
    rows = merged(merging, files, split=False, policies=Policies(duplicates="union"))[1]
    assert rows == Counter(merged=3)


def test_doccanos_id_tells_the_annotation(merging):
    row = {"id": 4, "text": TEXT, "label": [[*ZOE, "NAME"], [*LABS, "NAME"]], "username": "ann"}
    files = {"a.jsonl": [row], "b.jsonl": [{**row, "label": [[*ZOE, "NAME"]]}]}
    assert merged(merging, files, split=False)[:2] == (
        ["entity", "in superseded task"],
        Counter(merged=1, superseded=1),
    )


def test_ground_truth_wins_over_other_annotations(merging):
    chief = exported(LABS, annotation=9)
    chief["annotations"][0] |= {"ground_truth": True, "completed_by": 1}
    files = {"a.json": [exported(ZOE), exported(ZOE, annotation=8)], "b.json": [chief]}
    for row in files["a.json"][1:]:
        row["annotations"][0]["completed_by"] = 4
    assert merged(merging, files)[0] == ["duplicate", "entity", "outvoted"]
    (doc,) = [json.loads(line) for line in merging.files()["lost_spans.jsonl"].splitlines()]
    assert (doc["meta"]["reason"], doc["spans"][0]["start"]) == ("outvoted", 0)
