"""Count the texts, batches and steps of a training, and set dependent keys of its config."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from thinc.api import Config

from labelwise.corpus.manifest import read_manifest
from labelwise.train.config_file import ConfigFile, LabelwiseBlock
from labelwise.train.training_config import TrainingConfig

# What a batcher counts: words of train or texts. Another batcher's number of batches is unknown.
BATCHED_BY = {
    "spacy.batch_by_words.v1": "words",
    "spacy.batch_by_padded.v1": "words",
    "spacy.batch_by_sequence.v1": "texts",
}


def read_block(settings: Config, file: ConfigFile) -> LabelwiseBlock:
    """Read the block `[labelwise]` of a config.

    RAISES (InputError): if a value has another type.
    """
    try:
        return msgspec.convert(settings.interpolate().get("labelwise", {}) | file.goals, LabelwiseBlock)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).removesuffix("`").partition(" - at `$.")
        key, _, label = path.partition("[")
        example = f', as in {key} = {{"PERSON": 0.98}}' if label else ""
        raise file.error(f"labelwise.{key}", f"{problem}; correct it{example}") from error


def fit_steps(config: TrainingConfig, file: ConfigFile, block: LabelwiseBlock, settings: Config) -> None:
    """Apply the rule for few words; set the number of steps, the end of the rate, and the evaluation frequency.

    The steps are the given ones, or the epochs of [labelwise], or training.max_steps.

    settings (Config): values, changed in place, without interpolation.
    RAISES (InputError): if steps exceed training.max_steps, an epoch's can't be counted, dev would be evaluated fewer
        than four times, or the learning rate rises for longer than training lasts.
    """
    training = settings["training"]
    if count_words(config.corpus, settings) < block.few_words:
        if block.few_batch and "size" in training["batcher"] and "training.batcher.size" not in config.overrides:
            training["batcher"]["size"] = block.few_batch
        if block.few_dropout is not None and "training.dropout" not in config.overrides:
            training["dropout"] = block.few_dropout
    resolved, overridden = settings.interpolate(), "training.max_steps" in config.overrides
    now = resolved["training"]
    limit, rate = file.raw.interpolate()["training"]["max_steps"], now["optimizer"].get("learn_rate")
    falls = isinstance(rate, dict) and rate.get("total_steps") == limit  # until the last step
    if config.max_steps > limit > 0 and not overridden:
        raise file.error(
            "training.max_steps",
            f"this is fewer than the {config.max_steps:,} steps to take; write max_steps = {config.max_steps}"
            + (", and total_steps likewise" if falls else ""),
        )
    steps = now["max_steps"]
    if config.max_steps and not overridden:
        steps = config.max_steps
    elif block.epochs and limit and not overridden:
        steps = max(
            min(block.least_steps, limit),
            min(round(block.epochs * batches_of(config, file, resolved)), limit),
        )
    training["max_steps"] = steps
    if falls:
        training["optimizer"]["learn_rate"]["total_steps"] = steps
    if isinstance(rate, dict) and 0 < steps <= rate.get("warmup_steps", 0):
        raise file.error(
            "training.optimizer.learn_rate.warmup_steps",
            f"the learning rate rises for {rate['warmup_steps']:,} steps, and training ends after {steps:,}; give "
            "fewer, or a share: labelwise.warmup_linear.v1",
        )
    # `undertrained.expect_gain` needs the scores after a half and a quarter of the steps.
    often = max(1, steps // 4)
    if steps and now["eval_frequency"] > often and "training.eval_frequency" not in config.overrides:
        if not (overridden or config.max_steps or block.epochs):
            raise file.error(
                "training.eval_frequency",
                f"this is fewer than four evaluations in max_steps = {steps}; write eval_frequency = {often}, or less",
            )
        training["eval_frequency"] = often


def batches_of(config: TrainingConfig, file: ConfigFile, settings: Mapping[str, Any]) -> float:
    """Count the batches of an epoch.

    RAISES (InputError): if the batcher's size isn't a fixed number of words or texts.
    """
    batcher = settings["training"]["batcher"]
    name, size = batcher.get("@batchers"), batcher.get("size")
    if name not in BATCHED_BY or not isinstance(size, int) or size < 1:
        raise file.error(
            "labelwise.epochs",
            f"epochs need batches of a fixed size, and [training.batcher] has {name} of size {size}; write epochs = 0, "
            f"and training takes max_steps = {settings['training']['max_steps']}",
        )
    count = count_words if BATCHED_BY[name] == "words" else count_train
    return count(config.corpus, settings) / size


def count_words(corpus: Path, settings: Mapping[str, Any]) -> float:
    """Estimate the words of a training: train's, or their share by its limit of texts."""
    train = read_manifest(corpus).splits["train"]
    return train.words * count_train(corpus, settings) / max(1, train.texts)


def count_train(corpus: Path, settings: Mapping[str, Any]) -> int:
    """Count the texts of a training.

    settings (Mapping): values of its config.
    """
    texts = read_manifest(corpus).splits["train"].texts
    return min(texts, settings["corpora"]["train"].get("limit", 0) or texts)
