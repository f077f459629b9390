"""Slips that maintainers make: a patch for each breaks a guarantee of tests/guarantees.py, and a test fails.

    sources/test_formats.py::test_bad_rows_cost_nothing_and_lines_are_counted

    diff --git a/labelwise/sources/json_rows.py b/labelwise/sources/json_rows.py

A patch begins with the test that fails, maybe with parameters (`test_nothing_is_lost[a.conll]`), then has the output of
`git diff -U1`. If a patch no longer applies, make the same slip in the new code.
"""
