"""Agreement where texts were annotated twice, where the oracle doesn't look: what is written of it."""

from tests.conftest import Merging, task


def row(number: int, who: str | None, *spans: tuple[int, int], **more) -> dict:
    return task(f"text {number} cat", *spans, meta={"doc": f"{number}.txt"}, _annotator_id=who, **more)


def test_an_earlier_merge_is_no_version_of_labels_that_it_does_not_cover(merging, tmp_path):
    merging.add("first", ["A"], [row(1, None, (0, 4))], split="train")
    merging.add("second", ["B"], [row(2, None)], split="train")
    merging.run()
    again = Merging(tmp_path / "again")
    again.add("earlier", ["A", "B"], [], path=str(merging.root / "corpus"))
    again.add("new", ["A", "B"], [row(1, None, (0, 4)), row(2, None, (0, 4))])
    assert again.run().agreement == {
        "A": {"texts": 1, "both": 1, "spans": 2},
        "B": {"texts": 1, "both": 0, "spans": 0},
    }


def test_what_people_marked_differently_is_listed(merging):
    """By label, with who marked what, where; what they agree on isn't."""
    merging.add(
        "a", ["A"], [row(0, "ann", (0, 4)), row(1, "ann", (0, 4)), row(0, "bob", (0, 4), (0, 6)), row(1, "bob", (0, 4))]
    )
    merging.add("b", ["B"], [row(0, "ann"), row(0, "bob")])
    merging.run()
    (found,) = merging.lines("disagreements.jsonl")
    assert [(span["start"], span["end"], span["annotators"]) for span in found["spans"]] == [
        (0, 4, ["ann", "bob"]),
        (0, 6, ["bob"]),
    ]
    lines = "a.jsonl:1, a.jsonl:3, b.jsonl:1, b.jsonl:2"
    assert found["meta"] == {"label": "A", "annotators": "ann, bob", "doc": "0.txt", "from": lines}
