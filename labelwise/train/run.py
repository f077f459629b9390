"""Train a pipeline with spaCy's own loop, from the partitions of a corpus, in a fixed amount of memory."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training.loop import train as spacy_train
from spacy.util import resolve_dot_names
from thinc.api import Config
from thinc.config import ConfigValidationError

from labelwise.common.code import digest_files
from labelwise.common.device import device_name, use_gpu
from labelwise.common.errors import InputError
from labelwise.common.memory import rare_collections
from labelwise.common.outputs import check_replaceable, replace, staged_files, workspace
from labelwise.common.portable import is_portable
from labelwise.corpus.manifest import MANIFEST, check_whole
from labelwise.train.calibration import Fitted, Optimize, fit, write_fitted
from labelwise.train.checkpoints import Checkpoints, State, copy
from labelwise.train.completed import BOOKS, TEACHER, is_completed, is_partial
from labelwise.train.loop import OnOom, Run
from labelwise.train.monitor import Monitor, idle_gpu, open_nvml
from labelwise.train.parameters import find_slots
from labelwise.train.pipeline import Recognizer, freeze_components, make_pipeline, read_settings
from labelwise.train.ranks import Ranks, TorchRanks, forked, is_launched
from labelwise.train.tidy import tidy_pipeline

# The folders of this package that a training depends on.
CODE = ("common", "corpus", "recognizer", "train")


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
    completed: Path | None = None,
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
    completed (Path | None): the folder of a completion, if spaCy's ner is to learn from texts that are annotated for
        some labels only; see `complete.run`.
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
    check_whole(corpus)
    if completed and is_completed(completed, corpus):
        init_from = str(completed / TEACHER)
    else:
        completed = None
    settings, transformer = read_settings(config, corpus, overrides or {}, init_from, recognizer)
    read_completed(settings, corpus, recognizer, completed)
    if freeze:
        freeze_components(settings)
    if device_size := read_batch_size(batch_size, gpu_id, settings):
        settings["training"]["batcher"]["device_size"] = device_size
    checkpoints = Checkpoints(out.with_name(f"{out.name}.checkpoints"), facts_of(settings, corpus, gpu_id, completed))
    skip_first = _skips_first(settings, init_from)
    launched = TorchRanks(gpu_id) if is_launched() else None
    if launched and launched.rank:
        (found,) = [found for found in launched.exchange(None) if found]
        other = Run(None, monitor=Monitor(), ranks=launched, resumed=found[0], on_oom=on_oom, skip_first=skip_first)
        _follow(other, make_pipeline(settings, transformer, gpu_id, freeze=freeze), gpu_id)
        launched.close()
        return None
    with workspace(out) as folder:
        folder.mkdir()
        with staged_files(curve, resources) as files:
            found = _find_start(checkpoints, resume, tell)
            if launched:
                launched.exchange((found,))
            settings["paths"]["curve"] = str(folder / "curve.tsv")
            try:
                nlp = make_pipeline(settings, transformer, gpu_id, freeze=freeze)
            except ConfigValidationError as error:
                raise InputError(f"{config}: {error}") from error
            monitor = Monitor(folder / "resources.tsv", open_nvml(gpu_id))
            run = Run(
                folder,
                monitor=monitor,
                checkpoints=checkpoints,
                resumed=found,
                on_oom=on_oom,
                skip_first=skip_first,
            )
            fitted = optimize if recognizer == "per-label" else None
            trained = _run(run, nlp, folder, gpu_id, found, fitted, launched or workers)
            tidy_pipeline(folder / "model-best", curve, nlp, transformer.get("precision", ""))
            for name, file in zip(("curve.tsv", "resources.tsv"), files, strict=True):
                if file:
                    shutil.copyfile(folder / name, file)
        # The pipeline comes last: where it is, the rest is, too.
        replace(folder / "model-best", out)
        checkpoints.delete()
    if launched:
        launched.close()
    return trained


def _run(
    run: Run,
    nlp: Language,
    folder: Path,
    gpu_id: int,
    found: tuple[Path, State] | None,
    optimize: Optimize | None,
    ranks: TorchRanks | int,
) -> Trained:
    """Train in a folder, from a checkpoint if one was found, and fit what is fitted on dev.

    optimize (str | None): None if nothing is to be fitted.
    ranks (TorchRanks | int): the processes that torchrun has started, or the number of those to fork.
    """

    def follow(ranks: Ranks) -> None:
        """Be another rank of the same training."""
        _follow(run.as_rank(ranks), nlp, gpu_id)

    from_step = found[1].step if found else None  # training moves it
    if found:
        copy(found[0] / "curve.tsv", folder / "curve.tsv")
    floats = sum(slot.get().size for slot in find_slots(nlp))
    processes = forked(ranks, floats, follow) if isinstance(ranks, int) else nullcontext(ranks)
    with rare_collections(), processes as run.ranks, run.monitor, run.installed():
        spacy_train(nlp, folder, use_gpu=gpu_id, stdout=sys.stdout, stderr=sys.stderr)
    fitted = None if optimize is None else _fit(nlp, folder / "model-best", optimize)
    shares = run.clock.shares()
    return Trained(
        shares=shares,
        seconds=run.state.seconds,
        peak=run.monitor.peak,
        words=run.state.words,
        texts=dict(getattr(run.corpus, "last_counts", {}) or getattr(run.corpus, "counts", {})),
        halved=run.state.halved,
        resumed=from_step,
        warning=idle_gpu(run.monitor.gpu_percent(), shares),
        fitted=fitted,
    )


def _follow(run: Run, nlp: Language, gpu_id: int) -> None:
    """Be a rank of a training after the first: take the same steps, and write nothing."""
    nlp.config["training"]["logger"] = {"@loggers": "labelwise.TsvLogger.v1", "path": None}
    with rare_collections(), run.installed():
        spacy_train(nlp, None, use_gpu=gpu_id, stdout=StringIO(), stderr=StringIO())


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


def read_completed(settings: Config, corpus: Path, recognizer: Recognizer, completed: Path | None) -> None:
    """Have spaCy's ner read completed texts, in place.

    RAISES (InputError): there are none, and some text isn't complete for all labels, so that the ner would see entities
        everywhere: nothing tells it what isn't one.
    """
    reader = settings["corpora"]["train"]
    if completed:
        reader["path"] = str(completed / "train")
    elif recognizer == "ner" and reader["coverage"] == "by-label" and is_partial(corpus / "train"):
        policies = json.loads((corpus / MANIFEST).read_text(encoding="utf8"))["settings"]["policies"]
        if policies["coverage"] == "by-label":
            raise InputError(
                "recognizer ner: texts in train aren't complete for all labels, and spaCy's ner can't learn from them "
                "as they are. Complete them (scripts.complete, then --completed), or take recognizer per-label, or set "
                "coverage to drop or outside"
            )


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


def read_batch_size(path: Path | None, gpu_id: int, settings: Config) -> int:
    """Read what scripts.find_batch_size has found; 0 if there is nothing, or it is for another device or pipeline."""
    if path is None or not path.is_file():
        return 0
    try:
        found = json.loads(path.read_text(encoding="utf8"))
        same = found["device"] == device_name(gpu_id) and found["pipeline"] == pipeline_digest(settings)
        size = found["size"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not what scripts.find_batch_size writes ({error!r}); run it again") from error
    return size if same else 0


def pipeline_digest(settings: Config) -> str:
    """Return a digest that is the same for pipelines that need the same memory."""
    facts = [settings["components"], settings["training"]["batcher"].get("unit")]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def facts_of(settings: Config, corpus: Path, gpu_id: int, completed: Path | None = None) -> dict[str, str]:
    """List what is the same for trainings that take the same steps: config, corpus, device, packages and code.

    What the device is given at a time isn't among them, as that is what to change when memory has run out.
    RETURNS (dict[str, str]): digests, names and versions, by what they belong to, such as "labelwise/train/loop.py".
    """
    settings = settings.copy()
    settings["training"]["batcher"].pop("device_size", None)
    packages = ["spacy", "thinc", "numpy", "torch", "transformers", "spacy_transformers"]
    return {
        "the config": hashlib.sha256(settings.to_str(interpolate=False).encode()).hexdigest(),
        "the corpus": hashlib.sha256((corpus / MANIFEST).read_bytes()).hexdigest(),
        **({"the completion": hashlib.sha256((completed / BOOKS).read_bytes()).hexdigest()} if completed else {}),
        "the device": device_name(gpu_id),
        **({"portable": "yes"} if is_portable() else {}),
        **{name: version(name) for name in packages if find_spec(name)},
        **digest_files(CODE),
    }
