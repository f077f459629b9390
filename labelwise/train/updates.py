"""Updates that fit into memory: a batch's gradients in micro-batches, smaller if memory runs out."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from thinc.api import fix_random_seed

from labelwise.base.errors import InputError
from labelwise.corpus.pipeline import bounded_vocab
from labelwise.train.config_file import flatten
from labelwise.train.parameters import clear_gradients, is_out_of_memory
from labelwise.train.reader import sub_batches
from labelwise.train.training import Training
from spacy_per_label.targets import PreparedText

MAX_SKIPPED_STEPS = 20  # steps in a row


def update_within_memory(training: Training, texts: Sequence[Any], drop: float) -> dict[str, float] | None:
    """Accumulate gradients; on OOM in any rank, all ranks retry with half the micro-batch.

    The first time in a step, pooled memory is freed, and the same words are retried: cupy frees its pools only if its
    own allocations fail, not if PyTorch's do.

    RETURNS (dict[str, float] | None): losses; None in all ranks if one isn't finite, as after an overflow in fp16:
        gradients are cleared, and the step is skipped.
    RAISES (InputError): if a single text is too much, or too many steps in a row were skipped.
    """
    state, ranks, step = training.state, training.ranks, training.state.step + 1
    last = False
    while True:
        # Randomness in a step follows from seed, step and rank: a resumed training draws the same.
        fix_random_seed(zlib.crc32(f"{training.settings['seed']}/{step}/{ranks.rank}".encode()))
        losses: dict[str, float] = {}
        words = accumulate(training, step, texts, drop, losses, last)
        # All ranks must agree: a rank that continued alone would wait for the others forever.
        gathered = ranks.all_gather_object((words, all(map(math.isfinite, losses.values()))))
        too_many = [words for words, _ in gathered if words]
        if not too_many and all(finite for _, finite in gathered):
            state.skipped_in_a_row = 0
            return {name: float(loss) for name, loss in losses.items()}
        clear_gradients(training.nlp)
        if not too_many:
            count_skipped(training, step)
            return None
        if not last:  # once more, with the pools freed by clear_gradients
            last = True
            continue
        state.sub_batch = min(too_many) // 2
        training.log(
            f"Step {step}: out of memory in a micro-batch of {min(too_many):,} words; retrying with {state.sub_batch:,}"
        )


def count_skipped(training: Training, step: int) -> None:
    """Count a step with a non-finite loss; print the first one in a row.

    RAISES (InputError): if too many in a row were skipped.
    """
    state = training.state
    state.skipped, state.skipped_in_a_row = state.skipped + 1, state.skipped_in_a_row + 1
    if state.skipped_in_a_row == MAX_SKIPPED_STEPS:
        raise InputError(
            f"Step {step}: the loss wasn't a finite number in {MAX_SKIPPED_STEPS} steps in a row. Remedy: "
            f"{finite_remedy(training.nlp.config)}a lower learn_rate in [training.optimizer] of the config"
        )
    if state.skipped_in_a_row == 1:
        training.log(f"Step {step}: the loss isn't a finite number; the step is skipped, {state.skipped:,} so far")


def finite_remedy(config: Mapping[str, Any]) -> str:
    """Name precisions with a larger range than the config's, or ""."""
    settings = flatten(config["components"])
    if not any(value for key, value in settings.items() if key.endswith("mixed_precision")):
        return ""
    scaled = any(value for key, value in settings.items() if key.endswith("grad_scaler_config.enabled"))
    bf16 = "bf16, whose numbers don't overflow (enabled = false in [...grad_scaler_config] of the config), or "
    return f"{bf16 * scaled}fp32 (mixed_precision = false{', too' * scaled}), or "


def accumulate(
    training: Training, step: int, texts: Sequence[Any], drop: float, losses: dict[str, float], last: bool
) -> int:
    """Compute the gradients of texts in micro-batches.

    last (bool): a single text that is too much is an error; else it is retried.
    RETURNS (int): words of the micro-batch that ran out of memory; 0 without.
    RAISES (InputError): if a single text is too much.
    """
    nlp: Any = training.nlp
    for part in sub_batches(texts, training.settings["accumulate_gradient"], training.state.sub_batch):
        try:
            with bounded_vocab(nlp):
                if isinstance(part[0], PreparedText):
                    nlp.get_pipe("ner").update(part, drop=drop, losses=losses)
                    continue
                # Tokenize only now, to hold only a part's Docs in memory.
                with training.timed("waiting"):
                    examples = list(map(training.make_example, part))
                nlp.update(examples, sgd=False, drop=drop, losses=losses)
                del examples
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(part) > 1 or not last:
                return sum(map(len, part))
            raise InputError(
                f"Step {step}: out of memory at one text of {len(part[0]):,} words, {part[0].text[:40]!r}. Remedy: "
                f"set max_words of corpora.train below {len(part[0])}, which cuts long texts"
            ) from error
    return 0
