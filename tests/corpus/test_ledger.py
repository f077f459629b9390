from collections import Counter

import pytest

from labelwise.corpus.ledger import PROBLEM_ROWS, Ledger, outcome_of
from labelwise.sources.items import miscounted


@pytest.mark.parametrize("ledger", [Ledger(rows_read=2, rows=Counter(merged=1)), Ledger(spans_read=1)])
def test_a_ledger_that_does_not_balance_is_an_error(ledger):
    with pytest.raises(RuntimeError, match=r"\d (rows|spans) read, but \d counted.*please report this"):
        ledger.check()


def test_ledgers_are_added_and_written_in_order():
    ledger = Ledger(rows_read=1, rows=Counter(b=1), datasets=Counter(none=0))
    other = Ledger(rows_read=3, rows=Counter(b=1, a=2))
    for label, n in (("B", 0), ("A", 3)):
        other.labels[label]["gold"] += n
    other.pairs["A", "ann", "bob"]["texts"] += 1
    ledger.add(other)
    ledger.check()
    assert (ledger.rows, ledger.rows_read, ledger.spans_read) == ({"a": 2, "b": 2}, 4, 0)
    written = ledger.nested()
    assert list(written["rows"].items()) == [("a", 2), ("b", 2)]
    assert list(written["labels"].items()) == [("B", {}), ("A", {"gold": 3})]
    assert (written["datasets"], written["texts"], written["spans_read"]) == ({"none": 0}, {}, 0)
    assert written["pairs"] == {"A": {"ann": {"bob": {"texts": 1}}}}
    assert "ann" not in str(ledger.metrics())


def test_the_metrics_have_f_beside_the_counts():
    rows = {
        "A": Counter(texts=2, both=3, spans=8),
        "B": Counter(texts=1, both=0, spans=4),  # never the same span
        "C": Counter(texts=5, both=0, spans=0),  # nobody marked any
    }
    found = Ledger(agreement=rows).metrics()["agreement"]
    assert {label: (row["texts"], row["f"]) for label, row in found.items()} == {
        "A": (2, 0.75),
        "B": (1, 0.0),
        "C": (5, None),
    }


def test_a_file_of_which_not_all_was_read_is_a_problem():
    assert outcome_of(miscounted(3, 1200, "sentences", 1199).problem) in PROBLEM_ROWS
    assert Ledger(rows=Counter(merged=1, miscounted=1)).problems == 1
