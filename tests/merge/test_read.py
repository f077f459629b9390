"""Tasks that don't fit one run, partitions by size: all gives the same."""

from collections import Counter

import pytest

from tests.conftest import task
from tests.merge.test_run import patch_merge, random_datasets


@pytest.mark.parametrize(("buffer", "at_once"), [(1, 2**17), (3000, 20)])
def test_how_many_runs_there_are_changes_nothing(merging, monkeypatch, buffer, at_once):
    random_datasets(merging, 1)
    # Answers without a time, so that lines decide, in runs far apart; and problems at the end.
    rows = [task("0 big", (0, 1)), *({"text": f"t {i}"} for i in range(50)), {"text": "0 big"}, "", "{oops"]
    merging.add("again", ["A"], [*rows, {"text": "x", "spans": [{"start": 9}]}])
    ledger = merging.run("whole", docs_per_partition=10)
    patch_merge(monkeypatch, RUN_BYTES=buffer, AT_ONCE=at_once, count_partitions=lambda *given: 16)
    assert merging.run("many", docs_per_partition=10) == ledger
    assert merging.files("many") == merging.files("whole")
    problems = merging.lines("problems.jsonl", "many")
    found = [(one["line"], one["reason"]) for one in problems if one["dataset"] == "again"]
    assert sorted(found) == [(54, "bad JSON"), (55, "invalid: None 9 None")]
    assert ledger.spans["in superseded task"] >= 1
    whole, many = (len(list((merging.root / out / ".cache").rglob("*"))) for out in ("whole", "many"))
    assert many > whole, "there are more of them"


def test_long_texts_make_more_partitions(merging, monkeypatch):
    merging.add("a", ["A"], [{"text": f"{i} " + "long text " * 100} for i in range(40)])
    merging.run("few", docs_per_partition=40)
    patch_merge(monkeypatch, TEXT_BYTES=10_000)
    merging.run("many", docs_per_partition=40)
    few, many = ([name for name in merging.files(out) if name.startswith("train/")] for out in ("few", "many"))
    assert len(few) == 1
    assert 4 <= len(many) <= 8, "40 KB of text, 10 KB in a partition, a power of two of them"


def test_a_text_that_would_take_gigabytes_is_counted_with_its_size(merging, monkeypatch):
    patch_merge(monkeypatch, LONGEST=1000)
    merging.add("a", ["A"], [task("one " * n, (0, 3), (0, 99)) for n in (250, 251)])
    ledger = merging.run()
    assert (ledger.rows, ledger.spans_read) == (Counter({"merged": 1, "malformed": 1}), 2)
    (problem,) = merging.lines("problems.jsonl")
    assert (problem["file"], problem["line"]) == ("a.jsonl", 2)
    assert problem["reason"] == "malformed: a text of 1,004 characters; cut it into texts of 1,000 at most"
