"""Train a pipeline from the partitions of a corpus, in a fixed amount of memory."""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from io import StringIO
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.util import resolve_dot_names
from thinc.api import Config

from labelwise.corpus.manifest import unchanged
from labelwise.corpus.pipeline import check_tokens
from labelwise.corpus.seen_texts import collect_seen, write_seen
from labelwise.device import device_name, gpu_load, use_gpu
from labelwise.errors import InputError
from labelwise.files import check_replaceable, staged_together, workspace
from labelwise.train.batch_size import read_batch_size
from labelwise.train.calibrate import Fitted, fit, write_fitted
from labelwise.train.checkpoint import Checkpoints, State, copy, digest_training
from labelwise.train.config import make_pipeline, read_settings, source_folders, transformers_of
from labelwise.train.loop import Loop
from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Alone, TorchRanks, forked, is_launched, share_parameters
from labelwise.train.recipe import Recipe
from labelwise.train.tidy import tidy_pipeline


class Trained(NamedTuple):
    """What a training took.

    seconds (float): of all steps.
    peak (int): bytes of memory.
    words (int): of all batches.
    texts (dict[str, int]): what became of the texts in the last whole epoch, or in the first so far.
    halved (int): how often memory ran out and training continued.
    resumed (int | None): the step that it resumed from; None if it started from the beginning.
    fitted (Fitted | None): what was fitted on dev in the end, of a per-label recognizer.
    """

    seconds: float
    peak: int
    words: int
    texts: dict[str, int]
    halved: int
    resumed: int | None
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
    resources (Path | str | None): a TSV file for memory, speed and the GPU's load over time.
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
    settings = read_settings(recipe)
    if words := read_batch_size(recipe.batch_size, recipe.gpu_id, settings):
        settings["labelwise"]["sub_batch"] = words
    digest = digest_training(settings, recipe.corpus, recipe.gpu_id)
    with computing(settings, recipe.gpu_id):
        if not is_launched():
            return _lead(recipe, settings, digest, Alone(), (out, curve, resources), tell)
        ranks = TorchRanks(recipe.gpu_id)
        _compare(ranks, digest)
        trained = None
        if ranks.rank == 0:
            trained = _lead(recipe, settings, digest, ranks, (out, curve, resources), tell)
        else:
            (found,) = next(found for found in ranks.exchange(None) if found)
            nlp = make_pipeline(recipe, settings)
            share_parameters(find_slots(nlp), ranks)
            _follow(recipe, settings, nlp, found, ranks)
        ranks.distributed.destroy_process_group()
        return trained


@contextmanager
def computing(settings: Config, gpu_id: int) -> Iterator[None]:
    """Make a block in which a GPU multiplies fp32 in TF32, which is enough for training, and autocasts to bf16.

    bf16 is meant where a transformer has mixed precision, but no gradient scaler.
    """
    if gpu_id < 0 or not (models := transformers_of(settings)):
        yield
        return
    import torch

    matmul, dtype = torch.backends.cuda.matmul, torch.get_autocast_dtype("cuda")
    before, matmul.allow_tf32 = matmul.allow_tf32, True
    if models[0].get("mixed_precision") and not models[0].get("grad_scaler_config", {}).get("enabled", True):
        torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        yield
    finally:
        matmul.allow_tf32 = before
        torch.set_autocast_dtype("cuda", dtype)


def _compare(ranks: Alone, digest: str) -> None:
    """Check that all ranks would take the same steps.

    RAISES (InputError): in all of them, if one has another config, corpus, code or package, with its host.
    """
    (first, own), *others = ranks.exchange((gethostname(), digest))
    for rank, (host, other) in enumerate(others, 1):
        if other != own:
            raise InputError(
                f"rank {rank}, on {host}, has another config, corpus, device, code or package than rank 0, on {first}. "
                "Remedy: the same command, code and packages on all machines"
            )


def _lead(
    recipe: Recipe,
    settings: Config,
    digest: str,
    ranks: Alone,
    outputs: tuple[Path, Path, Path | None],
    tell: Callable[[str], Any],
) -> Trained:
    """Be the first rank: train in a folder of its own, and put the pipeline and the files in their places."""
    out, curve, resources = outputs
    checkpoints = Checkpoints(out.with_name(f"{out.name}.checkpoints"), digest)
    with (
        staged_together(out, curve, resources, folders=[out]) as files,
        workspace(out) as folder,
    ):
        with unchanged(recipe.corpus):
            seen = collect_seen(recipe.corpus, source_folders(settings).values())
            found = _find_start(checkpoints, recipe.resume, tell)
            ranks.exchange((found,))
            settings["paths"]["curve"] = str(folder / "curve.tsv")
            settings["paths"]["resources"] = str(folder / "resources.tsv")
            nlp = make_pipeline(recipe, settings)
            check_tokens(nlp, recipe.corpus / "train", "merge again: packages, or the config, are other ones")
        slots = find_slots(nlp)
        share_parameters(slots, ranks)
        if found:
            copy(found[0] / "curve.tsv", folder / "curve.tsv")
        follow = partial(_follow, recipe, settings, nlp, found)
        floats = sum(slot.get().size for slot in slots)
        _announce(settings, recipe.gpu_id, tell)
        together: AbstractContextManager[Alone] = nullcontext(ranks)
        if not is_launched():
            together = forked(recipe.workers, floats, follow)
        gc.freeze()  # garbage collection needn't look at what is loaded, and so forked ranks share it
        with together as all_ranks:
            options: dict[str, Any] = {"checkpoints": checkpoints, "tell": tell, "busy": gpu_load(recipe.gpu_id)}
            loop = _make_loop(recipe, settings, nlp, folder, found, all_ranks, **options)
            loop.run(sys.stdout, sys.stderr)
        (folder / "resources.tsv").touch()
        fitted = fit_saved(nlp, folder / "model-best") if recipe.recognizer == "per-label" else None
        tidy_pipeline(folder / "model-best", curve, nlp)
        write_seen(folder / "model-best", seen)
        for name, file in zip(("model-best", "curve.tsv", "resources.tsv"), files, strict=True):
            if file:
                shutil.move(folder / name, file)
    checkpoints.delete()
    state, corpus = loop.state, loop.corpus
    return Trained(
        seconds=state.seconds,
        peak=loop.peak,
        words=state.words,
        texts=dict(getattr(corpus, "last_counts", {}) or getattr(corpus, "counts", {})),
        halved=state.halved,
        resumed=loop.first - 1 if found else None,
        fitted=fitted,
    )


def _follow(recipe: Recipe, settings: Config, nlp: Language, found: tuple[Path, State] | None, ranks: Alone) -> None:
    """Be a rank of a training after the first: take the same steps, and write nothing."""
    nlp.config["training"]["logger"] = {"@loggers": "labelwise.Logger.v1", "path": None}
    _make_loop(recipe, settings, nlp, None, found, ranks).run(StringIO(), StringIO())


def _make_loop(
    recipe: Recipe,
    settings: Config,
    nlp: Language,
    folder: Path | None,
    found: tuple[Path, State] | None,
    ranks: Alone,
    **options: Any,
) -> Loop:
    """Make a rank's loop."""
    checkpoint, state = found or (None, State())
    state.sub_batch = min(filter(None, (state.sub_batch, settings["labelwise"]["sub_batch"])), default=0)
    # What hasn't learnt anything isn't evaluated.
    options |= {"ranks": ranks, "state": state, "resumed": checkpoint, "skip_first": not recipe.init_from}
    return Loop(nlp, recipe.gpu_id, folder, **options)


def fit_saved(nlp: Language, folder: Path) -> Fitted | None:
    """Make a pipeline the one that was saved, fit that on dev, and save what was fitted with it."""
    nlp.from_disk(folder)
    config = nlp.config.interpolate()
    (dev,) = resolve_dot_names(config, [config["training"]["dev_corpus"]])
    fitted = fit(nlp, dev(nlp))
    if fitted:
        write_fitted(folder, fitted)
    return fitted


def _announce(settings: Config, gpu_id: int, tell: Callable[[str], Any]) -> None:
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
        every = training["eval_frequency"]
        tell(f"Training on {device_name(gpu_id)}; scores come every {every:,} steps, and after the last one")


def _find_start(checkpoints: Checkpoints, resume: bool, tell: Callable[[str], Any]) -> tuple[Path, State] | None:
    """Find the checkpoint to resume from, if there should be one, and tell from where or why training starts."""
    found = checkpoints.last() if resume else None
    if found:
        tell(f"Resuming from step {found[1].step}")
    elif resume and checkpoints.all():
        tell(
            "Starting over, because the config, the corpus, the device, code or packages have changed since the "
            "checkpoint was saved. It is kept until this training saves its first one"
        )
    return found
