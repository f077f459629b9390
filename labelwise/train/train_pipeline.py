"""Train a pipeline from a corpus's partitions, in bounded memory."""

import gc
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import srsly
from spacy.language import Language
from spacy.training.loop import update_meta
from thinc.api import Model

from labelwise.base.device import use_gpu
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_replaceable
from labelwise.base.parallel import frozen, tree_memory
from labelwise.corpus.import_checks import describe_empty
from labelwise.corpus.manifest import read_manifest, unchanged
from labelwise.corpus.pipeline import check_tokens, excluded_labels_of, points_of, strings_of
from labelwise.corpus.record import LEARNED, RECORD, digest_corpus, write_record
from labelwise.corpus.seen_texts import SEEN_TEXTS, collect_seen, write_seen
from labelwise.corpus.warnings import warnings_about_excluded_labels
from labelwise.train.ahead import open_background
from labelwise.train.checkpoint import (
    BEST,
    CURVE,
    CheckpointSaver,
    copy,
    digest_training,
    end_checkpoint,
    has_ended,
    read_state,
    restore,
)
from labelwise.train.config import FittedConfig, fit_config, is_per_label, make_pipeline
from labelwise.train.gpu import peak_memory
from labelwise.train.held_out import fit, fit_points
from labelwise.train.loop import describe_end, train_while_improving
from labelwise.train.ranks import SingleProcess, TorchRanks, check_ranks, is_launched, start_ranks
from labelwise.train.training import Log, State, Training, remake
from labelwise.train.training_config import TrainingConfig
from spacy_per_label.calibrate import Fitted
from spacy_per_label.transformer import halve


class TrainResult(NamedTuple):
    """The end of a training.

    texts (dict[str, int]): counts of texts in the last whole epoch, or in the first so far.
    resumed (int | None): step of the checkpoint; None from the beginning.
    fitted (Fitted | None): calibration on dev of a per-label recognizer.
    ended (str): setting that ended training before max_steps, and when, or "".
    points (dict): operating point of each label with a goal; see `goals`.
    """

    state: State
    texts: dict[str, int]
    resumed: int | None
    fitted: Fitted | None
    ended: str
    points: Mapping[str, Mapping[str, Any]]


def train_pipeline(
    config: TrainingConfig,
    out: Path | str,
    curve: Path | str,
    *,
    resources: Path | str | None = None,
    log: Log = lambda message: None,
) -> TrainResult | None:
    """Train a pipeline; the old one at `out` stays until training has succeeded.

    Under torchrun, this is one rank of the training; see `ranks`.

    curve (Path | str): TSV file for the scores over time.
    resources (Path | str | None): TSV file for memory and speed over time.
    log (Callable): takes messages: excluded labels, resuming, lack of memory, skipped steps.
    RAISES (InputError): if `out` has other content or another training, the GPU can't be used, the corpus is
        incomplete, the config is invalid, tokens differ from the corpus, a text doesn't fit into memory, losses aren't
        finite, or a process was killed.
    RETURNS (TrainResult | None): None in torchrun's ranks after the first.
    """
    outputs = Path(out), Path(curve), Path(resources) if resources else None
    check_replaceable(outputs[0], ("meta.json", "config.cfg"), "pipeline")
    with frozen(), open_background(config.gpu_id) as background, launched_ranks(config.gpu_id) as launched:
        if launched and launched.rank:
            training = remake(config, *launched.all_gather_object(None)[0])
            training.background = background
            follow(training, launched)
            return None
        fitted_config = fit_config(config)
        splits = read_manifest(config.corpus).splits
        for split in LEARNED:
            if not splits[split].texts:
                raise InputError(f"{config.corpus}: {describe_empty(config.corpus, split)}")
        with atomic(*outputs, folders=outputs[:1]) as written:
            training = prepare(fitted_config, outputs, written, log)
            training.background = background
            resumed = training.state.step if training.state.step >= 0 else None
            train(training, launched)
            fitted = finish(training)
        end_checkpoint(training, outputs[0], keep=config.resume and is_per_label(fitted_config.settings))
        counts, points = dict(training.corpus.counts), points_of(training.nlp)
        return TrainResult(training.state, counts, resumed, fitted, describe_end(training), points)


def train_once(config: TrainingConfig, out: Path, log: Log = lambda message: None) -> None:
    """Train a step of a longer work, unless the same training has ended there before.

    A file beside the pipeline has the training's digest (`digest_training`). The curve is beside it, too.

    RAISES (InputError): if `train_pipeline` does.
    """
    fitted = fit_config(config)
    digest = digest_training(fitted) + (f" {fitted.goals}" if fitted.goals else "")
    ended = out.with_suffix(".ended")
    if config.resume and ended.is_file() and ended.read_text(encoding="utf8") == digest:
        return
    ended.unlink(missing_ok=True)
    train_pipeline(config, out, out.with_suffix(".tsv"), log=log)
    ended.write_text(digest, encoding="utf8")


@contextmanager
def launched_ranks(gpu_id: int) -> Iterator[TorchRanks | None]:
    """Use the CPU or a GPU, and join torchrun's processes; None without torchrun."""
    use_gpu(gpu_id)
    if not is_launched():
        yield None
        return
    ranks = TorchRanks(gpu_id)
    yield ranks
    ranks.distributed.destroy_process_group()


def prepare(
    fitted: FittedConfig, outputs: tuple[Path, Path, Path | None], written: Sequence[Any], log: Log
) -> Training:
    """Make the pipeline, and find the initial state: a checkpoint's, or that of step 0.

    outputs, written (Sequence): pipeline's folder, curve and resources, and their temporary paths.
    """
    (out, final_curve, _), (folder, curve, resources) = outputs, written
    config, _, settings, goals = fitted
    if changed := fitted.changes():
        listed = "; ".join(f"{key} {old} -> {new}" for key, (old, new) in changed.items())
        log(f"{config.config}, changed for this training: {listed}")
    checkpoint, digest = out.with_name(f"{out.name}.checkpoint"), digest_training(fitted)
    settings["paths"] |= {"curve": str(curve), "resources": resources and str(resources)}
    with unchanged(config.corpus):
        seen, raw = collect_seen(config.corpus), read_manifest(config.corpus).settings.get("raw")
        record = {"changed": changed, "corpus": digest_corpus(config.corpus), "raw": raw}
        nlp = make_pipeline(fitted)
        check_tokens(nlp, config.corpus / "train", "merge again: packages, or the config, have changed")
    for warning in warnings_about_excluded_labels(excluded_labels_of(nlp)):
        log(" ".join(warning))
    state = read_state(checkpoint, digest) if config.resume else None
    repeated = state and has_ended(checkpoint) and state.goals == goals  # train again, as asked
    if state and not repeated:
        log(f"Resuming from step {state.step}")
        for name, path in ((BEST, folder), (CURVE, curve)):
            copy(checkpoint / name, path)
    elif config.resume and checkpoint.exists() and not has_ended(checkpoint):
        log(
            "Starting over, because the config, the corpus, the device, code or packages have changed since the "
            "checkpoint was saved. The old one is kept until this training saves its first"
        )
    training = Training(config, nlp, State(digest) if repeated or not state else state, checkpoint, log)
    training.state.goals = goals
    training.folder, training.curve, training.seen, training.record = folder, curve, seen, record
    nlp.config["paths"] |= {"curve": str(final_curve), "resources": None}  # as saved: equal trainings give equal bytes
    return training


def train(training: Training, launched: TorchRanks | None) -> None:
    """Train as rank 0; save the best pipeline, scores, checkpoints and resource log.

    launched (TorchRanks | None): ranks started by torchrun, if any.
    """
    nlp, state = training.nlp, training.state
    with all_ranks(training, launched) as ranks:
        begin(training, ranks)
        strings = strings_of(training.config.corpus, nlp.get_pipe("ner").labels)  # type: ignore[attr-defined]
        tell, close = training.settings["logger"](nlp, sys.stdout, sys.stderr)
        saver = CheckpointSaver(training)
        try:
            for info in train_while_improving(training):
                if info["score"] is not None:
                    saver.wait()  # it copies the curve, and the best pipeline so far
                    info["resources"] = describe_resources(training, info["spent"])
                tell(info)
                if info["score"] is None:
                    continue
                models: dict[Path, bytes] = {}
                if state.scores[-1] == max(state.scores):
                    update_meta(training.settings, nlp, info)
                    with nlp.use_params(training.optimizer.averages):
                        models = save_pipeline(nlp, training.folder, strings)
                saver.save(models)
                del models  # once it is written, its memory is free
        finally:
            close()
            saver.wait()


def finish(training: Training) -> Fitted | None:
    """Fit the best pipeline on dev, if it is per-label, and complete its folder."""
    nlp, folder, fitted, goals = training.nlp, training.folder, None, training.state.goals
    config = nlp.config.copy()
    nlp.from_disk(folder, exclude=["vocab"])  # the saved one lacks the words of the texts
    nlp.config = config  # a checkpoint's may have another path of the curve
    if nlp.config.get("labelwise", {}).get("half_weights"):
        halve(nlp.get_pipe("ner").model, folder / "ner" / "model")  # type: ignore[attr-defined]
    if is_per_label(nlp.config):
        fitted = fit(nlp, training.dev.texts())
        if goals:
            fit_points(nlp, training.dev.texts(), goals, training.config.corpus)
        # A checkpoint may share the files. Saving all would put another folder's name in a transformer's config.
        path, settings = folder / "ner" / "cfg", nlp.get_pipe("ner").cfg  # type: ignore[attr-defined]
        for shared in (path, folder / "config.cfg", folder / SEEN_TEXTS, folder / RECORD):
            shared.unlink(missing_ok=True)
        srsly.write_json(path, settings)
        nlp.config.to_disk(folder / "config.cfg")
    write_seen(folder, training.seen)
    write_record(folder, **training.record)
    return fitted


def all_ranks(training: Training, launched: TorchRanks | None) -> AbstractContextManager[SingleProcess]:
    """Let the other ranks follow: torchrun's, or processes of this machine."""
    if launched:
        launched.all_gather_object((training.state, training.checkpoint))
        return nullcontext(launched)
    gc.freeze()  # garbage collection skips loaded objects, so forked ranks share them
    floats = sum(parameter.array.size for parameter in training.parameters)
    return start_ranks(training.config.workers, floats, partial(follow, training))


def begin(training: Training, ranks: SingleProcess) -> None:
    """Restore the checkpoint, if any, and check that all ranks begin equally."""
    training.ranks = ranks
    if training.state.step >= 0 and not has_ended(training.checkpoint):
        restore(training)
    check_ranks(training.parameters, ranks)


def follow(training: Training, ranks: SingleProcess) -> None:
    """Train as a rank after the first: take the same steps, without output."""
    training.log = lambda message: None
    begin(training, ranks)
    for _ in train_while_improving(training):
        pass


def describe_resources(training: Training, spent: Mapping[str, float]) -> dict[str, Any]:
    """Describe the use of the machine since the last evaluation, for the file of resources."""
    seconds, (memory, measure) = max(spent["seconds"], 1e-9), tree_memory(os.getpid())
    return {
        "seconds": f"{training.state.seconds:.1f}",
        "step": training.state.step,
        "words_per_second": round(spent["words"] / seconds),
        "memory_mb": round(memory / 2**20),
        "memory_measure": measure,
        "waiting_percent": round(100 * spent["waiting"] / seconds),
    } | peak_memory(training.config.gpu_id)


def save_pipeline(nlp: Language, folder: Path, strings: list[str]) -> dict[Path, bytes]:
    """Save a pipeline in a new folder, whose files a checkpoint may share, without traces of its training.

    Models are only serialized: a thread writes a transformer, which takes seconds, during training. Equal trainings
    give equal bytes: spaCy saves scores in a set's order. It would also save the texts' words with the vocabulary,
    which may be private; the model knows hashes.
    RETURNS (dict[Path, bytes]): the models' files, to write.
    """
    shutil.rmtree(folder, ignore_errors=True)
    nlp.meta["performance"] = json.loads(json.dumps(nlp.meta["performance"], sort_keys=True))
    pipes: dict[str, Any] = {
        name: pipe
        for name, pipe in nlp.components
        if isinstance(getattr(pipe, "model", None), Model) and hasattr(pipe, "to_disk")
    }
    nlp.to_disk(folder, exclude=[*pipes])
    for name, pipe in pipes.items():
        pipe.to_disk(folder / name, exclude=["vocab", "model"])
    if not nlp.vocab.vectors.size:
        (folder / "vocab" / "strings.json").write_text(json.dumps(strings, ensure_ascii=False), encoding="utf8")
    return {folder / name / "model": pipe.model.to_bytes() for name, pipe in pipes.items()}
