"""Checkpoints of a training: all that its next step depends on, so that a killed one resumes bit for bit.

spaCy saves pipelines, which hold averages rather than the parameters that are being trained, and neither the
optimizer's state, nor the place in the corpus. A checkpoint has those, and the best pipeline so far. What is random in
a step follows from its number, and so from the place.
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
from spacy.language import Language
from thinc.api import Config, Optimizer, get_current_ops

from labelwise.base.environment import KERNELS
from labelwise.base.files import atomic, digest_code, link
from labelwise.corpus.record import digest_corpus
from labelwise.train.gpu import device_name
from labelwise.train.parameters import copied, find_parameters, find_scalers

# What a training depends on: folders of this package, and packages.
CODE = ("corpus", "train", "../spacy_per_label")
PACKAGES = ("spacy", "thinc", "numpy", "torch", "transformers", "spacy_transformers")
CURVE, BEST = "curve.tsv", "model-best"
STATES = ("mom1", "mom2", "averages")  # of thinc's optimizer, arrays by parameter


class State(msgspec.Struct):
    """Where a training is.

    digest (str): of all that its steps depend on; see `digest_training`.
    step (int): the last one that was taken, counted from 0.
    epoch, batches (int): the epoch, and the batches that were taken from it.
    words (int): of all batches so far.
    seconds (float): of all steps so far.
    scores (list[float]): of all evaluations so far.
    sub_batch (int): the words that the device is given at a time, since memory ran out; 0 for all of a batch.
    skipped, skipped_in_a_row (int): steps that changed no parameter, as a loss wasn't finite: all, and the last ones.
    updates (list[int]): how often each parameter was updated.
    """

    digest: str
    step: int = -1
    epoch: int = 0
    batches: int = 0
    words: int = 0
    seconds: float = 0.0
    scores: list[float] = []
    sub_batch: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    updates: list[int] = []


def digest_training(settings: Config, corpus: Path, gpu_id: int) -> str:
    """Digest what is the same for trainings that take the same steps: config, corpus, device, packages, code."""
    facts = [
        settings.to_str(interpolate=False),
        digest_corpus(corpus),
        device_name(gpu_id),
        *(f"{name} {os.environ.get(name)}" for name in KERNELS),
        digest_code(CODE, (f"{name} {version(name)}" for name in PACKAGES if find_spec(name))),
    ]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def read_state(checkpoint: Path, digest: str) -> State | None:
    """Read the state of a checkpoint; None if there is none, or it is that of another training."""
    try:
        state = msgspec.json.decode((checkpoint / "state.json").read_bytes(), type=State)
    except (FileNotFoundError, msgspec.MsgspecError):  # another version wrote it
        return None
    return state if state.digest == digest else None


class CheckpointSaver:
    """Saves checkpoints, in a thread, while training goes on: a transformer's takes seconds to write.

    checkpoint (Path): the folder, which is replaced.
    """

    def __init__(self, checkpoint: Path) -> None:
        """Take the folder."""
        self.checkpoint = checkpoint
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._saving: Future[None] | None = None

    def save(
        self,
        state: State,
        nlp: Language,
        optimizer: Optimizer,
        kept: Mapping[str, Path],
        files: Mapping[Path, bytes] = {},
    ) -> None:
        """Begin to save a state, with what it needs of the pipeline and the optimizer as it is now.

        Until it is saved, there is a second copy of all parameters and moments in memory.

        kept (Mapping[str, Path]): a pipeline and a curve, by their names in the checkpoint; they mustn't change until
            `wait` returns.
        files (Mapping[Path, bytes]): files of theirs that are still to be written.
        RAISES: what `wait` raises of the one before.
        """
        self.wait()
        state.updates = [optimizer.nr_update.get(parameter.key, 0) for parameter in find_parameters(nlp)]
        arrays = take_arrays(nlp, optimizer)
        self._saving = self._thread.submit(self._write, msgspec.json.encode(state), arrays, kept, files)

    def wait(self) -> None:
        """Wait until the last checkpoint is saved.

        RAISES (InputError): the disk is full, or another process saves there; or whatever else was wrong.
        """
        saving, self._saving = self._saving, None
        if saving:
            saving.result()

    def _write(
        self, state: bytes, arrays: Mapping[str, np.ndarray], kept: Mapping[str, Path], files: Mapping[Path, bytes]
    ) -> None:
        for path, content in files.items():
            path.write_bytes(content)
        with atomic(self.checkpoint, folders=[self.checkpoint]) as [folder]:
            folder.mkdir()
            for name, path in kept.items():
                copy(path, folder / name)
            np.savez(folder / "arrays.npz", allow_pickle=False, **arrays)
            (folder / "state.json").write_bytes(state)


def copy(source: Path, target: Path) -> None:
    """Copy a file that may still be written to; for a folder, whose files aren't, make hard links to them."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=lambda one, other: link(Path(one), Path(other)))
    else:
        shutil.copyfile(source, target)


def take_arrays(nlp: Language, optimizer: Optimizer) -> dict[str, np.ndarray]:
    """Copy everything that is an array."""
    arrays: dict[str, np.ndarray] = {}
    for number, parameter in enumerate(find_parameters(nlp)):
        arrays[f"parameter-{number}"] = parameter.get()
        for name in STATES:
            values = getattr(optimizer, name) or {}
            if parameter.key in values:
                arrays[f"{name}-{number}"] = copied(values[parameter.key])
    for number, scaler in enumerate(find_scalers(nlp)):
        arrays[f"scale-{number}"] = copied(scaler._scale.cpu().numpy())
        arrays[f"growth-{number}"] = copied(scaler._growth_tracker.cpu().numpy())
    return arrays


def restore(checkpoint: Path, state: State, nlp: Language, optimizer: Optimizer) -> None:
    """Restore parameters, optimizer and gradient scalers from a checkpoint."""
    ops = get_current_ops()
    with np.load(checkpoint / "arrays.npz") as arrays:
        for number, (parameter, count) in enumerate(zip(find_parameters(nlp), state.updates, strict=True)):
            parameter.array[...] = ops.asarray(arrays[f"parameter-{number}"])
            for name in STATES:
                if f"{name}-{number}" in arrays:
                    getattr(optimizer, name)[parameter.key] = ops.asarray(arrays[f"{name}-{number}"])
            if count:
                optimizer.nr_update[parameter.key] = count
        for number, scaler in enumerate(find_scalers(nlp)):
            scaler._scale.fill_(float(arrays[f"scale-{number}"].item()))
            scaler._growth_tracker.fill_(int(arrays[f"growth-{number}"].item()))
    for _ in range(state.step + 1):
        optimizer.step_schedules()
