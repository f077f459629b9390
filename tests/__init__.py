import os
import sys
from itertools import pairwise
from types import SimpleNamespace

from _pytest.assertion import rewrite

from labelwise.base.environment import configure
from tests.subprocesses.sitecustomize import hide_torch

configure()
# pytest keeps what it has made of the tests, which takes it seconds; of labelwise, nothing writes bytecode.
rewrite.sys = SimpleNamespace(**vars(sys) | {"dont_write_bytecode": False})
# With `-n`, pytest's first process runs no test: workers do, which begin once it has loaded conftest.py.
if dict(pairwise(sys.argv)).get("-n", "0") != "0" and "PYTEST_XDIST_WORKER" not in os.environ:
    hide_torch()
