"""Updates that fit into memory: gradients of a batch, some texts at a time, fewer of them when memory runs out."""

import zlib
from collections.abc import Sequence
from typing import Any

from thinc.api import fix_random_seed

from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import forgetting
from labelwise.train.parameters import clear_gradients, is_out_of_memory, set_aside
from labelwise.train.reader import sub_batches
from labelwise.train.training import Training


def update_within_memory(training: Training, texts: Sequence[StoredDoc], drop: float) -> dict[str, float]:
    """Compute the gradients of this rank's texts; if memory runs out in a rank, all begin anew with half the words.

    RETURNS (dict[str, float]): the losses.
    RAISES (InputError): a single text was too much.
    """
    state, ranks, step = training.state, training.ranks, training.state.step + 1
    while True:
        fix_random_seed(zlib.crc32(f"{training.settings['seed']}/{step}/{ranks.rank}".encode()))
        losses: dict[str, float] = {}
        too_many = list(filter(None, ranks.all_gather_object(accumulate(training, step, texts, drop, losses))))
        if not too_many:
            return {name: float(loss) for name, loss in losses.items()}
        clear_gradients(training.nlp)
        state.sub_batch = min(too_many) // 2
        training.log(
            f"Step {step}: out of memory at {min(too_many):,} words at a time; going on with {state.sub_batch:,}"
        )


def accumulate(training: Training, step: int, texts: Sequence[StoredDoc], drop: float, losses: dict[str, float]) -> int:
    """Compute the gradients of texts, some at a time.

    RETURNS (int): words of the sub-batch that ran out of memory; 0 if none did.
    RAISES (InputError): a single text was too much.
    """
    nlp, sums = training.nlp, dict[Any, Any]()
    parts = sub_batches(texts, training.settings["accumulate_gradient"], training.state.sub_batch)
    for part in parts:
        try:
            with forgetting(nlp):
                examples = list(map(training.make_example, part))
                nlp.update(examples, sgd=False, drop=drop, losses=losses)  # type: ignore[arg-type]
                del examples
            if training.scalers and len(parts) > 1:
                set_aside(training.parameters, sums)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(part) > 1:
                return sum(map(len, part))
            raise InputError(
                f"Step {step}: out of memory at one text of {len(part[0]):,} words, {part[0].text[:40]!r}. Remedy: "
                f"set max_words of corpora.train below {len(part[0])}, which cuts long texts"
            ) from error
    for parameter in training.parameters:
        if parameter.key in sums:
            parameter.tensor.grad = sums[parameter.key]
    return 0
