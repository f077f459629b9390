"""The pipeline that is trained: its config, fitted to a corpus, and components taken from another pipeline."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config
from thinc.config import ConfigValidationError

import labelwise.train.registry  # noqa: F401  what the configs name
from labelwise.common.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.recognizer.per_label import PerLabelRecognizer
from labelwise.train.recipe import Recipe, Recognizer, default_config
from labelwise.train.section import check_section

PER_LABEL = "labelwise_per_label"
SOURCED = ("tok2vec", "transformer", "ner")
STARTS = "Remedy: for configs/cpu.cfg, name a pipeline with tok2vec; for configs/gpu.cfg, one with a transformer"


def read_settings(recipe: Recipe) -> Config:
    """Read a recipe's config, fit it to the corpus, choose the recognizer, and take components from another pipeline.

    RAISES (InputError): the config isn't valid, or needs a package that isn't installed; nothing can be taken, or
        frozen.
    """
    settings = read_config(recipe)
    choose_recognizer(settings, recipe.corpus, recipe.recognizer)
    if recipe.init_from:
        source_components(settings, recipe.init_from, recipe.corpus)
    return settings


def read_config(recipe: Recipe) -> Config:
    """Read a recipe's config, and fit it to the corpus.

    RAISES (InputError): the config isn't valid, has another kind of tokenizer than the corpus, needs a package that
        isn't installed, or names pretrained weights that spaCy would leave out in silence.
    """
    config = recipe.config
    lang, rules = read_tokenizer(recipe.corpus / "tokenizer.json")
    overrides = {**recipe.all_overrides(), "paths.corpus": str(recipe.corpus), "nlp.lang": lang}
    settings = load_settings(config, overrides)
    own = settings["nlp"].setdefault("tokenizer", rules.block or {})
    if rules.block and own.get("@tokenizers") != rules.block["@tokenizers"]:
        raise InputError(
            f"{config}: [nlp.tokenizer] is {own}, and {recipe.corpus} was merged with {rules.block}; delete that block "
            "of the config, and it is the corpus's"
        )
    if "transformer" in settings["nlp"]["pipeline"] and find_spec("spacy_transformers") is None:
        raise InputError(f"{config} needs spacy-transformers; use the environment of `make gpu`")
    interpolated = settings.interpolate()
    if interpolated["initialize"].get("init_tok2vec") and not interpolated.get("pretraining"):
        raise InputError(
            f"{config}: init_tok2vec is set, but [pretraining] is empty, without which spaCy doesn't load it; give it "
            "the block that `spacy pretrain` had"
        )
    return settings


def load_settings(config: Path, overrides: Mapping[str, Any]) -> Config:
    """Read a config, with its section [labelwise] complete, which it needn't have.

    RAISES (InputError): there is no such file, or it isn't valid.
    """
    if not config.is_file():
        raise InputError(f"{config}: there is no such file; give a spaCy config, such as {default_config('cpu')}")
    own = {name: value for name, value in overrides.items() if name.startswith("labelwise.")}
    try:
        settings = load_config(config, {name: overrides[name] for name in overrides if name not in own}, False)
    except (ConfigValidationError, ValueError) as error:
        raise InputError(f"{config}: {error}") from error
    section = settings.get("labelwise", {}) | {name.removeprefix("labelwise."): value for name, value in own.items()}
    settings["labelwise"] = check_section(section, config)
    return settings


def choose_recognizer(settings: Config, corpus: Path, recognizer: Recognizer) -> None:
    """Make the component `ner` of a config what it is to be, in place.

    RAISES (InputError): the config has no block for it, or it is spaCy's, and can't learn from the texts as they are:
        nothing tells it what isn't an entity, so that it would see entities everywhere.
    """
    per_label = settings["components"].pop("per_label", None)
    by_label = read_manifest(corpus)["settings"]["coverage"] == "by-label"
    if recognizer == "ner":
        if by_label and settings["corpora"]["train"]["coverage"] == "by-label" and is_partial(corpus / "train"):
            raise InputError(
                "recognizer ner: texts in train aren't complete for all labels, and spaCy's ner can't learn from them; "
                "take recognizer per-label, which does, or set coverage to drop or outside"
            )
        return
    if per_label is None:
        raise InputError("recognizer per-label: the config has no [components.per_label]; take it from configs/cpu.cfg")
    settings["components"]["ner"] = per_label
    settings["initialize"]["components"]["ner"]["labels"]["path"] = "${paths.corpus}/labels/per_label.json"
    # What unmarked tokens mean where a label isn't covered: with this policy, the merge has taken them for no entities.
    if read_manifest(corpus)["settings"]["coverage"] == "outside":
        settings["corpora"]["train"]["coverage"] = "outside"


def is_partial(split: Path) -> bool:
    """Tell whether some text of a split isn't complete for all labels; reads until it finds one."""
    return any(doc.annotation.uncovered for file in find_partitions(split) for doc in read_stored_docs(file))


def load_source(init_from: str) -> Language:
    """Load the pipeline that a training starts from.

    RAISES (InputError): there is none.
    """
    try:
        return spacy.load(init_from)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"init_from {init_from!r}: {error}. {STARTS}") from error


def source_components(settings: Config, init_from: str, corpus: Path) -> None:
    """Take tok2vec, transformer and ner from a pipeline, those of them that both have; in place.

    Its ner is taken only if it is of the kind that the config asks for, and the corpus has all its labels, as it would
    keep predicting the others, and only with what it listens to.

    RAISES (InputError): what `load_source` raises, or the pipeline has none of the components.
    """
    source = load_source(init_from)
    labels = set(read_manifest(corpus)["labels"])
    names = [name for name in SOURCED if name in source.pipe_names and name in settings["nlp"]["pipeline"]]
    embeddings = {"tok2vec", "transformer"} & set(source.pipe_names)
    if "ner" in names:
        known = set(source.get_pipe("ner").labels)  # type: ignore[attr-defined]
        same = source.get_pipe_meta("ner").factory == settings["components"]["ner"]["factory"]
        if not (same and known <= labels and embeddings <= set(names)):
            names.remove("ner")
    if not names:
        raise InputError(
            f"init_from {init_from!r}: it has {source.pipe_names}, of which none can be taken into a pipeline of "
            f"{settings['nlp']['pipeline']}; its ner only with what it listens to, and if the corpus has all its "
            f"labels. {STARTS}"
        )
    listener = settings["components"]["ner"].get("model", {}).get("tok2vec", {})
    if "width" in listener and "tok2vec" in names and "ner" not in names:
        listener["width"] = source.get_pipe("tok2vec").model.get_dim("nO")  # type: ignore[attr-defined]
    model = transformer_model(settings)
    for name in names:
        settings["components"][name] = {"source": init_from}
    if "transformer" in names:  # spaCy doesn't look at it, and it is trained in its precision
        settings["components"]["transformer"]["model"] = model
    if "ner" in names:
        settings["initialize"]["components"].pop("ner", None)


def make_pipeline(recipe: Recipe, settings: Config) -> Language:
    """Make and initialize a pipeline.

    settings (Config): what `read_settings` has read.
    RAISES (InputError): the config isn't valid.
    """
    try:
        nlp = init_nlp(settings, use_gpu=recipe.gpu_id)
    except ConfigValidationError as error:
        raise InputError(f"{recipe.config}: {error}") from error
    ner: Any = nlp.get_pipe("ner")
    if isinstance(ner, PerLabelRecognizer):
        ner.uncalibrate()
    for label in json.loads((recipe.corpus / "labels" / "per_label.json").read_text(encoding="utf8")):
        ner.add_label(label)  # if it lacks it
    model = transformer_model(settings)
    if "precision" in model and "source" in settings["components"]["transformer"]:
        from labelwise.recognizer.precision import set_precision

        sourced: Any = nlp.get_pipe("transformer")
        set_precision(sourced.model, model["precision"], model["grad_scaler_config"])
    return nlp


def transformer_model(settings: Config) -> dict[str, Any]:
    """Return the block of the transformer's model, also where it is taken from another pipeline; empty for none."""
    return settings["components"].get("transformer", {}).get("model", {})
