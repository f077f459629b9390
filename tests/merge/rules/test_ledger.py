import pytest

from labelwise.merge.rules.ledger import PROBLEM_ROWS, Ledger, outcome_of
from labelwise.sources.items import miscounted


@pytest.mark.parametrize("counts", [{("rows_read",): 2, ("rows", "merged"): 1}, {("spans_read",): 1}])
def test_a_ledger_that_does_not_balance_is_an_error(counts):
    with pytest.raises(RuntimeError, match=r"\d (rows|spans) read, but \d counted.*please report this"):
        Ledger(counts).check()


def test_counts_are_read_by_path_and_by_attribute_and_written_in_order():
    ledger = Ledger({("labels", "B", "gold"): 0, ("labels", "A", "gold"): 0, ("datasets", "none"): 0})
    ledger.update(Ledger({("rows", "b"): 1, ("rows_read",): 1, ("labels", "A", "gold"): 3}))
    ledger.count(("rows",), ["a", "b", "a"])
    ledger["rows_read",] += 3
    ledger.check()
    assert (ledger.rows, ledger.rows_read, ledger.spans_read) == ({"a": 2, "b": 2}, 4, 0)
    assert ledger.labels == {"B": {"gold": 0}, "A": {"gold": 3}}
    written = ledger.nested()
    assert list(written["rows"].items()) == [("a", 2), ("b", 2)]
    assert list(written["labels"].items()) == [("B", {}), ("A", {"gold": 3})]
    assert (written["datasets"], written["texts"], written["spans_read"]) == ({"none": 0}, {}, 0)


def test_a_file_of_which_not_all_was_read_is_a_problem():
    assert outcome_of(miscounted(3, 1200, "sentences", 1199).problem) in PROBLEM_ROWS
    assert Ledger({("rows_read",): 2, ("rows", "merged"): 1, ("rows", "miscounted"): 1}).problems() == 1
