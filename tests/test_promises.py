"""The page of promises: each is held by tests, which are there, and one of which `make test` runs."""

import ast
import re
from functools import cache

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf8")
PROMISES = [row.split(" | ") for row in re.findall(r"(?m)^\| (.*) \|$", PAGE) if row != "promise | held by"]


@cache
def marks_of_tests(file: str) -> dict[str, str]:
    """The tests of a file, by name, each with its own marks and those of the file."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf8"))
    whole = "".join(ast.unparse(node) for node in tree.body if ast.unparse(node).startswith("pytestmark"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    # A mark of some parameters isn't one of the test.
    return {
        node.name: whole + " ".join(ast.unparse(one) for one in node.decorator_list if not isinstance(one, ast.Call))
        for node in functions
    }


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_is_held_by_tests_that_are_there_and_one_of_which_make_test_runs(promise, tests):
    named = re.findall(r"`(\S+)::(\w+)`", tests)
    assert [f"{file}::{test}" for file, test in named if test not in marks_of_tests(file)] == []
    assert [test for file, test in named if not re.search(r"mark\.(long|nightly|gpu)", marks_of_tests(file)[test])], (
        promise
    )


def test_every_line_of_the_page_is_a_promise():
    assert len(PROMISES) == PAGE.count("| `") > 20
