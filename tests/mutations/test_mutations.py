"""Each promise has a slip that breaks it, which one of its tests sees."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_promises import PROMISES

PATCHES = sorted((ROOT / "tests" / "mutations").glob("*.patch"))


def head_of(patch: Path) -> tuple[str, str]:
    """The first words of the promise, and the test that is to fail."""
    promise, test, blank, *_ = patch.read_text(encoding="utf8").split("\n")
    assert not blank
    return promise, test


@pytest.mark.long
@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_has_a_mutation_that_breaks_it(promise, tests):
    assert any(promise.startswith(head_of(patch)[0]) for patch in PATCHES)


@pytest.mark.long
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_mutation_applies_and_breaks_one_promise_by_a_test_that_it_names(patch):
    broken, test = head_of(patch)
    [tests] = [tests for promise, tests in PROMISES if promise.startswith(broken)]
    assert f"`{test.partition('[')[0]}`" in tests
    subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the repository's files, as they are now, in a repository of its own: some tests list them."""
    folder = tmp_path_factory.mktemp("copy")
    files = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in files.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_mutation_is_seen(copy, tmp_path, patch):
    _, test = head_of(patch)
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--basetemp", tmp_path / "in"]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    subprocess.run(["git", "apply", patch], cwd=copy, check=True)
    try:
        done = subprocess.run(
            [*command, f"tests/{test}"], cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        subprocess.run(["git", "apply", "--reverse", patch], cwd=copy, check=True)
    # Not an error before a test began, nor tests that were skipped.
    assert re.search(r"(?m)^1 failed", done.stdout), done.stdout + done.stderr
