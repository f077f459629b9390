import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PATCHES = sorted((ROOT / "tests" / "mutations").glob("*.patch"))


@pytest.mark.long
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_mutation_applies(patch):
    subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The files as they are in a new repository: some tests list them."""
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
    test, blank, *_ = patch.read_text(encoding="utf8").split("\n")
    assert not blank
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--basetemp", tmp_path / "in"]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    del environment["PYTEST_CURRENT_TEST"]  # it hides PyTorch
    subprocess.run(["git", "apply", patch], cwd=copy, check=True)
    try:
        done = subprocess.run(
            [*command, f"tests/{test}"], cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        subprocess.run(["git", "apply", "--reverse", patch], cwd=copy, check=True)
    # Not an error before a test began, nor tests that were skipped.
    assert re.search(r"(?m)^1 failed", done.stdout), done.stdout + done.stderr
