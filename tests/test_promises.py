"""The page of promises: each is held by tests, which are there."""

import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf8")
PROMISES = [row.split(" | ") for row in re.findall(r"(?m)^\| (.*) \|$", PAGE) if row != "promise | held by"]


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_is_held_by_tests_that_are_there(promise, tests):
    named = re.findall(r"`(\S+)::(\w+)`", tests)
    assert named, promise
    for file, test in named:
        code = (ROOT / "tests" / file).read_text(encoding="utf8")
        assert re.search(rf"^def {test}\(", code, re.MULTILINE), f"{file}::{test}"


def marks_of(file: str, test: str) -> set[str]:
    """The marks of a test, and those of its file."""
    code = (ROOT / "tests" / file).read_text(encoding="utf8")
    above = code.partition(f"\ndef {test}(")[0].rpartition("\n\n\n")[2]
    whole = "".join(re.findall(r"(?m)^pytestmark = .*$", code))
    return set(re.findall(r"(?m)^@pytest\.mark\.(\w+)$", above)) | set(re.findall(r"pytest\.mark\.(\w+)", whole))


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_make_test_runs_one_of_the_tests_of_each_promise(promise, tests):
    named = re.findall(r"`(\S+)::(\w+)`", tests)
    assert [test for file, test in named if not marks_of(file, test) & {"long", "nightly", "gpu"}], promise


def test_every_line_of_the_page_is_a_promise():
    assert len(PROMISES) == PAGE.count("| `") > 20
