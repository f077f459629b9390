"""The commands, a module for each: `python -m scripts.merge`, or `labelwise merge` where labelwise is installed."""

import shutil
from pathlib import Path

from labelwise.base.environment import configure
from labelwise.base.refusals import install_hook, open_streams

open_streams()
install_hook()
configure()
# Other processes, such as a notebook that loads a pipeline, leave bytecode in the folders that stages depend on.
for package in ("labelwise/*", "spacy_per_label"):
    for folder in Path(__file__).parents[1].glob(f"{package}/**/__pycache__"):
        shutil.rmtree(folder, ignore_errors=True)
