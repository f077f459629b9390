"""Train a pipeline from the partitions of a corpus, in a fixed amount of memory."""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training.loop import create_before_to_disk_callback, update_meta
from thinc.api import Config

from labelwise.corpus.manifest import unchanged
from labelwise.corpus.pipeline import check_tokens
from labelwise.corpus.seen_texts import collect_seen, write_seen
from labelwise.device import gpu_load, use_gpu
from labelwise.errors import InputError
from labelwise.files import beside, check_replaceable, remove, staged_together, workspace
from labelwise.parallel import tree_pss
from labelwise.train.calibrate import Fitted, fit, write_fitted
from labelwise.train.checkpoint import BEST, CURVE, State, copy, digest_training, read_state, restore, save_checkpoint
from labelwise.train.config import make_pipeline, read_settings, source_folders
from labelwise.train.loop import Loop
from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Alone, TorchRanks, forked, is_launched
from labelwise.train.recipe import Recipe
from labelwise.train.tidy import tidy_pipeline

RESOURCES = "resources.tsv"
Tell = Callable[[str], Any]


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
    tell: Tell = lambda message: None,
) -> Trained | None:
    """Train a pipeline; what was at `out` stays until training has ended well.

    In each of several processes that torchrun has started, this is one rank of the training; see `ranks`.

    out (Path | str): the folder for the pipeline.
    curve (Path | str): a TSV file for the scores over time.
    resources (Path | str | None): a TSV file for memory, speed and the GPU's load over time.
    tell (Callable): is told, before the first step, which step training resumes from, or why it starts over; that
        rounding may differ from the command's; and that the learning rate will still be warming up at the end.
    RAISES (InputError): `out` has something other than a pipeline, the GPU can't be used, the corpus isn't whole, the
        config isn't valid, the pipeline makes other tokens than the corpus has, another process is training to `out`,
        memory ran out, or a process was killed.
    RETURNS (Trained | None): None in ranks that torchrun has started, but for the first.
    """
    out = Path(out)
    check_replaceable(out, ("meta.json", "config.cfg"), "pipeline")
    use_gpu(recipe.gpu_id)
    if recipe.gpu_id < 0 and os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        tell(
            "Products of matrices may be computed by several threads, and so be rounded otherwise than by the command; "
            "for the same bytes, set OPENBLAS_NUM_THREADS=1 before numpy is loaded"
        )
    settings = read_settings(recipe)
    digest = digest_training(settings, recipe.corpus, recipe.gpu_id)
    with computing(settings, recipe.gpu_id):
        ranks = TorchRanks(recipe.gpu_id) if is_launched() else Alone()
        check_alike(ranks, digest)
        trained = None
        if ranks.rank == 0:
            files = (out, Path(curve), Path(resources) if resources else None)
            trained = _lead(recipe, settings, digest, ranks, files, tell)
        else:
            state = ranks.exchange(None)[0]
            _follow(recipe, make_pipeline(recipe, settings), out, state, ranks)
        if is_launched():
            ranks.distributed.destroy_process_group()  # type: ignore[attr-defined]
        return trained


@contextmanager
def computing(settings: Config, gpu_id: int) -> Iterator[None]:
    """Make a block in which a GPU multiplies fp32 in TF32, which is enough for training, and autocasts to bf16.

    bf16 is meant where mixed precision has no gradient scaler.
    """
    if gpu_id < 0:
        yield
        return
    import torch

    matmul, dtype = torch.backends.cuda.matmul, torch.get_autocast_dtype("cuda")
    before, matmul.allow_tf32 = matmul.allow_tf32, True
    if settings["system"].get("mixed_precision") and not settings["system"].get("grad_scaler"):
        torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        yield
    finally:
        matmul.allow_tf32 = before
        torch.set_autocast_dtype("cuda", dtype)


def check_alike(ranks: Alone, digest: str) -> None:
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


def checkpoint_of(out: Path) -> Path:
    """Name the folder of a training's checkpoint, which is beside that of the pipeline."""
    return out.with_name(f"{out.name}.checkpoint")


def _lead(
    recipe: Recipe,
    settings: Config,
    digest: str,
    ranks: Alone,
    outputs: tuple[Path, Path, Path | None],
    tell: Tell,
) -> Trained:
    """Be the first rank: train in a folder of its own, and put the pipeline and the files in their places."""
    out, curve, resources = outputs
    with staged_together(out, curve, resources, folders=[out]) as files, workspace(out) as folder:
        settings["paths"] |= {"curve": str(folder / CURVE), "resources": str(folder / RESOURCES)}
        with unchanged(recipe.corpus):
            seen = collect_seen(recipe.corpus, source_folders(settings))
            nlp = make_pipeline(recipe, settings)
            check_tokens(nlp, recipe.corpus / "train", "merge again: packages, or the config, are other ones")
        state = _start(recipe, settings, digest, checkpoint_of(out), tell)
        resumed = state.step if state.step >= 0 else None
        ranks.exchange(state)
        if resumed is not None:
            for name in (CURVE, BEST):
                copy(checkpoint_of(out) / name, folder / name)
        gc.freeze()  # garbage collection needn't look at what is loaded, and so forked ranks share it
        floats = sum(slot.get().size for slot in find_slots(nlp))
        follow = partial(_follow, recipe, nlp, out, state)
        with nullcontext(ranks) if is_launched() else forked(recipe.workers, floats, follow) as all_ranks:
            loop = make_loop(recipe, nlp, out, state, all_ranks, tell)
            peak = _record(loop, folder, checkpoint_of(out), recipe.gpu_id)
        (folder / RESOURCES).touch()  # a training that only finished has none
        fitted = None
        if recipe.recognizer == "per-label":
            nlp.from_disk(folder / BEST)
            if fitted := fit(nlp, loop.dev.texts()):
                write_fitted(folder / BEST, fitted)
        tidy_pipeline(folder / BEST, curve, recipe.corpus, nlp)
        write_seen(folder / BEST, seen)
        for name, file in zip((BEST, CURVE, RESOURCES), files, strict=True):
            if file:
                shutil.move(folder / name, file)
    for left in (checkpoint_of(out), beside(checkpoint_of(out), "tmp")):  # of a training that was killed while it saved
        remove(left)
    return Trained(state.seconds, peak, state.words, dict(loop.corpus.counts), state.halved, resumed, fitted)


def _start(recipe: Recipe, settings: Config, digest: str, checkpoint: Path, tell: Tell) -> State:
    """Find the state to start from, and tell what the user should know before the first step."""
    training, sub_batch = settings.interpolate()["training"], settings["system"]["sub_batch"]
    steps, rate = training["max_steps"], training["optimizer"]["learn_rate"]
    warmup = rate.get("warmup_steps", 0) if isinstance(rate, dict) else 0
    if 0 < steps < warmup:
        tell(
            f"max_steps is {steps:,}, but the learning rate warms up for {warmup:,} steps, so the pipeline will learn "
            f"little. Remedy: set max_steps well above {warmup:,}, or lower training.optimizer.learn_rate.warmup_steps"
        )
    found = read_state(checkpoint, digest) if recipe.resume else None
    if found:
        tell(f"Resuming from step {found.step}")
        found.sub_batch = min(filter(None, (found.sub_batch, sub_batch)), default=0)
    elif recipe.resume and checkpoint.exists():
        tell(
            "Starting over, because the config, the corpus, the device, code or packages have changed since the "
            "checkpoint was saved. It is kept until this training saves its first one"
        )
    return found or State(digest, sub_batch=sub_batch)


def make_loop(
    recipe: Recipe, nlp: Language, out: Path, state: State, ranks: Alone, tell: Tell = lambda message: None
) -> Loop:
    """Make a rank's loop, and set all to where the checkpoint was, if it resumes from one."""
    loop = Loop(nlp, recipe.gpu_id, state, ranks, tell)
    if state.step >= 0:
        restore(checkpoint_of(out), state, nlp, loop.optimizer)
    return loop


def _follow(recipe: Recipe, nlp: Language, out: Path, state: State, ranks: Alone) -> None:
    """Be a rank of a training after the first: take the same steps, and write nothing."""
    for _ in make_loop(recipe, nlp, out, state, ranks).run():
        pass


def _record(loop: Loop, folder: Path, checkpoint: Path, gpu_id: int) -> int:
    """Run a loop, and save the best pipeline, its scores, a checkpoint, and what the machine did.

    RETURNS (int): the most memory that was seen, in bytes.
    """
    nlp, training, state, gpu = loop.nlp, loop.training, loop.state, gpu_load(gpu_id)
    peak, loads = 0, list[float]()
    log, close = training["logger"](nlp, sys.stdout, sys.stderr)
    try:
        for info in loop.run():
            if gpu:
                loads.append(gpu())
            if info["score"] is None:
                log(info)
                continue
            memory, spent = tree_pss(os.getpid()), info["spent"]
            peak = max(peak, memory)
            info["resources"] = {
                "seconds": f"{state.seconds:.1f}",
                "step": state.step,
                "words_per_second": round(spent["words"] / max(spent["seconds"], 1e-9)),
                "memory_mb": round(memory / 2**20),
                "waiting_percent": round(100 * spent["waiting"] / max(spent["seconds"], 1e-9)),
            }
            if gpu:
                info["resources"]["gpu_percent"] = round(sum(loads) / len(loads))
                loads.clear()
            log(info)
            update_meta(training, nlp, info)
            if state.scores[-1] == max(state.scores):
                shutil.rmtree(folder / BEST, ignore_errors=True)
                with nlp.use_params(loop.optimizer.averages):
                    create_before_to_disk_callback(training["before_to_disk"])(nlp).to_disk(folder / BEST)
            save_checkpoint(checkpoint, state, nlp, loop.optimizer, folder)
    finally:
        close()
    return peak
