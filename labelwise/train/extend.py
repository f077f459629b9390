"""Add labels to a pipeline: heads for those of the corpus that it lacks are trained, and nothing else changes."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelwise.common.errors import InputError
from labelwise.common.files import check_replaceable, staged
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, pinned, read_manifest
from labelwise.train.pipeline import load_source
from labelwise.train.recipe import Recipe
from labelwise.train.run import Trained, train_pipeline

RATE = 0.005  # of learning: heads that learn alone, from nothing, can take larger steps than a whole pipeline


class Extended(NamedTuple):
    """A pipeline that was extended.

    base (Path): a copy of it as it was before.
    added (list[str]): the labels that it lacked.
    trained (Trained | None): what the training took; None if there was nothing to add.
    """

    base: Path
    added: list[str]
    trained: Trained | None


def extend(recipe: Recipe, out: Path, tell: Callable[[str], Any] = lambda message: None) -> Extended:
    """Add the corpus's labels that a pipeline lacks; with none, the output is the pipeline as it is.

    recipe (Recipe): `init_from` names the pipeline; if it is empty, that is `model-best` beside `out`.
    out (Path): the folder for the pipeline. Beside it are its curve, and `base`, a copy of the pipeline as it was.
    tell (Callable): is told of new labels without an entity in dev, and what `train_pipeline` tells.
    RAISES (InputError): there is no pipeline, or what `train_pipeline` raises.
    """
    first = out.with_name("model-best")
    if not recipe.init_from and not (first / "meta.json").is_file():
        raise InputError(f"{first}: there is no pipeline to add a label to; weasel run all, or name one in init_from")
    with pinned(recipe.corpus):
        source = load_source(recipe.init_from or str(first))
        added = sorted(set(read_manifest(recipe.corpus)["labels"]).difference(source.pipe_labels.get("ner", ())))
        base = _copy_pipeline(source.path, out.with_name("base"))
        if not added:
            _copy_pipeline(base, out)
            return Extended(base, added, None)
        if unseen := [label for label in added if label not in find_entity_labels(recipe.corpus / "dev")]:
            decision = "the last pipeline is kept" if unseen == added else "the other new labels decide which is best"
            tell(f"dev has no entity of {', '.join(unseen)}: {decision}. Remedy: annotate some of its texts")
        overrides = {"training.optimizer.learn_rate": RATE, **recipe.overrides, "labelwise.freeze": True}
        frozen = replace(recipe, init_from=str(base), overrides=overrides)
        return Extended(base, added, train_pipeline(frozen, out, out.with_name(f"{out.name}.tsv"), tell=tell))


def _copy_pipeline(source: Path, target: Path) -> Path:
    check_replaceable(target, ("meta.json", "config.cfg"), "pipeline")
    with staged(target, folder=True) as folder:
        shutil.copytree(source, folder)
    return target


def find_entity_labels(split: Path) -> set[str]:
    """Find the labels that the entities of a split have."""
    docs = (doc for file in find_partitions(split) for doc in read_stored_docs(file))
    return {doc.strings[label] for doc in docs for label in np.unique(doc.labels).tolist()}
