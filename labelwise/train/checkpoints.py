"""Checkpoints of a training: all that its next step depends on, so that a killed one resumes bit for bit.

spaCy saves pipelines, which hold averages rather than the parameters that are being trained, and neither the
optimizer's state, nor the place in the corpus. A checkpoint has those, and the best pipeline so far. What is random in
a step follows from its number, and so from the place.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
from spacy.language import Language
from thinc.api import Config, Optimizer, get_current_ops
from thinc.backends import get_array_ops

from labelwise.common.code import digest_files, digest_folder
from labelwise.common.device import cupy_version, device_name
from labelwise.common.files import link, remove, staged
from labelwise.common.portable import KERNELS
from labelwise.corpus.manifest import manifest_digest
from labelwise.train.parameters import find_scalers, find_slots
from labelwise.train.sources import source_folders

# The folders of this package that a training depends on.
CODE = ("common", "corpus", "recognizer", "train")

KEPT = 2
STATE = "state.json"
STATES = ("mom1", "mom2", "averages")  # of thinc's optimizer, arrays by parameter


class State(msgspec.Struct):
    """Where a training is.

    facts (dict[str, str]): what it depends on: digests, names and versions, by what they belong to.
    step (int): the last one that was taken, counted from 0.
    epoch, batches (int): the epoch, and the batches that were taken from it.
    words (int): of all batches so far.
    seconds (float): of all runs so far.
    scores (list[float]): of all evaluations so far.
    device_size (int): what the device is given at a time, which running out of memory may have lowered; 0 for all.
    halved (int): how often it was lowered.
    updates (list[int]): how often each parameter was updated.
    """

    facts: dict[str, str] = {}
    step: int = -1
    epoch: int = 0
    batches: int = 0
    words: int = 0
    seconds: float = 0.0
    scores: list[float] = []
    device_size: int = 0
    halved: int = 0
    updates: list[int] = []


class Checkpoints:
    """The checkpoints of a training, in a folder: `step-00000200/{state.json,arrays.npz,curve.tsv,model-best}`.

    Each appears whole or not at all, and the last two are kept. Those of another training stay until this one has saved
    its first, so that a mistaken start can still be undone.
    """

    def __init__(self, folder: Path, facts: Mapping[str, str]) -> None:
        """Take the folder, and what the training depends on: a checkpoint with other facts is another training's."""
        self.folder = folder
        self.facts = dict(facts)

    def all(self) -> list[Path]:
        """List the checkpoints, oldest first."""
        found = [path for path in self.folder.glob("step-*") if re.fullmatch(r"step-\d{8}", path.name)]
        return sorted(path for path in found if (path / STATE).is_file())

    def last(self) -> tuple[Path, State] | None:
        """Find the last checkpoint of this training; None if there is none."""
        for path in reversed(self.all()):
            state = _read_state(path)
            if state and state.facts == self.facts:
                return path, state
        return None

    def what_differs(self) -> list[str]:
        """Tell in what the training of the last checkpoint differs from this one; nothing if there is no checkpoint."""
        if not (found := self.all()):
            return []
        state = _read_state(found[-1])
        if state is None or not state.facts:
            return ["the format of checkpoints"]
        names = {**self.facts, **state.facts}
        return [name for name in names if state.facts.get(name) != self.facts.get(name)]

    def save(self, state: State, nlp: Language, optimizer: Optimizer, output: Path) -> None:
        """Save the state, and from the training's folder the best pipeline and the curve."""
        path = self.folder / f"step-{state.step:08d}"
        with staged(path, folder=True) as folder:
            folder.mkdir()
            for item in ("curve.tsv", "model-best"):
                copy(output / item, folder / item)
            np.savez(folder / "arrays.npz", allow_pickle=False, **take_arrays(nlp, optimizer))
            state.facts = self.facts
            state.updates = [optimizer.nr_update.get(slot.key, 0) for slot in find_slots(nlp)]
            (folder / STATE).write_bytes(msgspec.json.encode(state))
        # Those of another training, and later ones that this training hasn't come to, have been kept until now.
        own = [old for old in self.all() if old <= path and (found := _read_state(old)) and found.facts == self.facts]
        for old in set(self.all()).difference(own[-KEPT:]):
            remove(old)

    def delete(self) -> None:
        """Delete all checkpoints, and the folder, unless it has something else, too."""
        for path in self.all():
            remove(path)
        for leftover in self.folder.glob(".step-*.labelwise.*"):
            remove(leftover)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def facts_of(settings: Config, corpus: Path, gpu_id: int) -> dict[str, str]:
    """List what is the same for trainings that take the same steps: config, corpus, sources, device, packages, code.

    What the device is given at a time isn't among them, as that is what to change when memory has run out. Nor is the
    section [labelwise]: what of it matters to a step is in other settings, too, or a fact of its own.
    RETURNS (dict[str, str]): digests, names and versions, by what they belong to, such as "labelwise/train/loop.py".
    """
    settings = settings.copy()
    settings["training"]["batcher"].pop("device_size", None)
    settings.pop("labelwise")
    packages = ["spacy", "thinc", "numpy", "torch", "transformers", "spacy_transformers"]
    return {
        "the config": hashlib.sha256(settings.to_str(interpolate=False).encode()).hexdigest(),
        "the corpus": manifest_digest(corpus),
        **{f"the pipeline {name}": digest_folder(folder) for name, folder in source_folders(settings).items()},
        "the device": device_name(gpu_id),
        **{name: os.environ[name] for name in KERNELS if name in os.environ},
        **{name: version(name) for name in packages if find_spec(name)},
        **({"cupy": cupy_version()} if gpu_id >= 0 else {}),
        **digest_files(CODE),
    }


def _read_state(checkpoint: Path) -> State | None:
    """Read a checkpoint's state; None if another version of this program wrote it."""
    try:
        return msgspec.json.decode((checkpoint / STATE).read_bytes(), type=State)
    except msgspec.MsgspecError:
        return None


def copy(source: Path, target: Path) -> None:
    """Copy a file that may still be written to; for a folder, whose files aren't, make hard links to them."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=lambda one, other: link(Path(one), Path(other)))
    else:
        shutil.copyfile(source, target)


def take_arrays(nlp: Language, optimizer: Optimizer) -> dict[str, np.ndarray]:
    """Copy everything that is an array."""
    arrays = {}
    for number, slot in enumerate(find_slots(nlp)):
        arrays[f"parameter-{number}"] = slot.get()
        for name in STATES:
            values = getattr(optimizer, name) or {}
            if slot.key in values:
                arrays[f"{name}-{number}"] = get_array_ops(values[slot.key]).to_numpy(values[slot.key])
    for number, scaler in enumerate(find_scalers(nlp)):
        arrays[f"scale-{number}"] = scaler._scale.cpu().numpy()
        arrays[f"growth-{number}"] = scaler._growth_tracker.cpu().numpy()
        arrays[f"skipped-{number}"] = np.array(getattr(scaler, "skipped", 0))
    return arrays


def restore(checkpoint: Path, state: State, nlp: Language, optimizer: Optimizer) -> None:
    """Restore parameters, optimizer and gradient scalers from a checkpoint."""
    with np.load(checkpoint / "arrays.npz") as arrays:
        for number, (slot, count) in enumerate(zip(find_slots(nlp), state.updates, strict=True)):
            slot.set(arrays[f"parameter-{number}"])
            for name in STATES:
                if f"{name}-{number}" in arrays:
                    getattr(optimizer, name)[slot.key] = get_current_ops().asarray(arrays[f"{name}-{number}"])
            if count:
                optimizer.nr_update[slot.key] = count
        for number, scaler in enumerate(find_scalers(nlp)):
            scaler._scale.copy_(scaler._scale.new_tensor(arrays[f"scale-{number}"]))
            scaler._growth_tracker.copy_(scaler._growth_tracker.new_tensor(arrays[f"growth-{number}"]))
            scaler.skipped = int(arrays[f"skipped-{number}"])
