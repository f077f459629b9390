"""The pipeline that is trained: its config, fitted to a corpus."""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
from labelwise.train.reader import open_corpora
from labelwise.train.training_config import Recognizer, TrainingConfig, default_config
from labelwise.train.vectors import has_vectors
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


def read_settings(wanted: TrainingConfig) -> Config:
    """Read the spaCy config, fit it to the corpus, and choose the recognizer.

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
    own, system = settings["nlp"].get("tokenizer", DEFAULT_TOKENIZER), settings["system"]
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
    own_settings = {"portable": False, "half_weights": False, "small_batch": 0, "keep_untaught": False}
    if any(type(system.setdefault(name, default)) is not type(default) for name, default in own_settings.items()):
        raise InputError(
            f"{config}: [system] portable, half_weights and keep_untaught are false or true, and small_batch is a "
            "number of words, or 0"
        )
    check_supported(settings, config)
    if system["small_batch"] and is_small(wanted) and "training.batcher.size" not in wanted.overrides:
        settings["training"]["batcher"]["size"] = system["small_batch"]
    fit_steps(wanted, settings)
    # A rate that falls until the last step, or until none is said, falls until another last step, too.
    training = settings["training"]
    rate = training["optimizer"].get("learn_rate")
    if isinstance(rate, dict) and rate.get("total_steps") in (0, written["training"]["max_steps"]):
        rate["total_steps"] = training["max_steps"]
    if isinstance(rate, dict) and 0 < training["max_steps"] <= rate.get("warmup_steps", 0):
        raise InputError(
            f"{config}: the learning rate rises for {rate['warmup_steps']:,} steps, and training ends after "
            f"{training['max_steps']:,}; give fewer warmup_steps, or a share: labelwise.warmup_linear.v1"
        )
    if training["max_steps"] and "training.eval_frequency" not in wanted.overrides:
        # Of half of the steps, and of a quarter, it must be known how good they were; see `undertrained.expect_gain`.
        training["eval_frequency"] = max(1, min(training["eval_frequency"], training["max_steps"] // 4))
    choose_recognizer(settings, wanted.corpus, wanted.recognizer, find_untaught(wanted, settings))
    if wanted.vectors:
        use_vectors(settings, wanted.vectors)
    return settings


def fit_steps(wanted: TrainingConfig, settings: Config) -> None:
    """Set the steps of a config that leaves them to the size of train, in place: for so many epochs, within limits."""
    training, system = settings["training"], settings["system"]
    if training["max_steps"] or "epochs" not in system:
        return
    train = read_manifest(wanted.corpus).splits["train"]
    words = train.words * min(1, (wanted.limit or train.texts) / max(1, train.texts))
    steps = round(system["epochs"] * words / training["batcher"]["size"])
    training["max_steps"] = max(system["least_steps"], min(steps, system["most_steps"]))


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
    large = {} if is_small(wanted) else {"system.small_batch": 0}
    return replace(wanted, limit=texts, overrides={**wanted.overrides, **large})


def find_untaught(wanted: TrainingConfig, settings: Config) -> list[str]:
    """List the labels that no text of train is complete for, unless the config keeps them; reads until none is left.

    Where single spans were judged, nothing says where a label isn't, so its head would mark everything.

    RAISES (InputError): no label would be left, or the config's corpora aren't valid.
    """
    manifest = read_manifest(wanted.corpus)
    if settings["system"]["keep_untaught"] or manifest.settings["coverage"] != "by-label":
        return []
    try:
        train, _ = open_corpora(settings.interpolate())
    except ConfigValidationError as error:
        raise InputError(f"{wanted.config}: {error}") from error
    untaught = set(manifest.labels)
    for doc in train.texts():
        untaught &= doc.annotation.uncovered.keys()
        if not untaught:
            break
    if len(untaught) == len(manifest.labels):
        raise InputError(
            f"{train.path}: no text in train is complete for a label. Where single spans were judged (ner.teach), "
            "nothing says which other words aren't entities. Annotate some texts for all of their spans (ner.manual, "
            f"ner.correct), or set keep_untaught = true in [system] of {wanted.config}; it then marks too much"
        )
    return sorted(untaught)


def choose_recognizer(settings: Config, corpus: Path, recognizer: Recognizer, untaught: Sequence[str]) -> None:
    """Put the chosen recognizer into [components.ner], in place.

    untaught (Sequence[str]): the labels that a per-label recognizer leaves out.
    RAISES (InputError): the config has no block for it, or it is spaCy's, and can't learn from the texts as they are:
        nothing tells it what isn't an entity, so that it would see entities everywhere.
    """
    per_label = settings["components"].pop("per_label", None)
    manifest = read_manifest(corpus)
    coverage = manifest.settings["coverage"]
    if recognizer == "ner":
        docs = (doc for file in find_partitions(corpus / "train") for doc in read_stored_docs(file))
        if coverage == "by-label" and any(doc.annotation.uncovered for doc in docs):
            raise InputError(
                "recognizer ner: texts in train aren't complete for all labels, and spaCy's ner can't learn from them; "
                "take recognizer per-label, which does, or set coverage to drop or outside in project.yml"
            )
        return
    if per_label is None:
        raise InputError("recognizer per-label: the config has no [components.per_label]; take it from configs/cpu.cfg")
    if embed := per_label.pop("embed", None):
        settings["components"]["tok2vec"]["model"]["embed"] = embed
    settings["components"]["ner"] = per_label
    labels = settings["initialize"]["components"]["ner"]
    labels["labels"]["path"] = "${paths.corpus}/labels/per_label.json"
    if untaught:
        labels["labels"] = sorted({*manifest.labels} - {*untaught})
    # What unmarked tokens mean where a label isn't covered: with this policy, the merge has taken them for no entities.
    if coverage == "outside":
        settings["corpora"]["train"]["coverage"] = "outside"


def use_vectors(settings: Config, table: Path) -> None:
    """Let a per-label recognizer see words by a table of vectors, too, in place, unless the table is empty.

    RAISES (InputError): there is no such table, or the config has no embedding that takes one.
    """
    if not has_vectors(table):
        return
    embed = embed_of(settings)
    if "vectors" not in embed:
        raise InputError(f"{table}: vectors need recognizer per-label, and [components.per_label.embed] in the config")
    embed["vectors"] = str(table)


def vectors_of(settings: Config) -> Path | None:
    """Find the table of vectors that a config's tok2vec uses."""
    table = embed_of(settings).get("vectors")
    return Path(table) if table else None


def embed_of(settings: Config) -> dict[str, Any]:
    """Find the block of a config that embeds words; empty if there is none, as in a transformer's."""
    embed: dict[str, Any] = settings["components"].get("tok2vec", {}).get("model", {}).get("embed", {})
    return embed


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
    if wanted.recognizer == "per-label":
        # `find_untaught` has looked, or the config keeps them.
        ner.cfg |= {"taught": list(ner.labels), "left_out": [label for label in labels if label not in ner.labels]}
    else:
        for label in labels:
            ner.add_label(label)  # one that no entity has
    return nlp
