"""Run `python -m MODULE ARGUMENT...`, and dump its threads' tracebacks shortly before the stage's limit.

python -m benchmarks.gpu_kit.watched MODULE ARGUMENT...
"""

import runpy
import sys

from benchmarks.gpu_kit.common import watch

if __name__ == "__main__":
    watch()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
