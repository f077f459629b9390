from collections import Counter

import pytest

from labelwise.corpus.ledger import Ledger


@pytest.mark.parametrize("ledger", [Ledger(rows_read=2, rows=Counter(merged=1)), Ledger(spans_read=1)])
def test_a_ledger_that_does_not_balance_is_an_error(ledger):
    with pytest.raises(RuntimeError, match=r"\d (rows|spans) read, but \d counted.*please report this"):
        ledger.check()


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
