from typing import Any

import pytest

from labelwise.base.errors import InputError
from labelwise.check.check_corpus import check
from labelwise.datasets.decisions import Decision, add_decisions
from labelwise.report.review_queue import MAX_CASES, ReviewQueue, count_decided, estimate_shares, read_review_queue
from tests.conftest import task, write_jsonl

TEXTS = [f"wash the plate of {number} now" for number in range(40)]
PLATE = (9, 14)


def answer_of(case: dict[str, Any], verdict: str) -> dict[str, Any]:
    answer = case["answers"]["A"]
    about = {"dataset": answer["dataset"], "text": case["key"], "label": "A", "answer": answer["answer"]}
    return {**about, "verdict": verdict, "added": case["proposed"][:2]}


@pytest.mark.parametrize("verdict", ["gold is right", "gold is wrong", "policy"])
def test_a_case_that_is_decided_stays_away_until_its_answer_changes(verdict, merging):
    """A word is marked in all texts but three. Another dataset comes first; then the text is annotated again."""
    root, rows = merging.root, [task(text, *[PLATE] * (number > 2)) for number, text in enumerate(TEXTS)]
    (root / "assets/decisions").mkdir(parents=True)
    (root / "decisions").symlink_to("assets/decisions")

    def texts(name: str = "", rows: list[Any] = rows) -> list[str]:
        if name:
            merging.add(name, ["A"], rows)
        merging.run(test_ratio=0.0)
        check(root / "corpus", root / "training/check")
        return [
            f"{case['before']}plate{case['after']}"
            for case in read_review_queue(root).cases
            if case["surface"] == "plate"
        ]

    before = texts("b")
    assert sorted(before) == TEXTS[:3]
    first, *_ = read_review_queue(root).cases
    write_jsonl(root / "saved.jsonl", [answer_of(first, verdict)])
    write_jsonl(root / "others.jsonl", [answer_of(first, verdict) | {"text": "0a" * 12}])
    with pytest.raises(
        InputError, match=r"others\.jsonl: none of its texts is in .*corpus; .*: this may be another project's"
    ):
        add_decisions(root / "others.jsonl", root / "assets/decisions", root / "corpus")
    add_decisions(root / "saved.jsonl", root / "assets/decisions", root / "corpus")
    queue = read_review_queue(root)
    assert (len(queue.cases), len(queue.decided), count_decided(root, b"")) == (2, 1, 1)
    assert texts() == before[1:]
    merging.declared.clear()
    texts("a", [task(text) for text in TEXTS[:3]])
    assert texts("b") == before[1:]
    assert read_review_queue(root).cases[0]["answers"]["A"]["dataset"] == "a"
    merging.declared.clear()
    anew = [task(text, (0, 4)) if text == before[0] else row for text, row in zip(TEXTS, rows, strict=True)]
    assert sorted(texts("b", anew)) == TEXTS[:3]


def case(number: int, label: str = "A", group: str | None = None, score: float = 1.0) -> dict[str, Any]:
    answers = {label: {"dataset": "d", "file": "f", "answer": "0" * 12}}
    about = {"key": f"{number:024x}", "label": label, "kind": "missing", "group": group or str(number), "score": score}
    return {**about, "current": None, "proposed": (0, 3, label), "answers": answers}


def decided(number: int, verdict: str) -> Decision:
    return Decision("d", f"{number:024x}", "A", "0" * 12, verdict, added=(0, 3))


def test_the_queue_has_whole_groups_most_worthwhile_first():
    sizes = {
        ("A", "a"): 6,
        ("B", "b"): 3,
        ("B", "c"): 3,
        ("A", "d"): 9,
        ("SHIPS", "e"): 9,
        ("SHIPS", "f"): MAX_CASES - 28,
        ("C", "g"): 1,
    }
    scores = {"a": 4.0, "b": 1.0, "c": 2.0, "d": 0.1, "e": 9.0, "f": 8.0, "g": 7.0}
    kinds = [(label, group) for (label, group), size in sizes.items() for _ in range(size)]
    queue = ReviewQueue([case(n, label, group, scores[group]) for n, (label, group) in enumerate(kinds)])
    chosen = [case["group"] for case in queue.choose({"A": 10, "B": 19}) if case["listed"]]
    assert chosen == ["a"] * 6 + ["c"] * 3 + ["b"] * 3 + ["d"] * 9 + ["e"] * 9 + ["f"] * (MAX_CASES - 28)


def test_a_case_of_two_labels_counts_for_the_one_that_costs_more():
    other = case(1) | {"current": (0, 3, "A"), "proposed": (0, 3, "B"), "kind": "wrong label"}
    assert [case["key"] for case in ReviewQueue([case(0), other]).choose({"A": 1, "B": 9})] == [
        other["key"],
        case(0)["key"],
    ]


def test_precision_of_boundary_findings_is_shrunk_to_that_of_all():
    decided_findings = [(True, True)] * 3 + [(True, False)] + [(False, False)] * 6
    assert estimate_shares(decided_findings) == (pytest.approx(3.3 / 5), pytest.approx(0.3 / 7))


def test_the_sample_is_stable_and_estimates_the_precision_of_findings():
    """Of 300 findings, 30 are drawn; gold is wrong in the first 6. Those decided elsewhere don't count."""
    every = [case(n, score=float(n)) for n in range(300)]
    sample = [int(case["key"], 16) for case in ReviewQueue(every).sample()]
    assert len(set(sample)) == 30
    assert 100 < sum(sample) / 30 < 200, "not the surest"
    elsewhere = [decided(n, "gold is wrong") for n in range(300) if n not in sample][:50]

    def queue(*decisions: Decision) -> ReviewQueue:
        decided_texts = {decision.text for decision in decisions}
        return ReviewQueue([case for case in every if case["key"] not in decided_texts], decided=decisions)

    first = [decided(n, "gold is wrong" if at < 6 else "gold is right") for at, n in enumerate(sample)]
    assert [int(case["key"], 16) for case in queue(*first[:20]).sample()] == sample[20:]
    assert queue(*first[:29]).estimate() is None
    assert queue(*elsewhere).estimate() is None
    low, high = 0.0951, 0.3731  # Wilson's for 6 of 30
    estimate = queue(*first).estimate()
    assert estimate[:6] == (300, 30, 6, 0, round(300 * low), round(300 * high))
    assert estimate.shares == (pytest.approx(0.2), pytest.approx(6.2 / 31)), "none is about boundaries"
    with_questions = [
        decided(n, "policy") if at >= 20 else one for at, (n, one) in enumerate(zip(sample, first, strict=True))
    ]
    assert queue(*with_questions).estimate() == estimate._replace(asked=10), "as gold isn't known to be wrong there"
    assert ReviewQueue([], decided=first).estimate()[:3] == (30, 30, 6), "all are decided"
    assert ReviewQueue(every[:29]).sample() == []
