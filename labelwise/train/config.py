"""The trained config, fitted to a corpus.

`FITTED` lists the keys that training may change, and no others.
"""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import get_lang_class
from thinc.api import Config, Model

import labelwise.train.registry  # noqa: F401  what the configs name
from labelwise.base.environment import GPU_ENVIRONMENT
from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.train.config_checks import check_supported
from labelwise.train.config_file import PATHS, ConfigFile, flatten, read_config_file
from labelwise.train.dev_scores import SCORES
from labelwise.train.goals import read_goals
from labelwise.train.steps import count_train, fit_steps, read_block
from labelwise.train.training_config import TrainingConfig
from spacy_per_label.hub_files import SettingError
from spacy_per_label.operating_point import Goal

# A config has a tokenizer, or spaCy's `debug` commands refuse it; this one stands for that of the corpus.
DEFAULT_TOKENIZER = {"@tokenizers": "spacy.Tokenizer.v1"}
NEEDS = {
    "spacy-per-label.Transformer.v2": ("spacy_transformers", f"use {GPU_ENVIRONMENT}"),
    "spacy-transformers.TransformerModel.v3": ("spacy_transformers", f"use {GPU_ENVIRONMENT}"),
    "spacy-per-label.SmallTransformer.v1": ("tokenizers", "pip install tokenizers"),
}


class FittedConfig(NamedTuple):
    """A config, fitted to a corpus.

    file (ConfigFile): values as written.
    settings (Config): values as trained, without goals and interpolation; they differ in keys of FITTED.
    goals (dict): goals of the corpus's labels; see `goals`.
    """

    config: TrainingConfig
    file: ConfigFile
    settings: Config
    goals: dict[str, Goal]

    def changes(self) -> dict[str, tuple[Any, Any]]:
        """List training's changes, by dotted name, without paths: written and trained values."""
        written, trained = flatten(self.file.raw), flatten(self.settings)
        return {
            key: (written.get(key), value)
            for key, value in trained.items()
            if written.get(key) != value and key not in PATHS
        }


def fit_config(config: TrainingConfig) -> FittedConfig:
    """Read a spaCy config, and fit it to the corpus.

    RAISES (InputError): if it isn't a valid config, has an unused key, a seed, another kind of tokenizer than the
        corpus or an impossible goal, or needs a missing package.
    """
    file = read_config_file(config.config)
    if file.raw.interpolate().get("system", {}).get("seed"):
        raise file.error("system.seed", "the seed is `seed` in project.yml, or --seed; write seed = 0")
    chosen = {"system.seed": config.seed, "corpora.train.limit": config.limit}
    settings = file.override({key: value for key, value in chosen.items() if value} | {**config.overrides})
    check_supported(file, settings.interpolate())
    for architecture, (package, remedy) in NEEDS.items():
        if architecture in str(settings["components"]) and find_spec(package) is None:
            raise InputError(f"{file.path} needs the package {package}: {remedy}")
    lang, rules = read_tokenizer(config.corpus / "tokenizer.json")
    settings.setdefault("paths", {})["corpus"], settings["nlp"]["lang"] = str(config.corpus), lang
    tokenizer = settings["nlp"].get("tokenizer", DEFAULT_TOKENIZER)
    if tokenizer == DEFAULT_TOKENIZER:
        settings["nlp"]["tokenizer"] = rules.block or tokenizer
    elif rules.block and tokenizer.get("@tokenizers") != rules.block["@tokenizers"]:
        raise file.error(
            "nlp.tokenizer",
            f"{config.corpus} was merged with {rules.block}; take that of the corpus: delete the block, or write "
            "tokenizer = " + json.dumps(DEFAULT_TOKENIZER),
        )
    # Of a component that needs no training, such as a sentencizer, spaCy would add scores that dev has no gold for.
    language, weights = get_lang_class(lang), settings["training"].setdefault("score_weights", {})
    for block in settings["components"].values():
        if language.has_factory(factory := block.get("factory", "")):
            scores = language.get_factory_meta(factory).default_score_weights or {}
            weights |= {name: None for name in scores if name not in (*SCORES, *weights)}
    block = read_block(settings, file)
    fit_steps(config, file, block, settings)
    goals = read_goals(file, block, settings, config.corpus)
    if config.gpu_id < 0 and "grad_scaler_config" not in str(config.overrides.keys()):  # the CPU computes in fp32
        models = [block.get("model", {}) for block in settings["components"].values()]
        for model in (*models, *(one.get("tok2vec", {}) for one in models)):
            if "grad_scaler_config" in model:
                model["mixed_precision"] = model["grad_scaler_config"]["enabled"] = False
    if not is_per_label(settings):
        check_complete(config.corpus)
    return FittedConfig(config, file, settings, goals)


def share_of(config: TrainingConfig, texts: int) -> TrainingConfig:
    """Describe a training on fewer texts, with equal batch size and dropout.

    RAISES (InputError): if no text is left.
    """
    settings = fit_config(config).settings
    if "raw" in read_manifest(config.corpus).settings:
        problem = "its teacher learned from all of train; measure the teacher's curve"
        raise InputError(f"{config.corpus}: a student's corpus: {problem}")
    if texts < 1:
        count = count_train(config.corpus, settings)
        raise InputError(f"{config.corpus}: train has {count} texts, so a share of them would be empty")
    training = settings["training"]
    unchanged = {
        "training.batcher.size": training["batcher"].get("size"),
        "training.dropout": training.get("dropout", 0.1),
    }
    return replace(config, limit=texts, overrides=unchanged | {**config.overrides})


def is_per_label(settings: Config) -> bool:
    """Return whether a config's recognizer is per-label."""
    return bool(settings["components"].get("ner", {}).get("factory") == "per_label")


def check_complete(corpus: Path) -> None:
    """Check that spaCy's ner can learn from a corpus.

    RAISES (InputError): if some texts aren't complete for all labels, so ner would see entities everywhere.
    """
    if read_manifest(corpus).settings["coverage"] != "by-label":
        return
    docs = (doc for file in find_partitions(corpus / "train") for doc in read_stored_docs(file))
    if any(doc.annotation.uncovered for doc in docs):
        raise InputError(
            "spaCy's ner can't learn from texts that aren't complete for all labels, and train has some; take a config "
            'with factory = "per_label", such as configs/cpu.cfg, or set coverage to drop or outside in project.yml'
        )


def check_listeners(nlp: Language) -> None:
    """Check that each listening layer has an earlier component whose vectors are as wide.

    RAISES (SettingError): if a layer listens to none, or expects another width.
    """
    earlier: list[Any] = []
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        for layer in model.walk() if isinstance(model, Model) else ():
            if not (upstream := getattr(layer, "upstream_name", "")):
                continue
            source = next((one for one in earlier if layer in getattr(one, "listeners", ())), None)
            if source is None:
                problem = f"{name} listens to no earlier component; correct [nlp] pipeline, or this key"
                raise SettingError("upstream", upstream, problem)
            width, made = (one.maybe_get_dim("nO") for one in (layer, source.model))
            if None not in (width, made) and width != made:
                raise SettingError("width", width, f"the vectors of {source.name} have {made} numbers; write {made}")
        earlier.append(pipe)


def make_pipeline(fitted: FittedConfig) -> Language:
    """Make and initialize a pipeline with the corpus's labels.

    RAISES (InputError): if the registry, a component or a model refuses the config.
    """
    config, file, settings, _ = fitted
    try:
        nlp = init_nlp(settings, use_gpu=config.gpu_id)
        check_listeners(nlp)
    except InputError:
        raise
    except (ValueError, OSError, MemoryError) as error:
        raise file.explain(error) from error
    for key in settings.get("initialize", {}).get("tokenizer", {}):
        if not hasattr(nlp.tokenizer, "initialize"):
            problem = f"{type(nlp.tokenizer).__name__} takes no arguments; delete it"
            raise file.error(f"initialize.tokenizer.{key}", problem)
    ner: Any = nlp.get_pipe("ner")
    labels = json.loads((config.corpus / "labels" / "per_label.json").read_text(encoding="utf8"))
    if is_per_label(settings):
        ner.cfg |= {"taught": list(ner.labels), "left_out": [label for label in labels if label not in ner.labels]}
    else:
        for label in labels:
            ner.add_label(label)  # one that no entity has
    return nlp
