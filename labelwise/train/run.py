"""Train a pipeline from the partitions of a corpus, in a fixed amount of memory."""

import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.util import resolve_dot_names
from thinc.api import Config
from thinc.config import ConfigValidationError

from labelwise.common.collector import rare_collections
from labelwise.common.device import use_gpu
from labelwise.common.errors import InputError
from labelwise.common.outputs import Output, check_replaceable, real_path, staged_together, workspace
from labelwise.corpus.manifest import check_pinned, pinned
from labelwise.train.batch_size import read_batch_size
from labelwise.train.calibration import Fitted, Optimize, fit, write_fitted
from labelwise.train.checkpoints import Checkpoints, State, copy, facts_of
from labelwise.train.gradients import share_parameters
from labelwise.train.loop import OnOom, Run
from labelwise.train.monitor import Monitor, idle_gpu, open_nvml
from labelwise.train.parameters import find_slots
from labelwise.train.pipeline import Recognizer, freeze_components, make_pipeline, read_settings
from labelwise.train.ranks import Ranks, TorchRanks, forked, is_launched
from labelwise.train.tidy import tidy_pipeline


class Trained(NamedTuple):
    """What a training took.

    shares (dict[str, float]): of the time, by phase; the largest first.
    seconds (float): in the loop.
    peak (int): bytes of memory.
    words (int): of all batches.
    texts (dict[str, int]): what became of the texts in the last whole epoch, or in the first so far.
    halved (int): how often memory ran out and training continued.
    resumed (int | None): the step that it resumed from; None if it started from the beginning.
    warning (str): why the GPU was idle, if it was.
    fitted (Fitted | None): what was fitted on dev in the end, of a per-label recognizer.
    """

    shares: dict[str, float]
    seconds: float
    peak: int
    words: int
    texts: dict[str, int]
    halved: int
    resumed: int | None
    warning: str
    fitted: Fitted | None


class Plan(NamedTuple):
    """What each process of a training makes its pipeline and its run of.

    config (Path): what the settings were read from.
    settings, transformer: see `pipeline.make_pipeline`.
    skip_first (bool): see `Run`.
    """

    config: Path
    settings: Config
    transformer: Mapping[str, Any]
    gpu_id: int
    freeze: bool
    on_oom: OnOom
    skip_first: bool

    def make_pipeline(self, launched: TorchRanks | None) -> Language:
        """Make the pipeline, with the same parameters in all ranks that torchrun has started.

        RAISES (InputError): the config isn't valid.
        """
        try:
            nlp = make_pipeline(self.settings, self.transformer, self.gpu_id, freeze=self.freeze)
        except ConfigValidationError as error:
            raise InputError(f"{self.config}: {error}") from error
        if launched:
            share_parameters(nlp, launched)
        return nlp

    def make_run(
        self,
        output: Path | None,
        monitor: Monitor,
        found: tuple[Path, State] | None,
        checkpoints: Checkpoints | None = None,
    ) -> Run:
        """Make the run, from a checkpoint if one was found."""
        return Run(
            output,
            monitor=monitor,
            checkpoints=checkpoints,
            resumed=found,
            on_oom=self.on_oom,
            skip_first=self.skip_first,
        )


def train(
    config: Path,
    corpus: Path,
    out: Path,
    curve: Path,
    *,
    resources: Path | None = None,
    gpu_id: int = -1,
    overrides: Mapping[str, Any] | None = None,
    init_from: str = "",
    recognizer: Recognizer = "per-label",
    freeze: bool = False,
    optimize: Optimize = "",
    batch_size: Path | None = None,
    on_oom: OnOom = "stop",
    resume: bool = False,
    workers: int = 1,
    tell: Callable[[str], Any] = lambda message: None,
) -> Trained | None:
    """Train a pipeline; what was at `out` stays until training has ended well.

    In each of several processes that torchrun has started, this is one rank of the training; see `ranks`.

    resources (Path | None): a TSV file for memory, processors and GPU over time.
    overrides (Mapping): values of the config, by dotted name.
    init_from (str): a pipeline to start from, by name or folder; see `pipeline.source_components`.
    recognizer (str): "per-label" or "ner"; see `pipeline.read_settings`.
    freeze (bool): of the recognizer that is taken from `init_from`, train only the heads of labels that it lacks; see
        `pipeline.freeze_components`.
    optimize (str): what a per-label recognizer's thresholds are to be best for; see `calibration`.
    batch_size (Path | None): what scripts.find_batch_size has written; used if it is for this device.
    on_oom (str): when memory runs out, "stop", or "halve" what the device is given, and continue.
    resume (bool): resume from the last checkpoint, if there is one of a training with the same config, corpus and code.
        They are in a folder beside `out`, and deleted when training has ended well.
    workers (int): processes that share each batch, on the CPU of this machine. Their number changes the result no more
        than another seed would: by which texts are computed with, and what dropout draws.
    tell (Callable): is told, before the first step, which step training resumes from, or why it starts over.
    RAISES (InputError): `out` has something other than a pipeline, the GPU can't be used, the corpus isn't whole, the
        config isn't valid, another process is training to `out`, memory ran out, or a process was killed.
    RETURNS (Trained | None): None in ranks that torchrun has started, but for the first.
    """
    if workers < 1 or (workers > 1 and (gpu_id >= 0 or is_launched())):
        raise InputError(f"--workers {workers}: give at least 1, and no more with GPUs or torchrun (--gpus)")
    check_replaceable(out, ("meta.json", "config.cfg"), "pipeline")
    use_gpu(gpu_id)
    with pinned(corpus):
        settings, transformer = read_settings(config, corpus, overrides or {}, init_from, recognizer)
        if freeze:
            freeze_components(settings)
        if device_size := read_batch_size(batch_size, gpu_id, settings):
            settings["training"]["batcher"]["device_size"] = device_size
        plan = Plan(config, settings, transformer, gpu_id, freeze, on_oom, _skips_first(settings, init_from))
        launched = TorchRanks(gpu_id) if is_launched() else None
        if launched and launched.rank:
            _join(plan, launched)
            return None
        facts = facts_of(settings, corpus, gpu_id)
        checkpoints = Checkpoints(out.with_name(f"{out.name}.checkpoints"), facts)
        place = real_path(out)
        with (
            staged_together("train", Output(out, "folder"), curve, resources) as files,
            workspace(place.with_name(f"{place.name}.training")) as folder,
        ):
            folder.mkdir()
            found = _find_start(checkpoints, resume, tell)
            settings["paths"]["curve"] = str(folder / "curve.tsv")
            if launched:
                launched.exchange((found,))
            nlp = plan.make_pipeline(launched)
            check_pinned(corpus)
            monitor = Monitor(folder / "resources.tsv", open_nvml(gpu_id))
            run = plan.make_run(folder, monitor, found, checkpoints)
            fitted = optimize if recognizer == "per-label" else None
            trained = _run(run, plan, nlp, folder, fitted, launched or workers)
            tidy_pipeline(folder / "model-best", curve, nlp, transformer.get("precision", ""))
            for name, file in zip(("model-best", "curve.tsv", "resources.tsv"), files, strict=True):
                if file:
                    shutil.move(folder / name, file)
        checkpoints.delete()
    if launched:
        launched.close()
    return trained


def _run(
    run: Run, plan: Plan, nlp: Language, folder: Path, optimize: Optimize | None, ranks: TorchRanks | int
) -> Trained:
    """Train in a folder, and fit what is fitted on dev.

    optimize (str | None): None if nothing is to be fitted.
    ranks (TorchRanks | int): the processes that torchrun has started, or the number of those to fork.
    """
    found = deepcopy(run.resumed)  # training moves its state
    if found:
        copy(found[0] / "curve.tsv", folder / "curve.tsv")

    def follow(ranks: Ranks) -> None:
        """Be another rank of the same training."""
        _follow(plan.make_run(None, Monitor(), found), nlp, plan.gpu_id, ranks)

    floats = sum(slot.get().size for slot in find_slots(nlp))
    processes = forked(ranks, floats, follow) if isinstance(ranks, int) else nullcontext(ranks)
    with rare_collections(), processes as run.ranks, run.monitor:
        run.train(nlp, plan.gpu_id, sys.stdout, sys.stderr)
    fitted = None if optimize is None else _fit(nlp, folder / "model-best", optimize)
    shares = run.clock.shares()
    return Trained(
        shares=shares,
        seconds=run.state.seconds,
        peak=run.monitor.peak,
        words=run.state.words,
        texts=dict(getattr(run.corpus, "last_counts", {}) or getattr(run.corpus, "counts", {})),
        halved=run.state.halved,
        resumed=found[1].step if found else None,
        warning=idle_gpu(run.monitor.gpu_percent(), shares),
        fitted=fitted,
    )


def _join(plan: Plan, launched: TorchRanks) -> None:
    """Be a rank after the first of those that torchrun has started."""
    (found,) = next(found for found in launched.exchange(None) if found)
    _follow(plan.make_run(None, Monitor(), found), plan.make_pipeline(launched), plan.gpu_id, launched)
    launched.close()


def _follow(run: Run, nlp: Language, gpu_id: int, ranks: Ranks) -> None:
    """Be a rank of a training after the first: take the same steps, and write nothing."""
    run.ranks = ranks
    nlp.config["training"]["logger"] = {"@loggers": "labelwise.TsvLogger.v1", "path": None}
    with rare_collections():
        run.train(nlp, gpu_id, StringIO(), StringIO())


def _skips_first(settings: Config, init_from: str) -> bool:
    """Tell whether the pipeline needn't be evaluated after its first step: it starts from nothing, and others come."""
    training = settings.interpolate()["training"]
    return not init_from and not 0 < training["max_steps"] < training["eval_frequency"]


def _fit(nlp: Language, folder: Path, optimize: Optimize) -> Fitted | None:
    """Make a pipeline the best one that training has saved, fit that on dev, and save what was fitted with it."""
    nlp.from_disk(folder)
    config = nlp.config.interpolate()
    (dev,) = resolve_dot_names(config, [config["training"]["dev_corpus"]])
    fitted = fit(nlp, dev(nlp), optimize)
    if fitted:
        write_fitted(folder, fitted)
    return fitted


def _find_start(checkpoints: Checkpoints, resume: bool, tell: Callable[[str], Any]) -> tuple[Path, State] | None:
    """Find the checkpoint to resume from, if there should be one, and tell from where or why training starts."""
    found = checkpoints.last() if resume else None
    if found:
        tell(f"Resuming from step {found[1].step}")
    elif resume and (changed := checkpoints.what_differs()):
        tell(
            f"Starting over, because this has changed since the checkpoints were saved: {', '.join(changed)}. They "
            "are kept until this training saves its first one"
        )
    return found
