"""Several annotators of one text, where the oracle doesn't look: named people."""

import pytest

from labelwise.corpus.annotation import annotation_of
from labelwise.merge.rules.policies import Policies
from tests.conftest import Merging
from tests.merge.test_run import read_docs

NAME, LABS = (0, 10), (14, 26)


def answered(who: str, *spans: tuple[int, int], **more) -> dict:
    marked = [{"start": start, "end": end, "label": "NAME"} for start, end in spans]
    row = {"text": "Zoë Barton of Mercury Labs paid.", "spans": marked, "_view_id": "ner_manual"}
    return row | {"_annotator_id": who} | more


def offsets(merging: Merging, annotators: str) -> list[tuple[int, int]]:
    merging.run(policies=Policies(annotators=annotators))
    ((_, doc),) = read_docs(merging.root).values()
    return sorted(key[:2] for key in annotation_of(doc).accepted)


@pytest.mark.parametrize(
    ("annotators", "expected"),
    [
        ("half", [NAME, LABS]),
        ("all", []),
        ("bob, ann", [LABS]),
        ("nobody, ann", [NAME]),
        ("nobody", [NAME, LABS]),  # none is there: half
    ],
)
@pytest.mark.parametrize("session", ["", "a-"])
def test_policies_of_two(merging, annotators, expected, session):
    """A session is named without its data set."""
    merging.add("a", ["NAME"], [answered(f"{session}ann", NAME), answered(f"{session}bob", LABS)])
    assert offsets(merging, annotators) == expected
