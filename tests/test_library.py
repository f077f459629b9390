import json
import os
import sys
from pathlib import Path

import pytest

import labelwise
from tests.conftest import ROOT, run_command

FUNCTIONS = ("merge_data", "train_pipeline", "evaluate_pipeline", "write_report")
MAX_STEPS = "--max-steps -1: give a number of updates, or 0 for the config's"
STATE = """
import json, os, signal, sys
def state():
    return [dict(os.environ), sys.dont_write_bytecode, str(signal.getsignal(signal.SIGINT)), sys.path, str(sys.stdout)]
before = state()
import time; began = time.process_time()
import labelwise
took = time.process_time() - began
print(json.dumps([took, state() == before, sorted({"numpy", "spacy", "typer", "dvc"} & sys.modules.keys())]))
"""


@pytest.mark.guarantee("importing")
def test_importing_takes_no_time_and_changes_nothing():
    names = ("OPENBLAS_NUM_THREADS", "HF_HUB_DISABLE_TELEMETRY", "ANSI_COLORS_DISABLED", "PYTHONDONTWRITEBYTECODE")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    took, same, loaded = json.loads(run_command([sys.executable, "-B", "-c", STATE], ROOT, clean).stdout)
    assert took < 0.2
    assert same
    assert loaded == []


def test_what_is_public_can_be_had_and_is_documented():
    for name in labelwise.__all__:
        value = getattr(labelwise, name)
        assert value.__module__.startswith("labelwise.")
        assert value.__doc__
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf8")
    assert set(FUNCTIONS) < set(labelwise.__all__) <= set(dir(labelwise))
    assert [name for name in labelwise.__all__ if f"`{name}" not in page] == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: labelwise.TrainingConfig("a", "b", max_steps=-1), MAX_STEPS),
        (lambda: labelwise.Settings(duplicates="newest"), "duplicates 'newest': give latest or union"),
        (lambda: labelwise.Settings(coverage="all"), "coverage 'all': give by-label or drop or outside"),
        (lambda: labelwise.Settings(test_ratio="0.2"), "test_ratio '0.2': Expected `float`, got `str`"),
        (lambda: labelwise.Settings(near_similarity=3), "near_similarity 3: Expected `float` <= 1.0"),
        (
            lambda: labelwise.merge_data("a.yml", "b", labelwise.Settings()),
            f"{Path.cwd()}/a.yml: there is no such file; it declares datasets, see docs/formats.md",
        ),
        (lambda: labelwise.write_report("a", "cpu", "b.html", target_f1=80), "target_f1 80: give a share, from 0 to 1"),
        (lambda: labelwise.Settings(near_duplicates="no"), "near_duplicates 'no': give report or group or off"),
    ],
    ids=range(8),
)
def test_an_unknown_value_is_named_with_the_known_ones(make, message):
    with pytest.raises(labelwise.InputError) as error:
        make()
    assert str(error.value) == message
