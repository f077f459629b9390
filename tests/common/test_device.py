"""What computes: the CPU, with which library."""

import os
import subprocess
import sys

import pytest
import thinc.api

from labelwise.common.device import use_gpu
from labelwise.common.errors import InputError


def test_on_the_cpu_numpy_multiplies_matrices():
    use_gpu(-1)
    ops = thinc.api.get_current_ops()
    assert not getattr(ops, "use_blis", False)
    assert thinc.api.Linear(2, 3).ops is ops  # what a pipeline that is loaded now will compute with


def test_a_gpu_that_isnt_there_is_named():
    with pytest.raises(InputError, match="GPU 77 can't be used"):
        use_gpu(77)


@pytest.mark.parametrize("given", ["", "2"])
def test_a_command_multiplies_with_one_thread_unless_told_otherwise(given):
    told = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    told |= {"OPENBLAS_NUM_THREADS": given} if given else {}
    # numpy reads it when it is loaded: whatever is imported first, it must be set before that.
    code = "import sys, os, scripts; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    found = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", given or "1"]
