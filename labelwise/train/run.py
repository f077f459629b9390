"""Train a pipeline from the partitions of a corpus, in a fixed amount of memory."""

import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training.loop import update_meta
from thinc.api import Config

from labelwise.base.device import gpu_load, use_gpu
from labelwise.base.files import atomic_together, beside, check_replaceable, remove
from labelwise.base.parallel import tree_pss
from labelwise.corpus.manifest import unchanged
from labelwise.corpus.pipeline import check_tokens, strings_of, untaught_labels
from labelwise.corpus.seen_texts import collect_seen, write_seen
from labelwise.corpus.warnings import warnings_about_untaught
from labelwise.train.checkpoint import BEST, CURVE, State, copy, digest_training, read_state, restore, save_checkpoint
from labelwise.train.config import embed_of, is_small, make_pipeline, read_settings, vectors_of
from labelwise.train.held_out import fit
from labelwise.train.loop import Loop
from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Alone, TorchRanks, forked, is_launched
from labelwise.train.recipe import Recipe
from spacy_per_label.calibrate import OUTSIDE, Fitted

Tell = Callable[[str], Any]


class Trained(NamedTuple):
    """What a training took.

    state (State): where it ended: words, seconds.
    texts (dict[str, int]): what became of the texts in the last whole epoch, or in the first so far.
    resumed (int | None): the step that it resumed from; None if it started from the beginning.
    fitted (Fitted | None): what was fitted on dev in the end, of a per-label recognizer.
    """

    state: State
    texts: dict[str, int]
    resumed: int | None
    fitted: Fitted | None


def train_pipeline(
    recipe: Recipe,
    out: Path | str,
    curve: Path | str,
    *,
    resources: Path | str | None = None,
    tell: Tell = lambda _: None,
) -> Trained | None:
    """Train a pipeline; what was at `out` stays until training has ended well.

    In each of several processes that torchrun has started, this is one rank of the training; see `ranks`.

    out (Path | str): the folder for the pipeline.
    curve (Path | str): a TSV file for the scores over time.
    resources (Path | str | None): a TSV file for memory, speed and the GPU's load over time.
    tell (Callable): is told which labels are left out, which step training resumes from, or why it starts over, and
        when memory ran out.
    RAISES (InputError): `out` has something other than a pipeline, the GPU can't be used, the corpus isn't whole, the
        config isn't valid, the pipeline makes other tokens than the corpus has, another process is training to `out`,
        a text doesn't fit into memory, or a process was killed.
    RETURNS (Trained | None): None in ranks that torchrun has started, but for the first.
    """
    outputs = Path(out), Path(curve), Path(resources) if resources else None
    check_replaceable(outputs[0], ("meta.json", "config.cfg"), "pipeline")
    use_gpu(recipe.gpu_id)
    settings = read_settings(recipe)
    checkpoint = outputs[0].with_name(f"{outputs[0].name}.checkpoint")
    with autocasting(settings, recipe.gpu_id):
        if not is_launched():
            return _lead(recipe, settings, checkpoint, Alone(), outputs, tell)
        ranks, trained = TorchRanks(recipe.gpu_id), None
        if ranks.rank == 0:
            trained = _lead(recipe, settings, checkpoint, ranks, outputs, tell)
        else:
            state = ranks.exchange(None)[0]
            _follow(recipe, make_pipeline(recipe, settings), checkpoint, state, ranks)
        ranks.distributed.destroy_process_group()
        return trained


@contextmanager
def autocasting(settings: Config, gpu_id: int) -> Iterator[None]:
    """Make a block in which a GPU autocasts to bf16, where mixed precision has no gradient scaler."""
    if gpu_id < 0 or not settings["system"].get("mixed_precision") or settings["system"].get("grad_scaler"):
        yield
        return
    import torch

    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        yield
    finally:
        torch.set_autocast_dtype("cuda", before)


def _lead(
    recipe: Recipe,
    settings: Config,
    checkpoint: Path,
    ranks: Alone,
    outputs: tuple[Path, Path, Path | None],
    tell: Tell,
) -> Trained:
    """Be the first rank: train, save, and put the pipeline and the files in their places."""
    digest = digest_training(settings, recipe.corpus, recipe.gpu_id)
    with atomic_together(*outputs, folders=outputs[:1]) as (folder, curve, resources):
        settings["paths"] |= {"curve": str(curve), "resources": resources and str(resources)}
        with unchanged(recipe.corpus):
            seen = collect_seen(recipe.corpus)
            nlp = make_pipeline(recipe, settings)
            check_tokens(nlp, recipe.corpus / "train", "merge again: packages, or the config, are other ones")
        for warning in warnings_about_untaught(untaught_labels(nlp)):
            tell(" ".join(warning))
        state = _start(recipe, digest, checkpoint, tell)
        resumed = state.step if state.step >= 0 else None
        ranks.exchange(state)
        kept = {BEST: folder, CURVE: curve}
        if resumed is not None:
            for name, path in kept.items():
                copy(checkpoint / name, path)
        gc.freeze()  # garbage collection needn't look at what is loaded, and so forked ranks share it
        floats = sum(slot.get().size for slot in find_slots(nlp))
        follow = partial(_follow, recipe, nlp, checkpoint, state)
        with nullcontext(ranks) if is_launched() else forked(recipe.workers, floats, follow) as all_ranks:
            ner: Any = nlp.get_pipe("ner")
            loop = make_loop(recipe, nlp, checkpoint, state, all_ranks, tell)
            save = partial(save_pipeline, nlp, folder, outputs[1], strings_of(recipe.corpus, ner.labels))
            _record(loop, kept, checkpoint, recipe.gpu_id, save)
        nlp.from_disk(folder, exclude=["vocab"])  # the saved one lacks the words of the texts
        fitted = None
        if recipe.recognizer == "per-label":
            shifts = OUTSIDE if is_small(recipe) else OUTSIDE[:1]
            fitted = fit(nlp, loop.dev.texts(), shifts, lambda counts: loop.score(counts)[0])
            # A checkpoint may share the file. Saving all anew would give a transformer's config another folder's name.
            path = folder / "ner" / "cfg"
            path.unlink()
            path.write_text(json.dumps(ner.cfg, indent=2, ensure_ascii=False), encoding="utf8")
        write_seen(folder, seen)
    remove(checkpoint / "state.json")  # without it, a checkpoint that is half deleted isn't used
    for left in (checkpoint, beside(checkpoint, "tmp"), beside(checkpoint, "lock")):  # it may be killed while it saves
        remove(left)
    return Trained(state, dict(loop.corpus.counts), resumed, fitted)


def _start(recipe: Recipe, digest: str, checkpoint: Path, tell: Tell) -> State:
    """Find the state to start from, and tell if it isn't the beginning, or the beginning although there is another."""
    found = read_state(checkpoint, digest) if recipe.resume else None
    if found:
        tell(f"Resuming from step {found.step}")
    elif recipe.resume and checkpoint.exists():
        tell(
            "Starting over, because the config, the corpus, the device, code or packages have changed since the "
            "checkpoint was saved. It is kept until this training saves its first one"
        )
    return found or State(digest)


def make_loop(
    recipe: Recipe, nlp: Language, checkpoint: Path, state: State, ranks: Alone, tell: Tell = lambda _: None
) -> Loop:
    """Make a rank's loop, and set all to where the checkpoint was, if it resumes from one."""
    loop = Loop(nlp, recipe.gpu_id, state, ranks, tell)
    if state.step >= 0:
        restore(checkpoint, state, nlp, loop.optimizer)
    return loop


def _follow(recipe: Recipe, nlp: Language, checkpoint: Path, state: State, ranks: Alone) -> None:
    """Be a rank of a training after the first: take the same steps, and write nothing."""
    for _ in make_loop(recipe, nlp, checkpoint, state, ranks).run():
        pass


def _record(loop: Loop, kept: Mapping[str, Path], checkpoint: Path, gpu_id: int, save: Callable[[], None]) -> None:
    """Run a loop, and save the best pipeline, its scores, a checkpoint, and what the machine did.

    kept (Mapping[str, Path]): the best pipeline and the curve, by their names in the checkpoint.
    """
    nlp, state, gpu, loads = loop.nlp, loop.state, gpu_load(gpu_id), list[float]()
    log, close = loop.training["logger"](nlp, sys.stdout, sys.stderr)
    try:
        for info in loop.run():
            if gpu:
                loads.append(gpu())
            if info["score"] is None:
                log(info)
                continue
            spent, seconds = info["spent"], max(info["spent"]["seconds"], 1e-9)
            info["resources"] = {
                "seconds": f"{state.seconds:.1f}",
                "step": state.step,
                "words_per_second": round(spent["words"] / seconds),
                "memory_mb": round(tree_pss(os.getpid()) / 2**20),
                "waiting_percent": round(100 * spent["waiting"] / seconds),
            }
            if gpu:
                info["resources"]["gpu_percent"] = round(sum(loads) / len(loads))
                loads.clear()
            log(info)
            if state.scores[-1] == max(state.scores):
                update_meta(loop.training, nlp, info)
                with nlp.use_params(loop.optimizer.averages):
                    save()
            save_checkpoint(checkpoint, state, nlp, loop.optimizer, kept)
    finally:
        close()


def save_pipeline(nlp: Language, folder: Path, curve: Path, strings: list[str]) -> None:
    """Save a pipeline in a new folder, whose files a checkpoint may share, so that it holds nothing of its training.

    Equal trainings give equal bytes: spaCy saves scores in a set's order, and where the curve was being written. And it
    would save the words of the texts with the vocabulary, which may be nobody else's business; the model knows hashes.

    strings (list[str]): those that the pipeline needs.
    """
    shutil.rmtree(folder, ignore_errors=True)
    nlp.meta["performance"] = json.loads(json.dumps(nlp.meta["performance"], sort_keys=True))
    paths, system = nlp.config["paths"], nlp.config["system"]
    paths |= {"curve": str(curve), "resources": None}
    if vectors_of(nlp.config):  # they are in the pipeline now
        embed_of(nlp.config)["vectors"] = None
    if system.get("mixed_precision"):
        # What was trained in bf16 predicts in fp32: fp16, in which it would, is another precision.
        system["mixed_precision"] = system["grad_scaler"]
    nlp.to_disk(folder)
    if not nlp.vocab.vectors.size:
        (folder / "vocab" / "strings.json").write_text(json.dumps(strings, ensure_ascii=False), encoding="utf8")
