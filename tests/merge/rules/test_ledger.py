from collections import Counter

import msgspec
import pytest

from labelwise.merge.rules.ledger import PROBLEM_ROWS, Ledger, outcome_of
from labelwise.sources.items import miscounted


@pytest.mark.parametrize("ledger", [Ledger(rows_read=2, rows=Counter(merged=1)), Ledger(spans_read=1)])
def test_a_ledger_that_does_not_balance_are_an_error(ledger):
    with pytest.raises(RuntimeError, match=r"\d (rows|spans) read, but \d counted.*please report this"):
        ledger.check()


def test_agreement_is_added_and_sorted_and_keeps_its_zeros():
    ledger = Ledger(agreement={"B": Counter(texts=1, both=0, spans=0)})
    ledger.add(Ledger(agreement={"B": Counter(texts=1, both=0, spans=0), "A": Counter(texts=1, both=2, spans=5)}))
    ledger.add(Ledger(agreement={"A": Counter(texts=2, both=1, spans=2)}))
    written = msgspec.to_builtins(ledger.sorted().agreement)
    assert [(label, list(counts.items())) for label, counts in written.items()] == [
        ("A", [("both", 3), ("spans", 7), ("texts", 3)]),
        ("B", [("both", 0), ("spans", 0), ("texts", 2)]),
    ]


def test_adding_and_sorting():
    ledger = Ledger(rows_read=1, rows=Counter(b=1), labels={"A": Counter(gold=1)}, stored_hash_differs=1)
    ledger.add(Ledger(rows_read=2, rows=Counter(a=2, c=0), labels={"A": Counter(gold=2), "B": Counter(entity=1)}))
    ledger.check()
    assert (ledger.rows_read, ledger.stored_hash_differs) == (3, 1)
    assert list(ledger.sorted().rows.items()) == [("a", 2), ("b", 1)]
    assert ledger.sorted().labels == {"A": Counter(gold=3), "B": Counter(entity=1)}


def test_a_file_of_which_not_all_was_read_is_a_problem():
    assert outcome_of(miscounted(3, 1200, "sentences", 1199).problem) in PROBLEM_ROWS
    assert Ledger(rows_read=2, rows=Counter(merged=1, miscounted=1)).problems() == 1
