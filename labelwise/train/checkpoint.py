"""Checkpoints of a training, with all that its next step depends on; it resumes to the bit.

spaCy saves pipelines, with averages instead of the trained parameters, and without optimizer state and position in the
corpus. A checkpoint has those, and the best pipeline so far. A step's randomness follows from its number.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
from thinc.api import get_current_ops

from labelwise.base.environment import KERNELS
from labelwise.base.files import atomic, digest_code, link, remove, sibling
from labelwise.corpus.record import digest_corpus
from labelwise.train.config import FittedConfig
from labelwise.train.gpu import device_name
from labelwise.train.parameters import copied, find_scalers
from labelwise.train.training import State, Training

# What a training depends on: folders of this package, and packages.
CODE = ("corpus", "train", "../spacy_per_label")
PACKAGES = ("spacy", "thinc", "numpy", "torch", "transformers", "spacy_transformers")
CURVE, BEST = "curve.tsv", "model-best"
STATES = ("mom1", "mom2", "averages")  # of thinc's optimizer, arrays by parameter


def digest_training(fitted: FittedConfig) -> str:
    """Digest all that decides a training's steps: config, pretrained weights, corpus, device, packages, code."""
    config, settings = fitted.config, fitted.settings
    facts = [
        settings.to_str(interpolate=False),
        digest_corpus(config.corpus),
        device_name(config.gpu_id),
        *(f"{name} {os.environ.get(name)}" for name in KERNELS),
        digest_code(CODE, (f"{name} {version(name)}" for name in PACKAGES if find_spec(name))),
    ]
    if weights := settings.interpolate().get("initialize", {}).get("init_tok2vec"):
        facts.append(hashlib.sha256(Path(weights).read_bytes()).hexdigest())
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def read_state(checkpoint: Path, digest: str) -> State | None:
    """Read the state of a checkpoint; None without one, or for another training."""
    try:
        state = msgspec.json.decode((checkpoint / "state.json").read_bytes(), type=State)
    except (FileNotFoundError, msgspec.MsgspecError):  # another version wrote it
        return None
    return state if state.digest == digest else None


def has_ended(checkpoint: Path) -> bool:
    """Return whether a checkpoint is of a finished training; see `end_checkpoint`."""
    return not (checkpoint / "arrays.npz").is_file()


def end_checkpoint(training: Training, out: Path, *, keep: bool) -> None:
    """Delete the checkpoint of a finished training, or keep what another goal needs: the curve, and links to `out`."""
    checkpoint = training.checkpoint
    saving = (sibling(checkpoint, kind) for kind in ("tmp", "lock"))  # it may be killed while it saves
    removed = [checkpoint / name for name in ("arrays.npz", BEST)] if keep else [checkpoint]
    for path in (checkpoint / "state.json", *removed, *saving):  # without the state, the rest isn't used
        remove(path)
    if keep:
        copy(out, checkpoint / BEST)
        (checkpoint / "state.json").write_bytes(msgspec.json.encode(training.state))


class CheckpointSaver:
    """Saves checkpoints in a thread: a transformer's takes seconds to write."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._saving: Future[None] | None = None

    def save(self, files: Mapping[Path, bytes] = {}) -> None:
        """Begin to save the training's current state, its best pipeline and its curve.

        Pipeline and curve mustn't change until `wait` returns. Until then, all parameters and moments are in memory
        twice.

        files (Mapping[Path, bytes]): unwritten files of the best pipeline.
        RAISES: the errors of `wait` for the previous one.
        """
        self.wait()
        state, updates = self.training.state, self.training.optimizer.nr_update
        state.updates = [updates.get(parameter.key, 0) for parameter in self.training.parameters]
        arrays = take_arrays(self.training)
        self._saving = self._thread.submit(self._write, msgspec.json.encode(state), arrays, files)

    def wait(self) -> None:
        """Wait until the last checkpoint is saved.

        RAISES (InputError): if the disk is full, or another process saves there; other errors of saving, too.
        """
        saving, self._saving = self._saving, None
        if saving:
            saving.result()

    def _write(self, state: bytes, arrays: Mapping[str, np.ndarray], files: Mapping[Path, bytes]) -> None:
        for path, content in files.items():
            path.write_bytes(content)
        with atomic(self.training.checkpoint, folders=[self.training.checkpoint]) as [folder]:
            folder.mkdir()
            copy(self.training.folder, folder / BEST)
            copy(self.training.curve, folder / CURVE)
            np.savez(folder / "arrays.npz", allow_pickle=False, **arrays)
            (folder / "state.json").write_bytes(state)


def copy(source: Path, target: Path) -> None:
    """Copy a file that may still be written to; hard-link the files of a folder."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=lambda old, new: link(Path(old), Path(new)))
    else:
        shutil.copyfile(source, target)


def take_arrays(training: Training) -> dict[str, np.ndarray]:
    """Copy all arrays: parameters, optimizer states, gradient scalers."""
    arrays: dict[str, np.ndarray] = {}
    for number, parameter in enumerate(training.parameters):
        arrays[f"parameter-{number}"] = parameter.get()
        for name in STATES:
            values = getattr(training.optimizer, name) or {}
            if parameter.key in values:
                arrays[f"{name}-{number}"] = copied(values[parameter.key])
    for number, scaler in enumerate(find_scalers(training.nlp)):
        arrays[f"scale-{number}"] = copied(scaler._scale.cpu().numpy())
        arrays[f"growth-{number}"] = copied(scaler._growth_tracker.cpu().numpy())
    return arrays


def restore(training: Training) -> None:
    """Restore parameters, optimizer and gradient scalers from the training's checkpoint."""
    ops, state, optimizer = get_current_ops(), training.state, training.optimizer
    with np.load(training.checkpoint / "arrays.npz") as arrays:
        for number, (parameter, count) in enumerate(zip(training.parameters, state.updates, strict=True)):
            parameter.array[...] = ops.asarray(arrays[f"parameter-{number}"])
            for name in STATES:
                if f"{name}-{number}" in arrays:
                    getattr(optimizer, name)[parameter.key] = ops.asarray(arrays[f"{name}-{number}"])
            if count:
                optimizer.nr_update[parameter.key] = count
        for number, scaler in enumerate(find_scalers(training.nlp)):
            scaler._scale.fill_(float(arrays[f"scale-{number}"].item()))
            scaler._growth_tracker.fill_(int(arrays[f"growth-{number}"].item()))
    for _ in range(state.step + 1):
        optimizer.step_schedules()
