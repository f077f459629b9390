"""The pipeline that is trained: its config, fitted to a corpus, and components taken from another pipeline."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import get_model_meta, get_package_path, is_package, load_config
from thinc.api import Config
from thinc.config import ConfigValidationError

import labelwise.train.registry  # noqa: F401  what the configs name
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.errors import InputError
from labelwise.train.recipe import Recipe, Recognizer, default_config
from spacy_per_label import PerLabelRecognizer

TRANSFORMER = "spacy-per-label.Transformer.v1"
STARTS = "Remedy: for configs/cpu.cfg, name a pipeline with tok2vec; for configs/gpu.cfg, one that it has trained"
# The section [labelwise], which the saved pipeline has, too: what is rarely set, and spaCy has no place for.
SECTION: dict[str, Any] = {
    "portable": False,  # on the CPU, compute what every x86-64-v3 processor does; see `common.portable`
    "sub_batch": 0,  # words that the device is given at a time, whatever the batch; 0 for the whole batch
}


def read_settings(recipe: Recipe) -> Config:
    """Read a recipe's config, fit it to the corpus, choose the recognizer, and take components from another pipeline.

    RAISES (InputError): the config isn't valid, or needs a package that isn't installed; nothing can be taken.
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
    set_transformer(settings, recipe)
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
    for key, value in section.items():
        if key not in SECTION:
            raise InputError(f"{config}: [labelwise] has no {key!r}; give {', '.join(SECTION)}")
        if type(value) is not type(SECTION[key]) or value < 0:
            kind = "false or true" if SECTION[key] is False else "a number of words, or 0"
            raise InputError(f"{config}: [labelwise] {key} = {json.dumps(value)}: give {kind}")
    settings["labelwise"] = SECTION | section
    return settings


def set_transformer(settings: Config, recipe: Recipe) -> None:
    """Give a config's transformer, which both recognizers have a block for, the name and the precision of a recipe.

    fp16 is spacy-transformers' mixed precision, with a gradient scaler, bf16 the same without it; see `run.computing`.
    RAISES (InputError): spacy-transformers isn't installed.
    """
    for model in transformers_of(settings):
        if find_spec("spacy_transformers") is None:
            raise InputError(f"{recipe.config} needs spacy-transformers; use the environment of `make gpu`")
        if recipe.transformer_name:
            model["name"] = recipe.transformer_name
        if recipe.precision or recipe.gpu_id < 0:
            precision = recipe.precision if recipe.gpu_id >= 0 else "fp32"
            model["mixed_precision"] = precision != "fp32"
            model.setdefault("grad_scaler_config", {})["enabled"] = precision == "fp16"


def transformers_of(settings: Config) -> list[dict[str, Any]]:
    """List the blocks of a config that are transformers."""
    blocks = [component.get("model", {}).get("tok2vec", {}) for component in settings["components"].values()]
    return [block for block in blocks if block.get("@architectures") == TRANSFORMER]


def choose_recognizer(settings: Config, corpus: Path, recognizer: Recognizer) -> None:
    """Make the component `ner` of a config what it is to be, in place.

    RAISES (InputError): the config has no block for it, or it is spaCy's, and can't learn from the texts as they are:
        nothing tells it what isn't an entity, so that it would see entities everywhere.
    """
    per_label = settings["components"].pop("per_label", None)
    by_label = read_manifest(corpus).settings["coverage"] == "by-label"
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
    if read_manifest(corpus).settings["coverage"] == "outside":
        settings["corpora"]["train"]["coverage"] = "outside"


def is_partial(split: Path) -> bool:
    """Tell whether some text of a split isn't complete for all labels; reads until it finds one."""
    return any(doc.annotation.uncovered for file in find_partitions(split) for doc in read_stored_docs(file))


def source_components(settings: Config, init_from: str, corpus: Path) -> None:
    """Take tok2vec and ner from a pipeline, those of them that both have; in place.

    Its ner is taken only if it is of the kind that the config asks for, and only with what it listens to. Of spaCy's,
    the corpus must have all labels, as it would keep predicting the others.

    RAISES (InputError): there is no such pipeline, or it has none of the components.
    """
    try:
        source = spacy.load(init_from)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"init_from {init_from!r}: {error}. {STARTS}") from error
    ner = settings["components"]["ner"]
    names = [name for name in ("tok2vec", "ner") if name in source.pipe_names and name in settings["nlp"]["pipeline"]]
    if "ner" in names:
        own: Any = source.get_pipe("ner")
        same = source.get_pipe_meta("ner").factory == ner["factory"]
        known = isinstance(own, PerLabelRecognizer) or {*own.labels} <= {*read_manifest(corpus).labels}
        embedding = {"tok2vec", "transformer"}
        alike = embedding & {*source.pipe_names} == embedding & {*settings["nlp"]["pipeline"]}
        if not (same and known and alike):
            names.remove("ner")
    if not names:
        raise InputError(
            f"init_from {init_from!r}: it has {source.pipe_names}, of which none can be taken into a pipeline of "
            f"{settings['nlp']['pipeline']}; its ner only with what it listens to, and spaCy's only if the corpus has "
            f"all its labels. {STARTS}"
        )
    listener = ner.get("model", {}).get("tok2vec", {})
    if "width" in listener and "tok2vec" in names and "ner" not in names:
        listener["width"] = source.get_pipe("tok2vec").model.get_dim("nO")  # type: ignore[attr-defined]
    for name in names:
        settings["components"][name] = {"source": init_from}
    if "ner" in names:
        settings["initialize"]["components"].pop("ner", None)


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


def make_pipeline(recipe: Recipe, settings: Config) -> Language:
    """Make and initialize a pipeline that has the corpus's labels, and isn't calibrated yet.

    settings (Config): what `read_settings` has read.
    RAISES (InputError): the config isn't valid.
    """
    try:
        nlp = init_nlp(settings, use_gpu=recipe.gpu_id)
    except ConfigValidationError as error:
        raise InputError(f"{recipe.config}: {error}") from error
    ner: Any = nlp.get_pipe("ner")
    labels = json.loads((recipe.corpus / "labels" / "per_label.json").read_text(encoding="utf8"))
    if isinstance(ner, PerLabelRecognizer):
        ner.uncalibrate()
        ner.keep_labels(labels)
    for label in labels:
        ner.add_label(label)  # if it lacks it
    return nlp
