"""What happens when memory runs out in training: an error that says what was too much, or smaller sub-batches."""

import gc
from collections.abc import Callable
from typing import Any, Literal

from spacy.language import Language
from thinc.backends import context_pools
from thinc.shims import Shim

from labelwise.common.errors import InputError
from labelwise.train.batches import Batch
from labelwise.train.checkpoints import State
from labelwise.train.parameters import find_owners, used_torch

OnOom = Literal["stop", "halve"]


class Updates:
    """Updates a pipeline sub-batch by sub-batch; if memory runs out, stops, or halves the sub-batch.

    With "halve", the step is begun again: a sub-batch that failed may have left some of its gradients.

    state (State): that of the training, whose `device_size` and `halved` are kept up to date.
    on_oom (str): "stop", or "halve" what the device is given at a time, and continue.
    unit (str): what batches are counted in, for messages.
    """

    def __init__(self, state: State, on_oom: OnOom) -> None:
        """Begin before the first step."""
        self.state = state
        self.on_oom = on_oom
        self.unit = "words"
        self._done: list[Batch] = []
        self._losses: dict[str, float] = {}

    def begin(self) -> None:
        """Begin a step."""
        self._done = []

    def update(
        self, nlp: Language, own: Callable[..., Any], batch: Batch, *, losses: dict[str, float], **options: Any
    ) -> None:
        """Update the pipeline with a sub-batch.

        own (Callable): does that.
        losses (dict): those of the step.
        RAISES (InputError): memory ran out.
        """
        if not self._done:
            self._losses = dict(losses)
        try:
            own(batch, losses=losses, **options)
            self._done.append(batch)
            return
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Outside the handler, because the exception holds what has to be freed.
        forget_gradients(nlp)
        if self.on_oom == "stop" or len(batch) == 1:
            raise self.fail(self._too_much(batch))
        self.state.halved += 1
        self.state.device_size = max(1, batch.cost // 2)
        losses.clear()
        losses.update(self._losses)
        again, self._done = [*self._done, *batch.sub_batches(2)], []
        for smaller in again:
            self.update(nlp, own, smaller, losses=losses, **options)

    def fail(self, what: str) -> InputError:
        """Make the error that training ends with."""
        return InputError(f"Step {self.state.step + 1}: out of memory {what}")

    def _too_much(self, batch: Batch) -> str:
        longest = max(map(len, batch))
        size = f"{len(batch)} text(s) that cost {batch.cost:,} {self.unit} together"
        if len(batch) == 1:
            remedy = f"set max_words of corpora.train below {longest}, which cuts long texts"
        else:
            remedy = (
                f"set training.batcher.device_size below {batch.cost}, let find-batch-size find what fits, or "
                'continue with smaller sub-batches: on_oom = "halve" in the config'
            )
        return f"at {size}; the longest has {longest:,} words. Remedy: {remedy}"


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, in any of the libraries: numpy, cupy, PyTorch on a CPU or a GPU."""
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "AcceleratorOutOfMemoryError"):
        return True
    # PyTorch and CUDA's libraries report it in a RuntimeError, the system in an OSError or, when a library can't be
    # loaded, an ImportError.
    said = ("out of memory", "can't allocate memory", "Cannot allocate memory", "ALLOC_FAILED", "ALLOCATION_FAILED")
    return isinstance(error, RuntimeError | OSError | ImportError) and any(words in str(error) for words in said)


def forget_gradients(nlp: Language) -> None:
    """Forget all gradients, and what listeners hold for a backward pass that won't come."""
    for owner in find_owners(nlp):
        if isinstance(owner, Shim):
            for tensor in owner._model.parameters():
                tensor.grad = None
        else:
            for name in owner.grad_names:
                if owner.has_grad(name):
                    owner.set_grad(name, owner.ops.alloc(owner.get_grad(name).shape))
            if hasattr(owner, "_backprop"):  # a listener
                owner._batch_id = owner._outputs = owner._backprop = None
    gc.collect()
    # cupy's pools hold blocks of PyTorch's memory, where gpu_allocator is "pytorch".
    for pool in context_pools.get().values():
        pool.free_all_blocks()
    if (torch := used_torch()) and torch.cuda.is_available():
        torch.cuda.empty_cache()
