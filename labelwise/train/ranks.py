"""Several processes that train one pipeline, and what they tell each other.

Each is a rank, as MPI and PyTorch call it, counted from 0; the first one writes files. Two kinds of them:

- `forked`: processes of this machine, forked from the first one, so that they share what it has loaded. Gradients are
  summed in shared memory; all else goes through pipes to the first one. A pipe whose other end was killed says so.
- `TorchRanks`: those that torchrun has started, which ends all if one is lost, with PyTorch's own communication: NCCL
  between GPUs, gloo between processors.

Sums are the same in all ranks, to the bit.
"""

import mmap
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from labelwise.base.errors import InputError
from labelwise.base.parallel import begin_worker
from labelwise.train.parameters import Slot


class Alone:
    """A process that trains by itself; what ranks know of each other.

    rank (int): its own number.
    count (int): how many there are.
    """

    rank, count = 0, 1

    def exchange(self, value: Any) -> list[Any]:
        """Wait for all, and give each the values of all, in the order of their ranks.

        RAISES (InputError): one of them has failed, or was killed.
        """
        return [value]

    def sum(self, arrays: Sequence[Any]) -> None:
        """Wait for all, and add up arrays of 32-bit floats, of the same shapes in all; each has the sums then."""


class ForkedRanks(Alone):
    """One of several processes of this machine; see `forked`.

    pipes (Sequence[Connection]): of the first rank, to each other one; of another, to the first.
    memory (np.ndarray): what all share, a row for each rank.
    """

    def __init__(self, rank: int, pipes: Sequence[Connection], memory: np.ndarray) -> None:
        """Take what was made before the fork."""
        self.rank, self.count, self.pipes, self.memory = rank, len(memory), pipes, memory

    def exchange(self, value: Any) -> list[Any]:
        """Wait for all, and give each the values of all; see `Alone`. A rank that has failed sends its error."""
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
                "a process of the training was killed, perhaps for lack of memory. Remedy: fewer of them (workers in "
                "project.yml, --workers)"
            ) from error

    def sum(self, arrays: Sequence[np.ndarray]) -> None:
        """Add up arrays; each rank adds up all rows, in the order of ranks."""
        ends = np.cumsum([array.size for array in arrays])
        np.concatenate([array.ravel() for array in arrays], out=self.memory[self.rank, : ends[-1]])
        self.exchange(None)
        for array, rows in zip(arrays, np.split(self.memory[:, : ends[-1]], ends[:-1], axis=1), strict=True):
            array[...] = rows.sum(axis=0).reshape(array.shape)
        self.exchange(None)  # what was summed is read before the next sum is written


@contextmanager
def forked(count: int, floats: int, follow: Callable[[Alone], None]) -> Iterator[Alone]:
    """Make a block in which this process is the first of several; the others are forked from it, and run `follow`.

    floats (int): the most that is ever summed.
    RAISES (InputError): one of them has failed, or was killed, which is known when they are next waited for.
    """
    if count == 1:
        yield Alone()
        return
    memory = np.frombuffer(mmap.mmap(-1, 4 * floats * count), np.float32).reshape(count, floats)
    context = get_context("fork")
    pipes, processes = [], []
    for rank in range(1, count):
        end, other = context.Pipe()
        process = context.Process(target=_run_rank, args=(rank, end, other, memory, follow), daemon=True)
        process.start()
        other.close()
        pipes.append(end)
        processes.append(process)
    try:
        yield ForkedRanks(0, pipes, memory)
        for process in processes:
            process.join()
    finally:
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.close()
            process.kill()
            process.join()


def _run_rank(
    rank: int, others: Connection, pipe: Connection, memory: np.ndarray, follow: Callable[[Alone], None]
) -> None:
    """Be one of the ranks after the first, which is sent the error if this one fails.

    others (Connection): the first rank's end of the pipe, closed here, so that its own end is heard of.
    """
    begin_worker()
    others.close()
    try:
        follow(ForkedRanks(rank, [pipe], memory))
    except BaseException as error:
        with suppress(OSError):
            pipe.send(error if isinstance(error, InputError) else InputError(traceback.format_exc()))


class TorchRanks(Alone):
    """One of the processes that torchrun has started.

    https://docs.pytorch.org/docs/stable/elastic/run.html
    """

    def __init__(self, gpu_id: int) -> None:
        """Meet the others.

        gpu_id (int): the GPU; the CPU if it is negative.
        """
        import torch
        from torch import distributed

        self.torch, self.distributed = torch, distributed
        self.device = torch.device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
        if gpu_id >= 0:
            torch.cuda.set_device(self.device)
        distributed.init_process_group("gloo" if gpu_id < 0 else "nccl")
        self.messages = distributed.new_group(backend="gloo")
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()

    def exchange(self, value: Any) -> list[Any]:
        """Wait for all, and give each the values of all; see `Alone`."""
        values: list[Any] = [None] * self.count
        self.distributed.all_gather_object(values, value, group=self.messages)
        return values

    def sum(self, arrays: Sequence[Any]) -> None:
        """Add up arrays of numpy or cupy."""
        from thinc.api import torch2xp, xp2torch

        flat = self.torch.cat([xp2torch(array, device=self.device).reshape(-1) for array in arrays])
        self.distributed.all_reduce(flat)
        for array, part in zip(arrays, flat.split([array.size for array in arrays]), strict=True):
            array[...] = torch2xp(part).reshape(array.shape)


def is_launched() -> bool:
    """Tell whether torchrun has started this process, with others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def launch(count: int) -> None:
    """Start this command anew with torchrun, a process for each of this machine's GPUs 0 to `count` - 1."""
    sys.stdout.flush()
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    os.execv(sys.executable, [sys.executable, *run, *sys.orig_argv[1:]])  # noqa: S606  our own command line


def sum_gradients(slots: Sequence[Slot], scalers: Sequence[Any], ranks: Alone) -> None:
    """Wait for all ranks, and give each parameter the sum of its gradients in all of them.

    A parameter that has a gradient in one of them has one in all, which may be zero: a rank may have no text, or none
    that a parameter sees. If a scaled gradient was infinite in one, all of them skip the step.
    """
    if ranks.count == 1:
        return
    exchanged = ranks.exchange(([slot.has_gradient() for slot in slots], [scaler.found_inf for scaler in scalers]))
    has_gradient, found_inf = (list(map(any, zip(*one, strict=True))) for one in zip(*exchanged, strict=True))
    for scaler, found in zip(scalers, found_inf, strict=True):
        scaler._found_inf = found
    ranks.sum([slot.gradient() for slot, has in zip(slots, has_gradient, strict=True) if has])
