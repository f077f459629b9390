"""The pipeline that is trained: its config, fitted to a corpus.

A config is what is trained. `FITTED` lists the keys that training may change, and no others.
"""

import json
from collections.abc import Mapping
from configparser import Error as ConfigParserError
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from spacy.language import Language
from spacy.schemas import ConfigSchemaNlp, ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config
from thinc.config import ConfigValidationError

import labelwise.train.registry  # noqa: F401  what the configs name
from labelwise.base.conflicts import check_edited
from labelwise.base.environment import GPU_ENVIRONMENT
from labelwise.base.errors import InputError
from labelwise.base.removed import check_removed
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.train.training_config import TrainingConfig, default_config
from spacy_per_label.hub_files import NoModelError

# A config has a tokenizer, or spaCy's `debug` commands refuse it; this one stands for that of the corpus.
DEFAULT_TOKENIZER = {"@tokenizers": "spacy.Tokenizer.v1"}
MIN_LARGE_TRAIN = 200  # texts of train from which batches are large
SCORER = {"@scorers": "spacy.ner_scorer.v1"}  # the default of both recognizers
NEEDS = {
    "spacy-per-label.Transformer.v1": ("spacy_transformers", f"use {GPU_ENVIRONMENT}"),
    "spacy-transformers.TransformerModel.v3": ("spacy_transformers", f"use {GPU_ENVIRONMENT}"),
    "spacy-per-label.SmallTransformer.v1": ("tokenizers", "pip install tokenizers"),
}
UNSUPPORTED = ("frozen_components", "annotating_components", "before_to_disk", "before_update")
# What a batcher counts: words of train or texts. Of another one, nobody knows how many batches an epoch has.
BATCHED_BY = {
    "spacy.batch_by_words.v1": "words",
    "spacy.batch_by_padded.v1": "words",
    "spacy.batch_by_sequence.v1": "texts",
}
PATHS = frozenset({"paths.corpus", "paths.curve", "paths.resources"})
# The keys of a config that training may change.
FITTED = PATHS | {
    "nlp.lang",  # the merge's
    "nlp.tokenizer",  # where the merge's rules have a block
    "system.seed",
    "training.max_steps",
    "training.eval_frequency",
    "training.optimizer.learn_rate.total_steps",
    "training.batcher.size",  # the rule for few texts
    "corpora.train.limit",  # train-curve
    "corpora.train.leave_out",  # check-folds
    "corpora.train.folds",
    "components.ner.model.tok2vec.mixed_precision",  # false on the CPU
    "components.ner.model.tok2vec.grad_scaler_config.enabled",
    "components.transformer.model.mixed_precision",
    "components.transformer.model.grad_scaler_config.enabled",
}


class LabelwiseBlock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The block `[labelwise]` of a config: what spaCy has no key for.

    epochs (int): training takes so many epochs, but at least `least_steps`, and at most training.max_steps; 0 takes
        training.max_steps.
    least_steps (int): see `epochs`.
    small_batch (int): batcher.size where train has fewer than MIN_LARGE_TRAIN texts; 0 for the batcher's own.
    half_weights (bool): save a transformer's weights in fp16.
    """

    epochs: int = 0
    least_steps: int = 0
    small_batch: int = 0
    half_weights: bool = False


def read_block(settings: Mapping[str, Any], config: Path) -> LabelwiseBlock:
    """Read the block `[labelwise]` of a config.

    RAISES (InputError): it has another key, or a value of another type.
    """
    try:
        return msgspec.convert(settings.get("labelwise", {}), LabelwiseBlock)
    except msgspec.ValidationError as error:
        names = ", ".join(LabelwiseBlock.__struct_fields__)
        raise InputError(f"{config}: [labelwise] {error}; its keys are {names}") from error


def read_settings(wanted: TrainingConfig) -> Config:
    """Read a spaCy config, and fit it to the corpus; see FITTED.

    RAISES (InputError): there is no such file, it isn't valid, has another kind of tokenizer than the corpus, or what
        training doesn't do, or needs a package that isn't installed.
    """
    config = wanted.config
    settings = load_written(config, wanted.all_overrides())
    block, training = read_block(settings, config), settings["training"]
    check_supported(settings, config)
    for architecture, (package, remedy) in NEEDS.items():
        if architecture in str(settings["components"]) and find_spec(package) is None:
            raise InputError(f"{config} needs the package {package}: {remedy}")
    lang, rules = read_tokenizer(wanted.corpus / "tokenizer.json")
    settings["paths"]["corpus"], settings["nlp"]["lang"] = str(wanted.corpus), lang
    own = settings["nlp"].get("tokenizer", DEFAULT_TOKENIZER)
    if own == DEFAULT_TOKENIZER:
        settings["nlp"]["tokenizer"] = rules.block or own
    elif rules.block and own.get("@tokenizers") != rules.block["@tokenizers"]:
        raise InputError(
            f"{config}: [nlp] tokenizer is {own}, but {wanted.corpus} was merged with {rules.block}; take that of the "
            "corpus: delete the block, or write tokenizer = " + json.dumps(DEFAULT_TOKENIZER)
        )
    if block.small_batch and is_small(wanted) and "training.batcher.size" not in wanted.overrides:
        training["batcher"]["size"] = block.small_batch
    fit_steps(wanted, block, training)
    if wanted.gpu_id < 0 and "grad_scaler_config" not in str(wanted.overrides.keys()):  # the CPU computes in fp32
        models = [block.get("model", {}) for block in settings["components"].values()]
        for model in (*models, *(one.get("tok2vec", {}) for one in models)):
            if "grad_scaler_config" in model:
                model["mixed_precision"] = model["grad_scaler_config"]["enabled"] = False
    if not is_per_label(settings):
        check_complete(wanted.corpus)
    return settings


def load_written(config: Path, overrides: Mapping[str, Any] = {}) -> Config:
    """Load a config as it is written, with some values replaced.

    RAISES (InputError): there is no such file, it isn't valid, or has a key or a seed that labelwise no longer reads.
    """
    if not config.is_file():
        raise InputError(f"{config}: there is no such file; give a spaCy config, such as {default_config('cpu')}")
    check_edited(config.read_bytes(), f"{config}")
    try:
        written = load_config(config)
        check_removed(config, written)
        settings = load_config(config, dict(overrides))
    except InputError:
        raise
    except (ConfigValidationError, ConfigParserError, ValueError) as error:
        raise InputError(f"{config}: {error}") from error
    if seed := written.get("system", {}).get("seed"):
        raise InputError(
            f"{config}: [system] seed = {seed}: the seed is `seed` in project.yml, or --seed {seed}; write seed = 0"
        )
    return settings


def fit_steps(wanted: TrainingConfig, block: LabelwiseBlock, training: dict[str, Any]) -> None:
    """Set the number of steps, in place, and what follows from it: the last step of the rate, and evaluations.

    It is the one that is asked for, or that of the epochs of [labelwise], or training.max_steps.

    RAISES (InputError): more steps than training.max_steps are asked for; an epoch's can't be counted; dev would be
        evaluated fewer than four times; or the learning rate rises for longer than training lasts.
    """
    config, rate = wanted.config, training["optimizer"].get("learn_rate")
    limit, given = load_config(config)["training"]["max_steps"], "training.max_steps" in wanted.overrides
    falls = isinstance(rate, dict) and rate.get("total_steps") == limit  # until the last step, whichever that is
    if wanted.max_steps > limit > 0 and not given:
        raise InputError(
            f"{config}: {wanted.max_steps:,} steps are asked for, and [training] has max_steps = {limit}; write "
            f"max_steps = {wanted.max_steps}" + (" there, and total_steps likewise" if falls else "")
        )
    steps = training["max_steps"]
    if wanted.max_steps and not given:
        steps = wanted.max_steps
    elif block.epochs and limit and not given:
        steps = max(min(block.least_steps, limit), min(round(block.epochs * batches_of(wanted, training)), limit))
    training["max_steps"] = steps
    if falls:
        rate["total_steps"] = steps
    if isinstance(rate, dict) and 0 < steps <= rate.get("warmup_steps", 0):
        raise InputError(
            f"{config}: the learning rate rises for {rate['warmup_steps']:,} steps, and training ends after "
            f"{steps:,}; give fewer warmup_steps, or a share: labelwise.warmup_linear.v1"
        )
    # Of half of the steps, and of a quarter, it must be known how good they were; see `undertrained.expect_gain`.
    often = max(1, steps // 4)
    if steps and training["eval_frequency"] > often and "training.eval_frequency" not in wanted.overrides:
        if not (given or wanted.max_steps or block.epochs):
            raise InputError(
                f"{config}: [training] eval_frequency = {training['eval_frequency']} evaluates dev fewer than four "
                f"times in max_steps = {steps}; write eval_frequency = {often}, or less"
            )
        training["eval_frequency"] = often


def batches_of(wanted: TrainingConfig, training: Mapping[str, Any]) -> float:
    """Count the batches of an epoch.

    RAISES (InputError): the batcher's aren't of a fixed number of words or texts.
    """
    batcher = training["batcher"]
    name, size, train = batcher.get("@batchers"), batcher.get("size"), read_manifest(wanted.corpus).splits["train"]
    if name not in BATCHED_BY or not isinstance(size, int) or size < 1:
        raise InputError(
            f"{wanted.config}: [labelwise] epochs needs batches of a fixed size, and [training.batcher] has "
            f"{name} of size {size}; write epochs = 0, and training takes max_steps = {training['max_steps']}"
        )
    share = count_train(wanted) / max(1, train.texts)
    return (train.words if BATCHED_BY[name] == "words" else train.texts) * share / size


def changed_keys(wanted: TrainingConfig, settings: Config) -> dict[str, tuple[Any, Any]]:
    """List what training changes of a config, by dotted name, without paths: the value written, and the one trained."""
    written, trained = flatten(load_written(wanted.config)), flatten(settings)
    return {
        key: (written.get(key), value)
        for key, value in trained.items()
        if written.get(key) != value and key not in PATHS
    }


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """List the values of a config by dotted name; a tokenizer's block is one value."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        inside = isinstance(value, Mapping) and name != "nlp.tokenizer"
        found |= flatten(value, f"{name}.") if inside else {name: value}
    return found


def is_per_label(settings: Config) -> bool:
    """Return whether a config's recognizer has a head for each label, and isn't spaCy's own."""
    return bool(settings["components"].get("ner", {}).get("factory") == "per_label")


def check_complete(corpus: Path) -> None:
    """Check that spaCy's ner can learn from a corpus.

    RAISES (InputError): nothing tells it what isn't an entity in some texts, so that it would see entities everywhere.
    """
    if read_manifest(corpus).settings["coverage"] != "by-label":
        return
    docs = (doc for file in find_partitions(corpus / "train") for doc in read_stored_docs(file))
    if any(doc.annotation.uncovered for doc in docs):
        raise InputError(
            "spaCy's ner can't learn from texts that aren't complete for all labels, and train has some; take a config "
            'with factory = "per_label", such as configs/cpu.cfg, or set coverage to drop or outside in project.yml'
        )


def check_supported(settings: Config, config: Path) -> None:
    """Check that a config asks for nothing that only `spacy train` does.

    RAISES (InputError): there is no recognizer; a component comes from another pipeline, whose texts may be those of
        test; it is scored in another way than by entities, where they are known; or a block has a key that nobody
        knows, or asks for what the loop hasn't.
    """
    if "ner" not in settings["components"]:
        raise InputError(f"{config}: the recognizer is the component ner, and there is no [components.ner]")
    for name, block in settings["components"].items():
        for key, default in (("source", None), ("scorer", SCORER)):
            if block.get(key, default) != default:
                raise InputError(f"{config}: [components.{name}] {key} = {block[key]!r} isn't used here; delete it")
    for name, schema in (("training", ConfigSchemaTraining), ("nlp", ConfigSchemaNlp)):
        if unknown := [*settings[name].keys() - schema.__annotations__.keys()]:
            known = ", ".join(sorted(schema.__annotations__))
            raise InputError(f"{config}: [{name}] {min(unknown)}: the block has no such key; its keys are {known}")
    for name in UNSUPPORTED:
        if settings["training"].get(name):
            raise InputError(f"{config}: [training] {name} is for `spacy train` alone; delete it, or train with that")


def is_small(wanted: TrainingConfig) -> bool:
    """Return whether a training has few texts, which takes smaller batches and finds entities too rarely."""
    return count_train(wanted) < MIN_LARGE_TRAIN


def count_train(wanted: TrainingConfig) -> int:
    """Count the texts that a training has."""
    texts = read_manifest(wanted.corpus).splits["train"].texts
    limit = wanted.limit or load_config(wanted.config, dict(wanted.overrides))["corpora"]["train"].get("limit", 0)
    return min(texts, limit or texts)


def share_of(wanted: TrainingConfig, texts: int) -> TrainingConfig:
    """Describe a training on fewer texts, with batches of the same size.

    RAISES (InputError): no text would be left.
    """
    if texts < 1:
        raise InputError(f"{wanted.corpus}: train has {count_train(wanted)} texts, so a share of them would be empty")
    size = load_config(wanted.config)["training"]["batcher"].get("size")
    large = {} if is_small(wanted) else {"training.batcher.size": size}
    return replace(wanted, limit=texts, overrides={**large, **wanted.overrides})


def make_pipeline(wanted: TrainingConfig, settings: Config) -> Language:
    """Make and initialize a pipeline that has the corpus's labels.

    RAISES (InputError): the config isn't valid.
    """
    try:
        nlp = init_nlp(settings, use_gpu=wanted.gpu_id)
    except (ConfigValidationError, NoModelError, OSError) as error:
        raise InputError(f"{wanted.config}: {error}") from error
    ner: Any = nlp.get_pipe("ner")
    labels = json.loads((wanted.corpus / "labels" / "per_label.json").read_text(encoding="utf8"))
    if is_per_label(settings):
        ner.cfg |= {"taught": list(ner.labels), "left_out": [label for label in labels if label not in ner.labels]}
    else:
        for label in labels:
            ner.add_label(label)  # one that no entity has
    return nlp
