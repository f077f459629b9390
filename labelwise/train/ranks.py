"""Data-parallel training: ranks and their collective operations.

Ranks are counted from 0, and the first writes files. There are two kinds:

- `LocalRanks`: processes of this machine, started by the first. Gradients are summed in shared memory; all else goes
  through pipes to the first, which fail if the other end is killed.
- `TorchRanks`: processes started by torchrun, which ends all if one is lost, with PyTorch's communication: NCCL between
  GPUs, gloo between processors.

A sum of two local ranks, each with a row of the shared memory; arrows are pipes:

    rank 0                      shared memory            rank 1
    writes its array to         | row 0 | row 1 |        writes its array to row 1
    row 0
    receives   <----------------- I have written ------- sends
    sends      ------------------ all have ------------> receives
    adds up both rows, in order |  read by all  |        adds up both rows, in order
    receives   <----------------- I have read ---------- sends
    sends      ------------------ all have ------------> receives, and may write the next array

Sums are the same in all ranks, to the bit.
"""

import hashlib
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from labelwise.base.errors import InputError
from labelwise.base.parallel import SHARED, begin_worker, shared_memory_named, start_method
from labelwise.base.refusals import describe_refusal
from labelwise.train.parameters import Parameter


class SingleProcess:
    """A process that trains alone; the interface of ranks."""

    rank, count = 0, 1

    def all_gather_object(self, value: Any) -> list[Any]:
        """Wait for all ranks; return all values, in order of ranks.

        RAISES (InputError): if a rank has failed, or was killed.
        """
        return [value]

    def all_reduce(self, arrays: Sequence[Any]) -> None:
        """Wait for all ranks, and sum arrays of float32, of equal shapes, in place."""


class LocalRanks(SingleProcess):
    """One of several processes of this machine; see `start_ranks`.

    pipes (Sequence[Connection]): of the first rank, to each other one; of another, to the first.
    shared (SharedMemory): a row of float32 for each rank.
    """

    def __init__(self, rank: int, count: int, pipes: Sequence[Connection], shared: SharedMemory) -> None:
        self.rank, self.count, self.pipes, self.shared = rank, count, pipes, shared

    def all_gather_object(self, value: Any) -> list[Any]:
        """Wait for all ranks; return all values. A failed rank sends its error instead."""
        try:
            if self.rank:
                self.pipes[0].send(value)
                return self.pipes[0].recv()
            values = [value, *(pipe.recv() for pipe in self.pipes)]
            for error in values:
                if isinstance(error, InputError):
                    raise error
            for pipe in self.pipes:
                pipe.send(values)
            return values
        except (EOFError, OSError) as error:
            raise InputError(
                "a process of the training was killed, perhaps for lack of memory. Remedy: use fewer (workers in "
                "project.yml, --workers)"
            ) from error

    def all_reduce(self, arrays: Sequence[np.ndarray]) -> None:
        """Sum arrays; each rank adds all rows, in order of ranks."""
        ends = np.cumsum([array.size for array in arrays])
        buffer: Any = self.shared.buf
        memory = np.frombuffer(buffer, np.float32, ends[-1] * self.count).reshape(self.count, -1)
        np.concatenate([array.ravel() for array in arrays], out=memory[self.rank])
        self.all_gather_object(None)
        for array, rows in zip(arrays, np.split(memory, ends[:-1], axis=1), strict=True):
            array[...] = rows.sum(axis=0).reshape(array.shape)
        self.all_gather_object(None)  # all sums are read before the next one is written


@contextmanager
def start_ranks(count: int, floats: int, follow: Callable[[SingleProcess], None]) -> Iterator[SingleProcess]:
    """Start `count - 1` workers that run `follow`; yield rank 0's communicator.

    floats (int): maximum size of a sum.
    follow (Callable): must be picklable under spawn.
    RAISES (InputError): if a rank failed or was killed, at the next wait for it.
    """
    if count == 1:
        yield SingleProcess()
        return
    size = 4 * floats * count
    if SHARED.is_dir() and shutil.disk_usage(SHARED).free < size:
        raise InputError(
            f"{SHARED} has no room for the gradients of {count} processes, {size / 2**20:,.0f} MB. Remedy: give the "
            "container more (docker run --shm-size), or train in one process (workers: 1)"
        )
    context = get_context(start_method())
    with shared_memory_named():
        shared = SharedMemory(create=True, size=size)
    pipes, processes = [], []
    # With the same number of threads in all ranks, PyTorch rounds equally, and parameters stay equal to the bit.
    torch: Any = sys.modules.get("torch")
    threads = torch and torch.get_num_threads()
    try:
        if torch:
            torch.set_num_threads(1)
        for rank in range(1, count):
            end, other = context.Pipe()
            process = context.Process(  # type: ignore[attr-defined]
                target=_run_rank, args=(rank, count, end, other, shared.name, follow), daemon=True
            )
            process.start()
            other.close()
            pipes.append(end)
            processes.append(process)
        yield LocalRanks(0, count, pipes, shared)
        for process in processes:
            process.join()
    finally:
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.close()
            process.kill()
            process.join()
        if torch:
            torch.set_num_threads(threads)
        shared.unlink()
        with suppress(BufferError):  # an error in a sum holds on to its arrays
            shared.close()


def _run_rank(
    rank: int, count: int, others: Connection, pipe: Connection, memory: str, follow: Callable[[SingleProcess], None]
) -> None:
    """Run a rank after the first; if it fails, send the error to the first.

    others (Connection): closed in the child, to read EOF when the parent dies.
    """
    begin_worker()
    others.close()
    shared = SharedMemory(memory)
    try:
        follow(LocalRanks(rank, count, [pipe], shared))
    except BaseException as error:
        with suppress(OSError):
            message = describe_refusal(error) or traceback.format_exc()
            pipe.send(error if isinstance(error, InputError) else InputError(message))
    shared.close()


class TorchRanks(SingleProcess):
    """A process started by torchrun.

    https://docs.pytorch.org/docs/stable/elastic/run.html
    """

    def __init__(self, gpu_id: int) -> None:
        import torch
        from torch import distributed

        self.torch, self.distributed = torch, distributed
        self.device = torch.device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
        if gpu_id >= 0:
            torch.cuda.set_device(self.device)
        distributed.init_process_group("gloo" if gpu_id < 0 else "nccl")
        self.messages = distributed.new_group(backend="gloo")
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()

    def all_gather_object(self, value: Any) -> list[Any]:
        """Wait for all ranks; return all values."""
        values: list[Any] = [None] * self.count
        self.distributed.all_gather_object(values, value, group=self.messages)
        return values

    def all_reduce(self, arrays: Sequence[Any]) -> None:
        """Sum numpy or cupy arrays."""
        from thinc.api import torch2xp, xp2torch

        flat = self.torch.cat([xp2torch(array, device=self.device).reshape(-1) for array in arrays])
        self.distributed.all_reduce(flat)
        for array, part in zip(arrays, flat.split([array.size for array in arrays]), strict=True):
            array[...] = torch2xp(part).reshape(array.shape)


def is_launched() -> bool:
    """Return whether torchrun started this process, with others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def launch(count: int) -> None:
    """Restart this command with torchrun, a process for each of GPUs 0 to `count` - 1."""
    sys.stdout.flush()
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    os.execv(sys.executable, [sys.executable, *run, *sys.orig_argv[1:]])  # noqa: S606  our own command line


def check_ranks(parameters: Sequence[Parameter], ranks: SingleProcess) -> None:
    """Check, before the first step, that all ranks have equal parameters, and that sums reach all.

    RAISES (InputError): if not.
    """
    if ranks.count == 1:
        return
    values = b"".join(parameter.get().tobytes() for parameter in parameters)
    digests = ranks.all_gather_object(hashlib.sha256(values).digest())
    array = parameters[0].array * 0 + 2**ranks.rank
    ranks.all_reduce([array])
    if len(set(digests)) > 1 or not (array == 2**ranks.count - 1).all():
        raise InputError(
            f"rank {ranks.rank}: the {ranks.count} processes of the training have different parameters, or don't see "
            "each other's sums. Remedy: train in one process (workers: 1), and report it"
        )


def sum_gradients(parameters: Sequence[Parameter], ranks: SingleProcess) -> None:
    """Wait for all ranks, and sum each parameter's gradients over them.

    A parameter with a gradient in one rank gets one in all, possibly zero: a rank may have no text, or none that
    reaches a parameter. An infinite scaled gradient makes the sum infinite, so all ranks skip the update.
    """
    if ranks.count == 1:
        return
    gathered = ranks.all_gather_object([parameter.has_gradient() for parameter in parameters])
    has_gradient = list(map(any, zip(*gathered, strict=True)))
    ranks.all_reduce([parameter.gradient() for parameter, has in zip(parameters, has_gradient, strict=True) if has])
