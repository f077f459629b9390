import json
from collections import Counter
from functools import partial

import pytest

from labelwise.corpus.ledger import Ledger
from labelwise.merge.rules.policies import Policies
from tests.conftest import Merging, task, words_of
from tests.sources import test_label_studio as studio
from tests.sources.reading import write

ZOE, LABS = (0, 3), (14, 26)
TEXT = "Zoë Barton of Mercury Labs paid."
answer = partial(task, TEXT, _view_id="ner_manual")
judged = partial(answer, _view_id="ner")


def exported(*spans: tuple[int, int], **more) -> dict:
    return studio.task(TEXT, studio.annotation(*(studio.result(*span) for span in spans), **more))


def merged(merging: Merging, *files: list[dict], one: bool = True, **settings) -> tuple[Counter, Counter, Ledger]:
    tasks = merging.root / "tasks"
    names = [f"{number}.json" if "annotations" in rows[0] else f"{number}.jsonl" for number, rows in enumerate(files)]
    for name, rows in zip(names, files, strict=True):
        write(tasks / name, rows)
    declared = [{"name": "all", "path": names}] if one else [{"name": name, "path": name} for name in names]
    write(tasks / "datasets.yml", json.dumps([{**entry, "labels": ["A"]} for entry in declared]))
    ledger = merging.run(**settings)
    return ledger.spans, ledger.rows, ledger


LATEST, UNION = Policies(), Policies(duplicates="union")
BEFORE, AFTER = answer(ZOE, LABS, _timestamp=9), answer(ZOE, _timestamp=5)


@pytest.mark.parametrize(
    ("files", "policies", "expected", "entities"),
    [
        # the latest answer counts, by the times if all have one, else by the order of the list
        ([[BEFORE], [AFTER]], LATEST, {"merged": 1, "superseded": 1}, 2),
        ([[AFTER], [BEFORE]], LATEST, {"merged": 1, "superseded": 1}, 2),
        ([[answer(ZOE, LABS, _timestamp=5)], [answer(ZOE, _timestamp=5)]], LATEST, {"merged": 1, "superseded": 1}, 1),
        ([[BEFORE], [answer(ZOE)]], LATEST, {"merged": 1, "superseded": 1}, 1),
        ([[answer(ZOE, LABS)], [AFTER]], LATEST, {"merged": 1, "superseded": 1}, 1),
        ([[exported(ZOE, LABS)], [exported(ZOE, id=8)]], LATEST, {"merged": 1, "superseded": 1}, 1),
        # where the policy is another, the order of files obeys it
        ([[BEFORE], [AFTER]], UNION, {"merged": 2}, 2),
        ([[answer(ZOE, LABS)], [answer(ZOE, answer="ignore")]], UNION, {"merged": 1, "ignored": 1}, 2),
        # another annotator's answer is another one
        ([[answer(ZOE, _annotator_id="ann")], [answer(ZOE, _annotator_id="bob")]], LATEST, {"merged": 2}, 1),
        # of two answers in the last file, the latest
        ([[answer(ZOE)], [answer(ZOE), answer(LABS)]], LATEST, {"merged": 1, "superseded": 2}, 1),
        # a later answer that says nothing supersedes, too: a cancelled annotation is ignored
        ([[answer(ZOE, LABS)], [answer(ZOE, answer="reject")]], LATEST, {"rejected": 1, "superseded": 1}, 0),
        ([[answer(ZOE, LABS)], [answer(ZOE, answer="ignore")]], LATEST, {"ignored": 1, "superseded": 1}, 0),
        ([[exported(ZOE, LABS)], [exported(ZOE, was_cancelled=True)]], LATEST, {"ignored": 1, "superseded": 1}, 0),
        # an unusable answer supersedes nothing
        ([[answer(ZOE)], [answer(LABS, answer="maybe")]], LATEST, {"merged": 1, "unknown answer": 1}, 1),
        ([[answer(ZOE)], [answer(LABS, _view_id="choice")]], LATEST, {"merged": 1, "unsupported interface": 1}, 1),
        ([[answer(ZOE)], [answer(LABS, meta={"predicted": "yes"})]], LATEST, {"merged": 1, "prediction": 1}, 1),
        # a judgement is superseded by one on the same span alone
        ([[judged(ZOE), judged(LABS)], [judged(ZOE)]], LATEST, {"merged": 2, "superseded": 1}, 2),
        # a row that is there again, with its time, is the same answer: no vote, nothing superseded
        ([[BEFORE], [BEFORE], [AFTER]], LATEST, {"merged": 1, "same answer": 1, "superseded": 1}, 2),
        ([[BEFORE, AFTER], [BEFORE, AFTER]], UNION, {"merged": 2, "same answer": 2}, 2),
    ],
)
def test_an_answer_in_another_file(merging, files, policies, expected, entities):
    assert merged(merging, *files, policies=policies)[1] == expected
    assert merged(merging, *files, policies=policies)[0].get("entity", 0) == entities


def test_times_that_contradict_the_order_of_the_files_are_said(merging):
    messages = []
    for files in ([BEFORE, AFTER], [AFTER, BEFORE], [BEFORE, answer(ZOE)], [BEFORE, answer(ZOE), AFTER]):
        ledger = merged(merging, *([row] for row in files))[2]
        messages.append([words.partition(". ")[0] for words in words_of(ledger.checks) if "Timestamps" in words])
    says = "Timestamps contradict the file order for 1 answer: all (1)"
    assert messages == [[says], [], [], [says]]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (answer(ZOE, _timestamp=100), judged(ZOE, answer="reject", _timestamp=300), "reject"),
        (answer(ZOE, _timestamp=300), judged(ZOE, answer="reject", _timestamp=100), "accept"),
        (judged(ZOE, answer="reject"), answer(ZOE), "accept"),  # without times, the line
        (answer(ZOE, _timestamp=100), answer((*ZOE, "A", "reject"), _annotator_id="eve", _timestamp=300), "reject"),
        (judged(ZOE, _timestamp=100), answer(_timestamp=300), "accept"),  # what isn't marked isn't rejected
    ],
)
@pytest.mark.parametrize(("duplicates", "one"), [("latest", True), ("union", True), ("latest", False)])
def test_of_opposite_verdicts_on_a_span_the_later_of_a_data_set_counts(merging, first, second, kept, duplicates, one):
    for name, rows in {"a": [first, second]}.items() if one else {"a": [first], "b": [second]}.items():
        merging.add(name, ["A"], rows)
    opposite = not (first["_view_id"] == "ner" and second == answer(_timestamp=300))
    ledger = merging.run(policies=Policies(duplicates=duplicates, annotators="union"))
    ((_, doc),) = merging.docs().values()
    within = one and duplicates == "latest"
    assert [span.text for span in doc.ents] == ([] if within and kept == "reject" else ["Zoë"])
    assert len(doc.spans["incorrect_spans"]) == (within and kept == "reject")
    assert +ledger.spans == {"rejected" if within and kept == "reject" else "entity": 1} | (
        {"superseded" if within else "conflict": 1} if opposite else {}
    )


def test_a_copy_of_a_data_set_is_no_second_vote(merging):
    """A database beside its export, a copy under another name, an empty answer to other labels."""
    rows = [answer(ZOE, _timestamp=1, _session_id="a-ann"), answer(_timestamp=2, _session_id="a-bob")]
    merging.add("a", ["A"], rows)
    for name, labels, same in (("b", ["A"], 2), ("c", ["A", "B"], 2), ("d", ["C"], 0)):
        merging.declared = merging.declared[:1]
        merging.add(name, labels, rows)
        ledger = merging.run()
        assert (ledger.rows["same answer"], ledger.rows["merged"]) == (same, 4 - same), name
        assert ledger.agreement.get("A") == {"texts": 1, "both": 0, "spans": 1}


@pytest.mark.parametrize("name", ["a-may", "z-may"])
def test_an_earlier_copy_of_a_data_set_brings_nothing_back(merging, name):
    rows = {name: [answer(ZOE, LABS, _timestamp=1)], "org": [answer(ZOE, LABS, _timestamp=1), answer(_timestamp=3)]}
    for own in sorted(rows):
        merging.add(own, ["A"], rows[own])
    ledger = merging.run()
    assert ledger.rows == {"merged": 1, "same answer": 1, "superseded": 1}
    assert (ledger.spans["entity"], ledger.agreement) == (0, {})


@pytest.mark.guarantee("declared")
def test_a_number_names_somebody_in_its_data_set_alone(merging):
    """Each Label Studio counts its users from 1."""
    pair = {("0.json 1", "1.json 1"): {"texts": 1, "spans": 3, "both": 1}}
    for one, pairs in ((False, pair), (True, {})):
        assert merged(merging, [exported(ZOE)], [exported(ZOE, LABS)], one=one)[2].pairs == pairs
