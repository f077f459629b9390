"""Train, and be killed: `python -m tests.train.resume_child JSON KILL_AT`.

JSON: the arguments of `train`. KILL_AT: the update that isn't made any more, from 1, counted in this process.
"""

import json
import os
import signal
import sys
from pathlib import Path

from spacy.language import Language

from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline

LEFT = {"updates": int(sys.argv[2])}
UPDATE = Language.update


def update(*given, **options):
    """Count down, and die."""
    LEFT["updates"] -= 1
    if not LEFT["updates"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return UPDATE(*given, **options)


Language.update = update
given = json.loads(sys.argv[1])
recipe = Recipe(Path(given["config"]), Path(given["corpus"]), overrides=given["overrides"], resume=True)
train_pipeline(recipe, Path("model"), Path("curve.tsv"))
