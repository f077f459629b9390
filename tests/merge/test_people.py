import pytest

from labelwise.base.errors import InputError
from labelwise.corpus.annotation import annotation_of
from labelwise.merge.rules.policies import Policies
from tests.conftest import task
from tests.merge.test_checks import all_words

TEXT = "Zoë Barton of Mercury Labs paid."
ZOE, FIRST, OTHER = (0, 10, "PERSON"), (0, 3, "PERSON"), (14, 26, "PERSON")


def answer(*spans: tuple, who: str | None = None, session: str | None = None) -> dict:
    return task(TEXT, *spans, _view_id="ner_manual", _annotator_id=who, _session_id=session)


def test_of_the_labels_of_an_answer_only_those_asked_again_are_replaced(merging):
    merging.add("a", ["PERSON", "COMPANY"], [answer(ZOE, (14, 26, "COMPANY"), who="ann")])
    merging.add("b", ["COMPANY"], [answer(who="ann")])
    ledger = merging.run()
    assert (ledger.rows, ledger.spans) == ({"merged": 2}, {"entity": 1, "superseded": 1})
    assert +ledger.labels["COMPANY"] == {"complete": 1}


@pytest.mark.parametrize(
    ("one", "other", "declared", "same"),
    [
        ({}, {}, {}, False),  # unnamed answers are the dataset's own
        ({"who": "ann"}, {"who": "bob"}, {}, False),
        ({"who": "1"}, {"who": "1"}, {}, False),  # each server counts from 1
        ({"session": "a-2024-03-01_10-00-00"}, {"session": "b-2024-03-02_10-00-00"}, {}, False),
        ({"who": "1"}, {"who": "1"}, {"a": {"annotator": {1: "ann"}}, "b": {"annotator": {1: "bob"}}}, False),
        ({}, {"who": "ann"}, {"a": {"annotator": "bob"}}, False),
        ({"who": "1"}, {"who": "7"}, {"a": {"annotator": {1: "ann"}}, "b": {"annotator": {7: "ann"}}}, True),
        ({}, {"who": "ann"}, {"a": {"annotator": "ann"}}, True),
        ({"who": "a-ann"}, {"session": "b-ann"}, {}, True),
    ],
)
def test_names_and_declarations_say_who_is_who(merging, one, other, declared, same):
    for name, row in (("a", answer(ZOE, **one)), ("b", answer(FIRST, **other))):
        merging.add(name, ["PERSON"], [row], **declared.get(name, {}))
    ledger = merging.run()
    assert ledger.rows == ({"merged": 1, "superseded": 1} if same else {"merged": 2})
    assert ledger.agreement == ({} if same else {"PERSON": {"texts": 1, "both": 0, "spans": 2}})
    replaced = "1 answer was replaced by a later answer of the same annotator in another dataset: a by b (1)"
    assert (replaced in all_words(ledger)) == same


def test_an_adjudication_outvotes_nothing_of_the_same_person(merging):
    merging.add("a", ["PERSON"], [answer(ZOE, who="ann"), answer(OTHER, who="ann") | {"_view_id": "review"}])
    merging.run(policies=Policies(duplicates="union"))
    ((_, doc),) = merging.docs().values()
    assert annotation_of(doc).accepted == {ZOE, OTHER}


@pytest.mark.parametrize(
    ("annotators", "expected"), [("half", [ZOE, OTHER]), ("all", []), ("bob, ann", [OTHER]), ("nobody, ann", [ZOE])]
)
@pytest.mark.parametrize("session", ["", "a-"])
def test_a_policy_may_name_people(merging, annotators, expected, session):
    rows = [answer(ZOE, who=f"{session}ann"), answer(OTHER, who=f"{session}bob")]
    merging.add("a", ["PERSON"], rows)
    ledger = merging.run(policies=Policies(annotators=annotators))
    ((_, doc),) = merging.docs().values()
    assert annotation_of(doc).accepted == set(expected)
    assert ("Unknown annotator in `annotators`: 'nobody'" in all_words(ledger)) == ("nobody" in annotators)
    for wrong in ("unoin", "nobody, eve"):
        why = rf"annotators: '{wrong}' is neither a policy \(half, all, union\) nor .* who answered \(ann, bob\)"
        with pytest.raises(InputError, match=why):
            merging.run(policies=Policies(annotators=wrong))


@pytest.mark.parametrize(
    ("declared", "warned"),
    [({"1": "ann"}, ""), ("ann", "names 'ann', and no"), ({"1": "ann", "2": "bob", "3": "eve"}, "names 'eve', and no")],
)
def test_a_person_who_is_declared_and_has_no_answer_is_warned_of(merging, declared, warned):
    merging.add("a", ["PERSON"], [answer(ZOE, who="1"), answer(OTHER, who="2"), "{"], annotator=declared)
    merging.add("b", ["PERSON"], [answer(ZOE, who="")], annotator="eve")
    printed = all_words(merging.run())
    assert ("Dataset 'a': `annotator`" in printed) == bool(warned)
    assert warned in printed
    assert "Dataset 'b': `annotator`" not in printed
