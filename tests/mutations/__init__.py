"""Slips that maintainers make: a patch for each breaks a guarantee of tests/guarantees.py, and a test fails.

    sources/test_formats.py::test_bad_rows_cost_nothing_and_lines_are_counted

    diff --git a/labelwise/sources/json_rows.py b/labelwise/sources/json_rows.py

A patch begins with the test that fails, maybe with some parameters only, as in `test_nothing_is_lost[a.conll]`. Then
comes what `git diff -U1` gives of the code, or of a setting. When the code has moved on, and a patch doesn't apply any
more, make the same slip again.
"""
