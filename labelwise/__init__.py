"""One named-entity model from annotations made label by label: a folder for each stage, which says what it imports.

Data goes through sources, merge, corpus, train, evaluate; then compare and report.
"""

import os
import sys

# Stages depend on folders of this package. Weasel's checksum of a folder covers `__pycache__`: if a command wrote
# bytecode there, each stage that shares the folder would run again.
sys.dont_write_bytecode = True

# Products of matrices by one thread (numpy reads this when it is loaded): their rounding, and so a trained pipeline,
# would depend on the number of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Hugging Face's packages tell what they are used for, unless they are told not to.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
