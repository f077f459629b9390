"""Slips that maintainers make: a patch for each, which breaks a promise of docs/promises.md, and makes its test fail.

    One bad line or span costs nothing but itself.
    sources/test_formats.py::test_bad_rows_cost_nothing_and_lines_are_counted

    diff --git a/labelwise/sources/json_rows.py b/labelwise/sources/json_rows.py

A patch begins with the first words of the promise, and one of the tests that hold it, perhaps for some parameters only,
as in `test_nothing_is_lost[a.conll]`. Then comes what `git diff -U1` gives of the code, or of a setting. When the code
has moved on, and a patch doesn't apply any more, make the same slip again.
"""
