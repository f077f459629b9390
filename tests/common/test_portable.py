"""Processes that compute what every x86-64-v3 processor does."""

import importlib
import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from labelwise.common import portable
from labelwise.common.errors import InputError
from labelwise.common.portable import DISABLED, KERNELS, V3, beyond_v3, is_portable, make_portable, obey

needs_v3 = pytest.mark.skipif(not V3 & portable._simd(), reason="this isn't an x86-64-v3 processor")
# Its products differ from kernel to kernel, its exponentials and sums from one group of instructions to another.
COMPUTE = """
import sys
from labelwise.common.portable import is_portable, make_portable
if "portable" in sys.argv:
    make_portable()
    assert is_portable()
import hashlib
import numpy as np
rng = np.random.default_rng(0)
a = rng.standard_normal((300, 301), dtype="float32")
print(hashlib.sha256((np.tanh(a / 10) @ np.exp(a).T).tobytes() + np.exp(a).sum(axis=1).tobytes()).hexdigest(), sys.argv)
"""


def compute(*arguments: str, **environment: str) -> str:
    """Compute something in a process; returns its digest, and the arguments that it saw."""
    names = (*KERNELS, DISABLED)
    given = {name: value for name, value in os.environ.items() if name not in names} | environment
    command = [sys.executable, "-c", COMPUTE, *arguments]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout


@needs_v3
def test_other_kernels_compute_the_same_where_it_was_asked_for():
    others = [
        {"OPENBLAS_CORETYPE": "Sandybridge"},
        {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"},
        {DISABLED: " ".join(beyond_v3())},
    ]
    assert len({compute(**other) for other in [{}, *others]}) > 1  # else this processor can't tell
    assert len({compute("portable", **other) for other in [{}, *others]}) == 1


@needs_v3
def test_arguments_survive_the_new_start():
    assert "['-c', 'portable', 'a b', '']" in compute("portable", "a b", "")


def test_another_processor_is_refused(monkeypatch):
    monkeypatch.setattr(portable, "_simd", lambda: {"NEON"})
    assert not is_portable()
    with pytest.raises(InputError, match="isn't an x86-64-v3 one; set portable = false"):
        make_portable()


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("[labelwise]\nportable = true", True),
        ("[labelwise]\nportable = false", False),
        ("[labelwise]\ngpus = 2", False),
        ('[nlp]\nlang = "en"', False),
        ("not a config", False),
        (None, False),
    ],
)
def test_a_config_asks_for_it(content, asked, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(portable, "make_portable", lambda: told.append(True))
    if content is not None:
        (tmp_path / "config.cfg").write_text(content)
    obey(tmp_path / "config.cfg")
    assert bool(told) == asked


def begin_anew() -> None:
    """Be what would start the process anew."""
    raise InputError("begun anew")


@pytest.mark.parametrize(
    "line",
    [
        "train {config} corpus model --curve c.tsv",
        "check_labels corpus --out check --config {config}",
        "evaluate {folder} corpus/test scores.json",
        "predict {folder} raw --out raw.jsonl",
    ],
)
def test_commands_begin_anew_where_the_config_of_training_or_pipeline_asks_for_it(line, tmp_path, monkeypatch):
    """Before anything that is counted: none of the other files is there."""
    config = tmp_path / "config.cfg"
    config.write_text("[labelwise]\nportable = true")
    monkeypatch.setattr(portable, "make_portable", begin_anew)
    name, *arguments = line.format(config=config, folder=tmp_path).split()
    script = importlib.import_module(f"labelwise.commands.{name}")
    app = typer.Typer()
    app.command()(getattr(script, f"{name}_cli"))
    assert "begun anew" in CliRunner().invoke(app, arguments).output


def test_a_numpy_that_does_not_listen_is_no_endless_loop(monkeypatch):
    monkeypatch.setattr(portable, "_simd", lambda: {"X86_V3", "X86_V4"})
    monkeypatch.setenv(DISABLED, "X86_V4")
    with pytest.raises(InputError, match="numpy uses X86_V4"):
        make_portable()
