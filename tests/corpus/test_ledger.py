from collections import Counter

import pytest

from labelwise.corpus.ledger import Ledger


@pytest.mark.parametrize("ledger", [Ledger(rows_read=2, rows=Counter(merged=1)), Ledger(spans_read=1)])
def test_a_ledger_that_does_not_balance_is_an_error(ledger):
    with pytest.raises(RuntimeError, match=r"\d (rows|spans) read, but \d counted.*please report this"):
        ledger.check()
