"""The pipelines that a training begins with: those that its config takes components from."""

from pathlib import Path

from spacy.util import get_model_meta, get_package_path, is_package
from thinc.api import Config


def source_folders(settings: Config) -> dict[str, Path]:
    """Find the folder of each pipeline that a config takes components from, by the name that it has there."""
    names = sorted({block["source"] for block in settings["components"].values() if "source" in block})
    return {name: _folder(name) for name in names}


def _folder(name: str) -> Path:
    """Find the folder of a pipeline, which is in a package's if it is installed (spacy/util.py, load_model)."""
    if not is_package(name):
        return Path(name)
    package = get_package_path(name)
    meta = get_model_meta(package)
    return package / f"{meta['lang']}_{meta['name']}-{meta['version']}"
