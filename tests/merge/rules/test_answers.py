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


def exported(*spans: tuple[int, int], annotation: int = 7, updated: str = "2026-11-01", who: int = 3, **more) -> dict:
    result = [
        {"type": "labels", "value": {"start": start, "end": end, "text": TEXT[start:end], "labels": ["NAME"]}}
        for start, end in spans
    ]
    one = {"id": annotation, "completed_by": who, "updated_at": f"{updated}T10:00:00Z", "result": result, **more}
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
    assert ledger.spans.total() == ledger.spans_read
    return sorted(key for key, n in ledger.spans.items() if n), ledger.rows


BOTH = ["entity", "in superseded task"]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (task(ZOE, LABS), task(ZOE)),
        (task(ZOE, LABS, _timestamp=9), task(ZOE, _timestamp=5)),
        (task(ZOE, LABS, _annotator_id="ann"), task(ZOE, _annotator_id="ann")),
        (exported(ZOE, LABS, updated="2026-11-20"), exported(ZOE, annotation=8)),
        (
            {"id": 4, "text": TEXT, "label": [[*ZOE, "NAME"], [*LABS, "NAME"]]},
            {"text": TEXT, "label": [[*ZOE, "NAME"]]},
        ),
    ],
)
@pytest.mark.parametrize("duplicates", ["latest", "union", "error"])
def test_the_file_listed_last_counts_whatever_times_ids_and_the_policy_say(merging, first, last, duplicates):
    outcomes, rows = merged(merging, [first], [last], policies=Policies(duplicates=duplicates))
    assert (outcomes, rows) == (BOTH, Counter(merged=1, superseded=1))


def test_in_two_entries_both_count(merging):
    assert merged(merging, [task(ZOE, LABS)], [task(ZOE)], one=False)[1] == Counter(merged=2)


def test_another_annotators_answer_is_another_one(merging):
    files = [task(ZOE, _annotator_id="ann")], [task(ZOE, _annotator_id="bob")]
    assert merged(merging, *files)[1] == Counter(merged=2)


def test_two_answers_in_the_last_file_are_for_the_policy_on_duplicates(merging):
    rows = merged(merging, [task(ZOE)], [task(ZOE), task(LABS)], policies=Policies(duplicates="union"))[1]
    assert rows == Counter(merged=2, superseded=1)


@pytest.mark.parametrize(("answer", "outcome"), [("reject", "rejected"), ("ignore", "ignored")])
def test_a_later_answer_that_says_nothing_supersedes_too(merging, answer, outcome):
    """A cancelled annotation of Label Studio is ignored: it isn't annotated any more."""
    found = merged(merging, [task(ZOE, LABS)], [task(ZOE, answer=answer)])
    assert found == ([f"in {outcome} task", "in superseded task"], Counter({outcome: 1, "superseded": 1}))
    if answer == "ignore":
        rows = merged(merging, [exported(ZOE, LABS)], [exported(ZOE, was_cancelled=True)])[1]
        assert rows == Counter(ignored=1, superseded=1)


@pytest.mark.parametrize("last", [{"answer": None}, {"view": "choice"}, {"meta": {"predicted": "yes"}}])
def test_a_row_that_is_no_answer_supersedes_nothing(merging, last):
    """It is no task's, of another question, or a prediction that nobody has saved."""
    assert (
        merged(merging, [task(ZOE)], [task(LABS) | last | {"_view_id": last.get("view", "ner_manual")}])[1]["merged"]
        == 1
    )


def test_a_judgement_is_superseded_by_one_on_the_same_span_alone(merging):
    first = [task(ZOE, view="ner"), task(LABS, view="ner")]
    outcomes, rows = merged(merging, first, [task(ZOE, view="ner", answer="reject")])
    assert (outcomes, rows) == (["entity", "in superseded task", "rejected"], Counter(merged=2, superseded=1))


def test_a_number_names_somebody_in_its_data_set_alone(merging):
    """Each Label Studio counts its users from 1."""
    files = [exported(ZOE)], [exported(LABS)]
    for one, said in ((False, ["0.json 3", "1.json 3"]), (True, [])):
        merged(merging, *files, one=one)
        pairs = json.loads(merging.files()["annotators.json"])
        assert [name for pair in pairs for name in (pair["one"], pair["other"])] == said


def test_ground_truth_wins_over_other_annotations(merging):
    chief = exported(LABS, annotation=9, who=1, ground_truth=True)
    files = [exported(ZOE), exported(ZOE, annotation=8, who=4)], [chief]
    assert merged(merging, *files, one=False)[0] == ["duplicate", "entity", "outvoted"]
    (doc,) = [json.loads(line) for line in merging.files()["lost_spans.jsonl"].splitlines()]
    assert (doc["meta"]["reason"], doc["spans"][0]["start"]) == ("outvoted", 0)
