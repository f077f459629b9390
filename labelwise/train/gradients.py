"""The gradients of a step, summed over several processes that share its batch."""

from spacy.language import Language

from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Ranks


class Gradients:
    """Sums the gradients of a pipeline's parameters over the ranks.

    A parameter that has a gradient in one of them has one in all, which may be zero: a rank may have no text, or none
    that a parameter sees. Those that are scaled, of a transformer in fp16, are summed as they are; what overflows in
    one rank overflows in the sum, so that all of them skip the step.
    """

    def __init__(self, nlp: Language, ranks: Ranks) -> None:
        """Take the pipeline, with all parameters that it will have."""
        self.slots = find_slots(nlp)
        self.ranks = ranks

    def sum(self) -> None:
        """Wait for all ranks, and sum; of a process that trains alone, they are the sums."""
        if self.ranks.count == 1:
            return
        told = self.ranks.exchange([slot.has_gradient() for slot in self.slots])
        slots = [slot for slot, has in zip(self.slots, zip(*told, strict=True), strict=True) if any(has)]
        sums = self.ranks.sum([slot.gradient() for slot in slots])
        for slot, total in zip(slots, sums, strict=True):
            slot.set_gradient(total)


def share_parameters(nlp: Language, ranks: Ranks) -> None:
    """Give the pipelines of all ranks the parameters of the first one's."""
    if ranks.count == 1:
        return
    slots = find_slots(nlp)
    values = [slot.get() for slot in slots]
    shared = ranks.sum([value if ranks.rank == 0 else 0 * value for value in values])
    for slot, value in zip(slots, shared, strict=True):
        slot.set(value)
