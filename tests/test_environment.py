"""Processes that compute what every x86-64-v3 processor does."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labelwise.base.environment import BEYOND_V3, DISABLED, KERNELS, V3, choose_kernels, require_portable
from labelwise.base.errors import InputError
from tests.conftest import ROOT, call

# Its products differ from kernel to kernel, its exponentials and sums from one group of instructions to another.
COMPUTE = """
import scripts
import hashlib, sys
from pathlib import Path
import numpy as np
from labelwise.base.environment import require_portable
require_portable(Path(sys.argv[1]))
rng = np.random.default_rng(0)
a = rng.standard_normal((300, 301), dtype="float32")
print(hashlib.sha256((np.tanh(a / 10) @ np.exp(a).T).tobytes() + np.exp(a).sum(axis=1).tobytes()).hexdigest())
"""
PORTABLE = "[system]\nportable = true"


def compute(config: Path, **environment: str) -> str:
    """Compute something in a process as a command does that is given a config; returns its digest."""
    given = {name: value for name, value in os.environ.items() if name not in KERNELS} | environment
    command = [sys.executable, "-c", COMPUTE, config]
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not V3 & {*np.show_config("dicts")["SIMD Extensions"]["found"]}, reason="no x86-64-v3 processor")
def test_other_kernels_compute_the_same_where_it_was_asked_for(tmp_path):
    (tmp_path / "plain.cfg").touch()
    (tmp_path / "own.cfg").write_text(PORTABLE)
    others = [{}, {"OPENBLAS_CORETYPE": "Sandybridge"}, {"OPENBLAS_NUM_THREADS": "2"}, {DISABLED: BEYOND_V3}]
    assert len({compute(tmp_path / "plain.cfg", **other) for other in others}) > 1  # else this processor can't tell
    assert len({compute(tmp_path / "own.cfg", **other) for other in others}) == 1


def test_a_processor_that_computes_otherwise_is_refused(tmp_path, monkeypatch):
    (tmp_path / "own.cfg").write_text(PORTABLE)
    monkeypatch.setattr(np, "show_config", lambda mode: {"SIMD Extensions": {"found": {"NEON"}}})
    with pytest.raises(InputError, match="isn't an x86-64-v3 one; set portable = false"):
        require_portable(tmp_path / "own.cfg")


@pytest.mark.parametrize(
    "line",
    [
        "train {config} corpus model --curve c.tsv",
        "check_labels corpus --out check --config={config}",
        "evaluate {folder} corpus/test scores.json",
        "predict {folder} raw --out raw.jsonl",
    ],
)
def test_commands_choose_kernels_where_the_config_of_training_or_pipeline_asks_for_it(line, tmp_path):
    """This process was started otherwise, and so it refuses, before anything else."""
    (tmp_path / "config.cfg").write_text(PORTABLE)
    name, *arguments = line.format(config=tmp_path / "config.cfg", folder=tmp_path).split()
    command = getattr(importlib.import_module(f"scripts.{name}"), f"{name}_cli")
    printed = " ".join(call(command, *arguments, status=1).split())
    assert "portable: " in printed
    assert "loaded before" in printed
    with pytest.MonkeyPatch.context() as patched:
        for variable in KERNELS:
            patched.setenv(variable, "as before")
        choose_kernels(arguments)
        assert {variable: os.environ[variable] for variable in KERNELS} == KERNELS
