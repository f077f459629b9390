from collections import Counter

import msgspec
import pytest

from labelwise.books import Books


@pytest.mark.parametrize("books", [Books(rows_read=2, rows=Counter(merged=1)), Books(spans_read=1)])
def test_books_that_do_not_balance_are_an_error(books):
    with pytest.raises(RuntimeError, match=r"\d (rows|spans) read, but \d counted.*please report this"):
        books.check()


def test_agreement_is_added_and_sorted_and_keeps_its_zeros():
    books = Books(agreement={"B": Counter(texts=1, both=0, spans=0)})
    books.add(Books(agreement={"B": Counter(texts=1, both=0, spans=0), "A": Counter(texts=1, both=2, spans=5)}))
    books.add(Books(agreement={"A": Counter(texts=2, both=1, spans=2)}))
    written = msgspec.to_builtins(books.sorted().agreement)
    assert [(label, list(counts.items())) for label, counts in written.items()] == [
        ("A", [("both", 3), ("spans", 7), ("texts", 3)]),
        ("B", [("both", 0), ("spans", 0), ("texts", 2)]),
    ]


def test_adding_and_sorting():
    books = Books(rows_read=1, rows=Counter(b=1), labels={"A": Counter(gold=1)}, stored_hash_differs=1)
    books.add(Books(rows_read=2, rows=Counter(a=2, c=0), labels={"A": Counter(gold=2), "B": Counter(entity=1)}))
    books.check()
    assert (books.rows_read, books.stored_hash_differs) == (3, 1)
    assert list(books.sorted().rows.items()) == [("a", 2), ("b", 1)]
    assert books.sorted().labels == {"A": Counter(gold=3), "B": Counter(entity=1)}
