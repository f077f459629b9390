"""A committee: one pipeline, whose probabilities are the mean of those of several that differ in their seed only."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Model

from labelwise.common.errors import InputError
from labelwise.common.files import beside, check_replaceable, remove, staged_together
from labelwise.corpus.manifest import pinned
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.seen_texts import SEEN_TEXTS
from labelwise.train.calibration import Fitted
from labelwise.train.pipeline import PER_LABEL, read_settings
from labelwise.train.recipe import Recipe
from labelwise.train.run import fit_saved
from labelwise.train.side_by_side import train_side_by_side
from labelwise.train.tidy import tidy_pipeline


def train_committee(
    recipe: Recipe,
    out: Path,
    curve: Path,
    *,
    members: int,
    resources: Path | None = None,
    tell: Callable[[str], Any] = lambda message: None,
) -> Fitted | None:
    """Train the members side by side, and make one pipeline of them, calibrated on dev as one.

    recipe (Recipe): of each, but for its seed: that of number n is `members` times the recipe's, plus n. `workers` of
        them are trained at a time, each by one process.
    out (Path): the folder for the pipeline.
    curve, resources (Path): as `train_pipeline` writes them, of the first member.
    tell (Callable): is told what is going on.
    RAISES (InputError): a committee has fewer than two members, or they haven't heads for each label on a tok2vec, or
        what `train_pipeline` raises.
    RETURNS (Fitted | None): what was fitted on dev.
    """
    check_replaceable(out, ("meta.json", "config.cfg"), "pipeline")
    if members < 2:
        raise InputError(f"--committee {members}: give at least 2 members, or 1 for a pipeline that is none")
    settings = read_settings(recipe)
    if recipe.recognizer != "per-label" or "tok2vec" not in settings["nlp"]["pipeline"]:
        raise InputError(
            f"committee {members}: only what has a head for each label on a tok2vec can be averaged; take "
            "committee: 1, or recognizer: per-label and configs/cpu.cfg"
        )
    first = members * settings["system"]["seed"]
    recipes = [replace(recipe, seed=first + number, workers=1) for number in range(members)]
    folder = beside(out.absolute(), "members")
    with (
        pinned(recipe.corpus),
        staged_together(out, curve, resources, folders=[out]) as (made, made_curve, made_resources),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        tell(f"Training {members} pipelines; the table is that of the first")
        models = list(train_side_by_side(recipes, folder, recipe.workers))
        nlp = join(models)
        nlp.to_disk(made)
        fitted = fit_saved(nlp, made)
        tidy_pipeline(made, curve, nlp, "")
        shutil.copyfile(models[0] / SEEN_TEXTS, made / SEEN_TEXTS)
        shutil.copyfile(models[0].with_suffix(".tsv"), made_curve)
        if made_resources:
            shutil.copyfile(models[0].with_suffix(".resources.tsv"), made_resources)
    remove(folder)
    return fitted


def join(models: Sequence[Path]) -> Language:
    """Make one pipeline of several with equal labels, neither calibrated nor scored yet."""
    taken = [take_recognizer(model) for model in models]
    nlp = load_pipeline(models[0])
    settings: Any = nlp.get_pipe("ner").cfg  # type: ignore[attr-defined]
    nlp.remove_pipe("ner")
    nlp.remove_pipe("tok2vec")
    blocks = {str(number): block for number, (block, _) in enumerate(taken)}
    committee = {"@architectures": "labelwise.Committee.v1", "*": blocks}
    ner: Any = nlp.add_pipe(PER_LABEL, name="ner", config={"model": committee})
    ner.cfg = settings
    ner.uncalibrate()
    nlp.meta["performance"] = {}
    for member, (_, model) in zip(ner.model.layers, taken, strict=True):
        member.from_bytes(model.to_bytes())
    return nlp


def take_recognizer(folder: Path) -> tuple[dict[str, Any], Model]:
    """Take the recognizer's model from a pipeline, with its tok2vec in place of what listens to that.

    RETURNS (tuple): its block in a config, and the model.
    """
    nlp = load_pipeline(folder)
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
    component: Any = nlp.get_pipe("ner")
    return nlp.config.interpolate()["components"]["ner"]["model"], component.model
