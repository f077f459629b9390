"""Train a pipeline from the partitions of a corpus, in a fixed amount of memory."""

import gc
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.util import resolve_dot_names
from thinc.api import Config

from labelwise.common.device import use_gpu
from labelwise.common.files import check_replaceable, staged_together, workspace
from labelwise.corpus.manifest import check_pinned, pinned
from labelwise.corpus.same_tokens import check_tokens
from labelwise.corpus.seen_texts import collect_seen, write_seen
from labelwise.train.batch_size import read_batch_size
from labelwise.train.calibration import Fitted, fit, write_fitted
from labelwise.train.checkpoints import Checkpoints, State, copy, facts_of
from labelwise.train.loop import Run
from labelwise.train.monitor import Monitor, idle_gpu, open_nvml
from labelwise.train.parameters import find_slots, share_parameters
from labelwise.train.pipeline import make_pipeline, read_settings, transformer_model
from labelwise.train.ranks import Alone, Ranks, TorchRanks, compare_facts, forked, is_launched
from labelwise.train.recipe import Recipe
from labelwise.train.sources import source_folders
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


def train_pipeline(
    recipe: Recipe,
    out: Path | str,
    curve: Path | str,
    *,
    resources: Path | str | None = None,
    tell: Callable[[str], Any] = lambda message: None,
) -> Trained | None:
    """Train a pipeline; what was at `out` stays until training has ended well.

    In each of several processes that torchrun has started, this is one rank of the training; see `ranks`.

    out (Path | str): the folder for the pipeline.
    curve (Path | str): a TSV file for the scores over time.
    resources (Path | str | None): a TSV file for memory, processors and GPU over time.
    tell (Callable): is told, before the first step, which step training resumes from, or why it starts over; that
        rounding may differ from the command's; that the learning rate will still be warming up at the end; and on
        which GPU training runs, since minutes may pass before the first scores.
    RAISES (InputError): `out` has something other than a pipeline, the GPU can't be used, the corpus isn't whole, the
        config isn't valid, the pipeline makes other tokens than the corpus has, another process is training to `out`,
        memory ran out, or a process was killed.
    RETURNS (Trained | None): None in ranks that torchrun has started, but for the first.
    """
    out, curve, resources = Path(out), Path(curve), Path(resources) if resources else None
    check_replaceable(out, ("meta.json", "config.cfg"), "pipeline")
    use_gpu(recipe.gpu_id)
    if recipe.gpu_id < 0 and os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        tell(
            "Products of matrices may be computed by several threads, and so be rounded otherwise than by the command; "
            "for the same bytes, set OPENBLAS_NUM_THREADS=1 before numpy is loaded"
        )
    with pinned(recipe.corpus):
        settings = read_settings(recipe)
        if device_size := read_batch_size(recipe.batch_size, recipe.gpu_id, settings):
            settings["training"]["batcher"]["device_size"] = device_size
        facts = facts_of(settings, recipe.corpus, recipe.gpu_id)
        ranks = TorchRanks(recipe.gpu_id) if is_launched() else Alone()
        compare_facts(ranks, {name: fact for name, fact in facts.items() if name != "the device"})
        # What hasn't learnt anything isn't evaluated.
        make_run = partial(Run, on_oom=settings["labelwise"]["on_oom"], skip_first=not recipe.init_from)
        if ranks.rank:
            (found,) = next(found for found in ranks.exchange(None) if found)
            nlp = make_pipeline(recipe, settings)
            share_parameters(find_slots(nlp), ranks)
            _follow(partial(make_run, resumed=found), nlp, recipe.gpu_id, ranks)
            ranks.close()
            return None
        seen = collect_seen(recipe.corpus, source_folders(settings).values())
        checkpoints = Checkpoints(out.with_name(f"{out.name}.checkpoints"), facts)
        with (
            staged_together(out, curve, resources, folders=[out]) as files,
            workspace(out) as folder,
        ):
            found = _find_start(checkpoints, recipe.resume, tell)
            make_run = partial(make_run, resumed=found)
            settings["paths"]["curve"] = str(folder / "curve.tsv")
            ranks.exchange((found,))
            nlp = make_pipeline(recipe, settings)
            check_tokens(nlp, recipe.corpus / "train", "merge again: packages, or the config, are other ones")
            slots = find_slots(nlp)
            share_parameters(slots, ranks)
            check_pinned(recipe.corpus)
            monitor = Monitor(folder / "resources.tsv", open_nvml(recipe.gpu_id))
            run = make_run(folder, monitor=monitor, checkpoints=checkpoints)
            follow = partial(_follow, make_run, nlp, recipe.gpu_id)
            floats = sum(slot.get().size for slot in slots)
            _announce(settings, recipe.gpu_id, facts["the device"], tell)
            together = nullcontext(ranks) if is_launched() else forked(recipe.workers, floats, follow)
            trained = _lead(run, recipe, nlp, folder, together)
            tidy_pipeline(folder / "model-best", curve, nlp, transformer_model(settings).get("precision", ""))
            write_seen(folder / "model-best", seen)
            for name, file in zip(("model-best", "curve.tsv", "resources.tsv"), files, strict=True):
                if file:
                    shutil.move(folder / name, file)
        checkpoints.delete()
    ranks.close()
    return trained


def _lead(run: Run, recipe: Recipe, nlp: Language, folder: Path, ranks: AbstractContextManager[Ranks]) -> Trained:
    """Be the first rank: train in a folder, and fit what is fitted on dev."""
    resumed = run.state.step if run.resumed else None
    if run.resumed:
        copy(run.resumed[0] / "curve.tsv", folder / "curve.tsv")
    gc.freeze()  # garbage collection needn't look at what is loaded
    with ranks as run.ranks, run.monitor:
        run.train(nlp, recipe.gpu_id, sys.stdout, sys.stderr)
    fitted = fit_saved(nlp, folder / "model-best") if recipe.recognizer == "per-label" else None
    shares = run.clock.shares()
    return Trained(
        shares=shares,
        seconds=run.state.seconds,
        peak=run.monitor.peak,
        words=run.state.words,
        texts=run.texts,
        halved=run.state.halved,
        resumed=resumed,
        warning=idle_gpu(run.monitor.gpu_percent(), shares),
        fitted=fitted,
    )


def _follow(make_run: Callable[..., Run], nlp: Language, gpu_id: int, ranks: Ranks) -> None:
    """Be a rank of a training after the first: take the same steps, and write nothing."""
    nlp.config["training"]["logger"] = {"@loggers": "labelwise.TsvLogger.v1", "path": None}
    make_run(None, monitor=Monitor(), ranks=ranks).train(nlp, gpu_id, StringIO(), StringIO())


def fit_saved(nlp: Language, folder: Path) -> Fitted | None:
    """Make a pipeline the one that was saved, fit that on dev, and save what was fitted with it."""
    nlp.from_disk(folder)
    config = nlp.config.interpolate()
    (dev,) = resolve_dot_names(config, [config["training"]["dev_corpus"]])
    fitted = fit(nlp, dev(nlp))
    if fitted:
        write_fitted(folder, fitted)
    return fitted


def _announce(settings: Config, gpu_id: int, device: str, tell: Callable[[str], Any]) -> None:
    """Tell what the user should know before the first step."""
    training = settings.interpolate()["training"]
    steps, rate = training["max_steps"], training["optimizer"]["learn_rate"]
    warmup = rate.get("warmup_steps", 0) if isinstance(rate, dict) else 0
    if 0 < steps < warmup:
        tell(
            f"max_steps is {steps:,}, but the learning rate warms up for {warmup:,} steps, so the pipeline will learn "
            f"little. Remedy: set max_steps well above {warmup:,}, or lower training.optimizer.learn_rate.warmup_steps"
        )
    if gpu_id >= 0:
        tell(f"Training on {device}; scores come every {training['eval_frequency']:,} steps, and after the last one")


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
