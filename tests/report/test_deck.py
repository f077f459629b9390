"""The deck: which findings of a check a report asks about."""

from typing import Any

import pytest

from labelwise.base.errors import InputError
from labelwise.check.run import check
from labelwise.datasets.decisions import add_decisions
from labelwise.report.deck import count_decided, read_deck
from tests.conftest import task, write_jsonl

TEXTS = [f"wash the plate of {number} now" for number in range(40)]
PLATE = (9, 14)


def answer_of(case: dict[str, Any], verdict: str) -> dict[str, Any]:
    """The row that the page saves about a missing span."""
    answer = case["answers"]["A"]
    about = {"dataset": answer["dataset"], "text": case["key"], "label": "A", "answer": answer["answer"]}
    return {**about, "verdict": verdict, "added": case["proposed"][:2]}


@pytest.mark.parametrize("verdict", ["gold is right", "gold is wrong", "policy"])
def test_a_case_that_is_decided_stays_away_until_its_answer_changes(verdict, merging):
    """A word is marked in all texts but three. Another data set comes first; then the text is annotated anew."""
    root, rows = merging.root, [task(text, *[PLATE] * (number > 2)) for number, text in enumerate(TEXTS)]
    (root / "assets/decisions").mkdir(parents=True)
    (root / "decisions").symlink_to("assets/decisions")

    def texts(name: str = "", rows: list[Any] = rows) -> list[str]:
        if name:
            merging.add(name, ["A"], rows)
        merging.run(test_ratio=0.0)
        check(root / "corpus", root / "training/check")
        return [f"{one['before']}plate{one['after']}" for one in read_deck(root).cases if one["form"] == "plate"]

    before = texts("b")
    assert sorted(before) == TEXTS[:3]
    first, *_ = read_deck(root).cases
    write_jsonl(root / "saved.jsonl", [answer_of(first, verdict)])
    write_jsonl(root / "others.jsonl", [answer_of(first, verdict) | {"text": "0a" * 12}])
    with pytest.raises(
        InputError, match=r"others\.jsonl: none of its texts is in .*corpus; .*: this may be another project's"
    ):
        add_decisions(root / "others.jsonl", root / "assets/decisions", root / "corpus")
    add_decisions(root / "saved.jsonl", root / "assets/decisions", root / "corpus")
    deck = read_deck(root)
    assert (len(deck.cases), deck.total, len(deck.decided), count_decided(root, b"")) == (2, 2, 1, 1)
    assert texts() == before[1:]
    merging.declared.clear()
    texts("a", [task(text) for text in TEXTS[:3]])
    assert texts("b") == before[1:]
    assert read_deck(root).cases[0]["answers"]["A"]["dataset"] == "a"
    merging.declared.clear()
    anew = [task(text, (0, 4)) if text == before[0] else row for text, row in zip(TEXTS, rows, strict=True)]
    assert sorted(texts("b", anew)) == TEXTS[:3]
