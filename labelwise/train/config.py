"""The pipeline that is trained: its config, fitted to a corpus."""

import json
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
from labelwise.base.environment import GPU_ENVIRONMENT
from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.train.training_config import TrainingConfig, default_config
from spacy_per_label.hub_files import NoModelError

# A config has a tokenizer, or spaCy's `debug` commands refuse it; this one stands for that of the corpus.
DEFAULT_TOKENIZER = {"@tokenizers": "spacy.Tokenizer.v1"}
SMALL = 200  # texts of train
SCORER = {"@scorers": "spacy.ner_scorer.v1"}  # the default of both recognizers
NEEDS = {
    "spacy-per-label.Transformer.v1": ("spacy_transformers", f"use {GPU_ENVIRONMENT}"),
    "spacy-per-label.SmallTransformer.v1": ("tokenizers", "pip install tokenizers"),
}
UNSUPPORTED = ("frozen_components", "annotating_components", "before_to_disk", "before_update")


class LabelwiseBlock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The block `[labelwise]` of a config: what spaCy has no key for.

    epochs, least_steps (int): where steps aren't given, training takes so many epochs, but at least so many steps, and
        at most training.max_steps; 0 epochs take those.
    small_batch (int): words of a batch where train has fewer than 200 texts; 0 for the batcher's own size.
    portable (bool): the same bytes on every x86-64-v3 processor.
    half_weights (bool): save a transformer's weights in fp16.
    """

    epochs: int = 0
    least_steps: int = 0
    small_batch: int = 0
    portable: bool = False
    half_weights: bool = False


def read_block(settings: Config, config: Path) -> LabelwiseBlock:
    """Read the block `[labelwise]`.

    RAISES (InputError): it has another key, or a value of another type.
    """
    try:
        return msgspec.convert(settings.get("labelwise", {}), LabelwiseBlock)
    except msgspec.ValidationError as error:
        raise InputError(f"{config}: [labelwise] {error}; its keys are {', '.join(LabelwiseBlock.__struct_fields__)}") from error


def read_settings(wanted: TrainingConfig) -> Config:
    """Read the spaCy config, and fit it to the corpus: paths, language, number of steps.

    RAISES (InputError): there is no such file, it isn't valid, has another kind of tokenizer than the corpus, or what
        training doesn't do, or needs a package that isn't installed.
    """
    config = wanted.config
    if not config.is_file():
        raise InputError(f"{config}: there is no such file; give a spaCy config, such as {default_config('cpu')}")
    lang, rules = read_tokenizer(wanted.corpus / "tokenizer.json")
    try:
        written = load_config(config)
        settings = load_config(config, wanted.all_overrides())
    except (ConfigValidationError, ValueError) as error:
        raise InputError(f"{config}: {error}") from error
    settings["paths"]["corpus"], settings["nlp"]["lang"] = str(wanted.corpus), lang
    own = settings["nlp"].get("tokenizer", DEFAULT_TOKENIZER)
    if own == DEFAULT_TOKENIZER:
        settings["nlp"]["tokenizer"] = rules.block or own
    elif rules.block and own.get("@tokenizers") != rules.block["@tokenizers"]:
        raise InputError(
            f"{config}: [nlp] tokenizer is {own}, but {wanted.corpus} was merged with {rules.block}; take that of the "
            "corpus: delete the block, or write tokenizer = " + json.dumps(DEFAULT_TOKENIZER)
        )
    for architecture, (package, remedy) in NEEDS.items():
        if architecture in str(settings["components"]) and find_spec(package) is None:
            raise InputError(f"{config} needs the package {package}: {remedy}")
    block = read_block(settings, config)
    check_supported(settings, config)
    training = settings["training"]
    if block.small_batch and is_small(wanted) and "training.batcher.size" not in wanted.overrides:
        training["batcher"]["size"] = block.small_batch
    if block.epochs and not wanted.max_steps and "training.max_steps" not in wanted.overrides:
        training["max_steps"] = fit_steps(wanted, block, training)
    # A rate that falls until the last step falls until another last step, too.
    rate = training["optimizer"].get("learn_rate")
    if isinstance(rate, dict) and rate.get("total_steps") == written["training"]["max_steps"]:
        rate["total_steps"] = training["max_steps"]
    if isinstance(rate, dict) and 0 < training["max_steps"] <= rate.get("warmup_steps", 0):
        raise InputError(
            f"{config}: the learning rate rises for {rate['warmup_steps']:,} steps, and training ends after "
            f"{training['max_steps']:,}; give fewer warmup_steps, or a share: labelwise.warmup_linear.v1"
        )
    if wanted.gpu_id < 0 and "grad_scaler_config" in str(settings["components"]):  # the CPU computes in fp32
        tok2vec = settings["components"]["ner"]["model"]["tok2vec"]
        tok2vec["mixed_precision"] = tok2vec["grad_scaler_config"]["enabled"] = False
    if not is_per_label(settings):
        check_complete(wanted.corpus)
    return settings


def fit_steps(wanted: TrainingConfig, block: LabelwiseBlock, training: dict[str, Any]) -> int:
    """Count the steps of so many epochs of train, within limits."""
    train = read_manifest(wanted.corpus).splits["train"]
    words = train.words * min(1, (wanted.limit or train.texts) / max(1, train.texts))
    return max(block.least_steps, min(round(block.epochs * words / training["batcher"]["size"]), training["max_steps"]))


def wants_gpu(config: Path) -> bool:
    """Return whether a config is for a GPU: it names an allocator of its memory."""
    return bool(config.is_file() and load_config(config)["system"].get("gpu_allocator"))


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

    RAISES (InputError): a component comes from another pipeline, whose texts may be those of test; it is scored in
        another way than by entities, where they are known; or a block has a key that nobody knows, or asks for what
        the loop hasn't.
    """
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
    return count_train(wanted) < SMALL


def count_train(wanted: TrainingConfig) -> int:
    """Count the texts that a training has."""
    texts = read_manifest(wanted.corpus).splits["train"].texts
    return min(texts, wanted.limit or texts)


def share_of(wanted: TrainingConfig, texts: int) -> TrainingConfig:
    """Describe a training on fewer texts, with batches of the same size.

    RAISES (InputError): no text would be left.
    """
    if texts < 1:
        raise InputError(f"{wanted.corpus}: train has {count_train(wanted)} texts, so a share of them would be empty")
    large = {} if is_small(wanted) else {"labelwise.small_batch": 0}
    return replace(wanted, limit=texts, overrides={**wanted.overrides, **large})


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
