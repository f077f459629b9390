"""Train a pipeline with spaCy's own loop, from the partitions of a corpus, in a fixed amount of memory."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from spacy.training.loop import train as spacy_train
from thinc.api import Config
from thinc.config import ConfigValidationError

from labelwise.checkpoints import Checkpoints, copy
from labelwise.device import device_name, use_gpu
from labelwise.errors import InputError
from labelwise.loop import OnOom, Run
from labelwise.manifest import MANIFEST, check_whole
from labelwise.monitor import Monitor, idle_gpu, open_nvml
from labelwise.output import replace, staged, workspace
from labelwise.pipeline import make_pipeline, read_settings
from labelwise.tidy import tidy_pipeline


class Trained(NamedTuple):
    """What a training took.

    shares (dict[str, float]): of the time, by phase; the largest first.
    seconds (float): in the loop.
    peak (int): bytes of memory.
    words (int): of all batches.
    texts (dict[str, int]): what became of the texts in the last whole epoch, or in the first so far.
    halved (int): how often memory ran out and training went on.
    resumed (int | None): the step that it went on from; None if it began at the beginning.
    discarded (bool): there were checkpoints, but of another training.
    warning (str): why the GPU was idle, if it was.
    """

    shares: dict[str, float]
    seconds: float
    peak: int
    words: int
    texts: dict[str, int]
    halved: int
    resumed: int | None
    discarded: bool
    warning: str


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
    batch_size: Path | None = None,
    on_oom: OnOom = "stop",
    resume: bool = False,
) -> Trained:
    """Train a pipeline; what stood at `out` stays until training has ended well.

    resources (Path | None): a TSV file for memory, processors and GPU over time.
    overrides (Mapping): values of the config, by dotted name.
    init_from (str): a pipeline to begin with, by name or folder; see `pipeline.source_components`.
    batch_size (Path | None): what scripts.find_batch_size has written; used if it is of this device.
    on_oom (str): when memory runs out, "stop", or "halve" what the device is given, and go on.
    resume (bool): go on from the last checkpoint, if there is one of a training with the same config and corpus. They
        are in a folder beside `out`, and deleted when training has ended well.
    RAISES (InputError): the GPU can't be used, the corpus isn't whole, the config isn't valid, or memory ran out.
    """
    use_gpu(gpu_id)
    check_whole(corpus)
    settings, transformer = read_settings(config, corpus, overrides or {}, init_from)
    if device_size := read_batch_size(batch_size, gpu_id, settings):
        settings["training"]["batcher"]["device_size"] = device_size
    checkpoints = Checkpoints(out.with_name(f"{out.name}.checkpoints"), fingerprint(settings, corpus, gpu_id))
    with workspace(out) as folder:
        folder.mkdir()
        found = checkpoints.last() if resume else None
        if found:
            copy(found[0] / "curve.tsv", folder / "curve.tsv")
        settings["paths"]["curve"] = str(folder / "curve.tsv")
        try:
            nlp = make_pipeline(settings, transformer, gpu_id)
        except ConfigValidationError as error:
            raise InputError(f"{config}: {error}") from error
        from_step = found[1].step if found else None
        discarded = resume and found is None and bool(checkpoints.all())
        if found is None:
            checkpoints.delete()
        monitor = Monitor(folder / "resources.tsv", open_nvml(gpu_id))
        run = Run(folder, monitor=monitor, checkpoints=checkpoints, resumed=found, on_oom=on_oom)
        with monitor, run.installed():
            spacy_train(nlp, folder, use_gpu=gpu_id)
        tidy_pipeline(folder / "model-best", curve, nlp, transformer.get("precision", ""))
        for name, path in (("curve.tsv", curve), ("resources.tsv", resources)):
            if path:
                with staged(path) as temporary:
                    shutil.copyfile(folder / name, temporary)
        replace(folder / "model-best", out)
    checkpoints.delete()
    shares = run.clock.shares()
    return Trained(
        shares=shares,
        seconds=run.state.seconds,
        peak=monitor.peak,
        words=run.state.words,
        texts=dict(getattr(run.corpus, "last_counts", {}) or getattr(run.corpus, "counts", {})),
        halved=run.state.halved,
        resumed=from_step,
        discarded=discarded,
        warning=idle_gpu(monitor.gpu_percent(), shares),
    )


def read_batch_size(path: Path | None, gpu_id: int, settings: Config) -> int:
    """Read what scripts.find_batch_size has found; 0 if there is nothing, or it is of another device or pipeline."""
    if path is None or not path.is_file():
        return 0
    found = json.loads(path.read_text(encoding="utf8"))
    same = found["device"] == device_name(gpu_id) and found["pipeline"] == pipeline_digest(settings)
    return found["size"] if same else 0


def pipeline_digest(settings: Config) -> str:
    """Give what is the same for pipelines that need the same memory."""
    parts = [settings["components"], settings["training"]["batcher"].get("unit")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def fingerprint(settings: Config, corpus: Path, gpu_id: int) -> str:
    """Give what is the same for trainings that make the same steps: by config, corpus, code, packages and device.

    What the device is given at a time isn't in it, which is what to change when memory has run out.
    """
    settings = settings.copy()
    settings["training"]["batcher"].pop("device_size", None)
    packages = ["spacy", "thinc", "numpy", "torch", "transformers", "spacy_transformers"]
    parts = [settings.to_str(interpolate=False), (corpus / MANIFEST).read_text(encoding="utf8"), device_name(gpu_id)]
    parts += [f"{name} {version(name)}" for name in packages if find_spec(name)]
    parts += [path.read_text(encoding="utf8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
