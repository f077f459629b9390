"""Train, and be killed: `python -m tests.train.resume_child JSON KILL_AT`.

JSON: the arguments of `train`. KILL_AT: the update that isn't made any more, from 1, counted in this process.
"""

import json
import os
import signal
import sys
from pathlib import Path

from labelwise.train.out_of_memory import Updates
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline

KILLED = {"left": int(sys.argv[2])}
UPDATE = Updates.update


def update(*given, **options):
    """Count down, and die."""
    KILLED["left"] -= 1
    if not KILLED["left"]:
        os.kill(os.getpid(), signal.SIGKILL)
    UPDATE(*given, **options)


Updates.update = update
given = json.loads(sys.argv[1])
train_pipeline(
    Recipe(Path(given["config"]), Path(given["corpus"]), overrides=given["overrides"], resume=True),
    Path("model"),
    Path("curve.tsv"),
)
