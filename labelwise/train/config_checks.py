"""Refuse, with its line, a key that training wouldn't use as spaCy does, or a number that layers can't use."""

from math import inf
from pathlib import Path
from typing import Any

import spacy
from pydantic import ValidationError
from spacy.schemas import ConfigSchema, ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining
from spacy.util import dot_to_object
from thinc.api import Config
from thinc.config import ConfigValidationError

from labelwise.base.removed import has_key
from labelwise.train.config_file import PATHS, ConfigFile, LabelwiseBlock, flatten, variables_of
from labelwise.train.dev_scores import SCORES
from labelwise.train.reader import PartitionedCorpus

SCORER = {"@scorers": "spacy.ner_scorer.v1"}  # the default of both recognizers
SEED = "${system.seed}"
UNSUPPORTED = ("frozen_components", "annotating_components", "before_to_disk", "before_update")
READ = PATHS | {"system.seed", "system.gpu_allocator"}  # of blocks that only have variables
# Least and largest numbers, by the last part of a key in any block; beyond them, layers fail without naming the key, or
# nothing is learned. A schedule's numbers have the range of its key, except those of STEPS.
RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("width", "depth", "rows", "hidden_width", "maxout_pieces", "batch_size"), (1, inf)),
    **dict.fromkeys(("size", "buffer", "eval_frequency", "accumulate_gradient"), (1, inf)),
    **dict.fromkeys(("stride", "max_batch_items", "init_scale", "growth_interval"), (1, inf)),
    **dict.fromkeys(("window_size", "context", "layers", "limit", "max_words", "leave_out", "folds"), (0, inf)),
    **dict.fromkeys(("max_steps", "patience", "epochs", "least_steps", "few_words", "few_batch"), (0, inf)),
    **dict.fromkeys(("tolerance", "grad_clip", "score_weights"), (0, inf)),
    **dict.fromkeys(("learn_rate", "rate", "L2", "dropout", "few_dropout"), (0, 1)),
    **dict.fromkeys(("beta1", "beta2"), (0.001, 0.99999)),
    "eps": (1e-16, 1),  # with 0, a weight without gradient would become 0 / 0
}
STEPS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("total_steps", "num_steps", "period"), (1, inf)),
    **dict.fromkeys(("warmup_steps", "steps", "t", "compound"), (0, inf)),
    **dict.fromkeys(("warmup", "decay"), (0, 1)),
}
SCHEMAS: dict[str, Any] = {"nlp": ConfigSchemaNlp, "training": ConfigSchemaTraining, "initialize": ConfigSchemaInit}
BLOCKS: dict[str, Any] = {name: schema.model_fields for name, schema in SCHEMAS.items()}
BLOCKS["labelwise"] = LabelwiseBlock.__struct_fields__


def check_supported(file: ConfigFile, settings: Config) -> None:
    """Check that training uses each key of a config, and as `spacy train` does.

    settings (Config): values, with overrides, interpolated.
    RAISES (InputError): if a key isn't used, or isn't supported.
    """
    for name, known in BLOCKS.items():
        if unknown := settings.get(name, {}).keys() - {*known}:
            problem = f"the block has no such key; its keys are {', '.join(sorted(known))}"
            raise file.error(f"{name}.{min(unknown)}", problem)
    check_types(file)
    training, nlp, components = settings["training"], settings["nlp"], settings["components"]
    if "ner" not in nlp["pipeline"]:
        raise file.error("nlp.pipeline", "the recognizer is the component ner; add it")
    for name in nlp["pipeline"]:
        if name not in components:
            raise file.error("nlp.pipeline", f"there is no [components.{name}]; write it, or delete {name} here")
    for name, block in components.items():
        for key, default in (("source", None), ("scorer", SCORER)):
            if block.get(key, default) != default:
                raise file.error(f"components.{name}.{key}", "training doesn't use it; delete it")
        if name in nlp.get("disabled", ()) and "model" in block:
            raise file.error("nlp.disabled", f"training needs {name}; delete it here")
    if training.get("seed", 0) != settings.get("system", {}).get("seed", 0):
        raise file.error("training.seed", f"the seed is that of [system]; write seed = {SEED}")
    for name in UNSUPPORTED:
        if training.get(name):
            raise file.error(f"training.{name}", "only `spacy train` uses this; delete it, or train with that")
    for name, weight in training.get("score_weights", {}).items():
        if weight and name not in SCORES:
            problem = f"the score isn't computed; write null, or a weight for {', '.join(SCORES)}"
            raise file.error(f"training.score_weights.{name}", problem)
    if training.get("logger", {}).get("@loggers", "spacy.").startswith("spacy."):
        problem = 'it writes no curve; write @loggers = "labelwise.Logger.v1", and path = ${paths.curve}'
        raise file.error("training.logger.@loggers", problem)
    if training["train_corpus"] != "corpora.train":
        raise file.error("training.train_corpus", 'training reads [corpora.train]; write "corpora.train"')
    if not has_key(settings, dev := training["dev_corpus"]):
        raise file.error("training.dev_corpus", f"there is no block [{dev}]; write one")
    for name in ("corpora.train", dev):
        reader = dot_to_object(settings, name).get("@readers", "")
        function = spacy.registry.readers.get(reader) if reader in spacy.registry.readers else None
        if not (isinstance(function, type) and issubclass(function, PartitionedCorpus)):
            problem = 'only this reader can resume a training; write @readers = "labelwise.PartitionedCorpus.v1"'
            raise file.error(f"{name}.@readers", problem)
    for name in ("corpora", "training"):  # their functions' arguments, which are read before spaCy calls the functions
        try:
            spacy.registry.fill(settings[name])
        except ConfigValidationError as error:
            raise file.explain(error) from error
    check_unused(file, settings)


def check_types(file: ConfigFile) -> None:
    """Check the ranges of numbers, and the types of spaCy's keys, except for registered functions."""
    settings = file.raw.interpolate()
    for key, value in (*flatten(file.raw).items(), *flatten(settings).items()):
        *_, block, name = ("", *key.split("."))
        least, most = STEPS.get(name) or RANGES.get(block) or RANGES.get(name, (-inf, inf))
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not (abs(number) < inf and least <= number <= most):
                bounds = f" from {least}" * (least > -inf) + f" to {most}" * (most < inf)
                raise file.error(key, f"give a {'number' if bounds else 'finite number'}{bounds}")
    for name, schema in SCHEMAS.items():
        values = {key: value for key, value in settings.get(name, {}).items() if not spacy.registry.is_promise(value)}
        try:
            schema.model_validate(values)
        except ValidationError as error:
            for detail in error.errors():
                keys = (".".join(map(str, [name, *detail["loc"][:depth]])) for depth in (2, 1))
                if detail["type"] != "missing":  # spaCy adds what a config lacks
                    key = next(key for key in keys if has_key(settings, key))
                    raise file.error(key, f"{detail['msg']}; correct it") from error


def check_unused(file: ConfigFile, settings: Config) -> None:
    """Check that each block or variable of a config is used; spaCy wouldn't notice.

    RAISES (InputError): if training doesn't read one.
    """
    pretraining, weights = settings.get("pretraining", {}), settings.get("initialize", {}).get("init_tok2vec")
    if weights and not pretraining:
        problem = "the weights are for the layer that [pretraining] names; write that block, or init_tok2vec = null"
        raise file.error("initialize.init_tok2vec", problem)
    if weights and not Path(weights).is_file():
        problem = "there is no such file; `python -m spacy pretrain` writes it; or write init_tok2vec = null"
        raise file.error("initialize.init_tok2vec", problem)
    if pretraining and not weights:
        problem = "training reads it for [initialize] init_tok2vec; set that, or delete the block"
        raise file.error("pretraining", problem)
    pipeline, referred = settings["nlp"]["pipeline"], {*variables_of(file.text)}
    corpora = {settings["training"]["train_corpus"], settings["training"]["dev_corpus"], pretraining.get("corpus")}
    parts = {f"components.{name}": name in pipeline for name in settings["components"]}
    arguments = settings.get("initialize", {}).get("components", {})
    parts |= {f"initialize.components.{name}": name in pipeline for name in arguments}
    parts |= {f"corpora.{name}": f"corpora.{name}" in corpora for name in settings["corpora"]}
    variables = {name: block for name, block in settings.items() if name not in (*BLOCKS, *ConfigSchema.model_fields)}
    parts |= {key: key in READ for key in flatten(variables)}
    for part, used in parts.items():
        if not used and not any(f"{one}.".startswith(f"{part}.") or part.startswith(f"{one}.") for one in referred):
            raise file.error(part, "training reads nothing of this; delete it, or correct the name")
