"""Batches by what they cost in memory: words, or wordpieces with their padding; and their division into sub-batches."""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

from spacy.training import Example

from labelwise.common.errors import InputError
from labelwise.recognizer.wordpieces import Wordpieces
from labelwise.train.reader import Text

Item = Example | Text
Unit = Literal["words", "wordpieces"]
WINDOW = 16  # batches that are made from the texts held at a time


class Cost(NamedTuple):
    """What a text costs.

    rows (int): how many rows it adds: in words, its words; for a transformer, the spans that it is cut into.
    width (int): the length of its longest row: 1 for words; for a transformer, its longest span in wordpieces.
    """

    rows: int
    width: int


def batch_cost(costs: Iterable[Cost]) -> int:
    """Compute what texts cost together: all rows are as long as the longest of them."""
    rows = width = 0
    for cost in costs:
        rows += cost.rows
        width = max(width, cost.width)
    return rows * width


class Batch(list[Any]):
    """Examples, or texts of which they aren't made yet, that make one update, and know their costs.

    costs (list[Cost]): one for each.
    """

    def __init__(self, items: Iterable[Item], costs: Iterable[Cost]) -> None:
        """Take the Examples or texts, and as many costs."""
        super().__init__(items)
        self.costs = list(costs)

    def made(self) -> "Batch":
        """Make Examples for one update, which may write into their predicted Docs."""
        return Batch(map(own_example, self), self.costs)

    @property
    def cost(self) -> int:
        """What they cost together."""
        return batch_cost(self.costs)

    def take(self, numbers: Iterable[int]) -> "Batch":
        """Take some of them."""
        numbers = list(numbers)
        return Batch([self[number] for number in numbers], [self.costs[number] for number in numbers])

    def shares(self, count: int) -> "list[Batch]":
        """Divide into batches that cost about the same, for `count` processes; with few texts, some are empty.

        The widest and longest texts come first, each to where it costs least.
        """
        shares: list[list[int]] = [[] for _ in range(count)]
        for number in sorted(range(len(self)), key=lambda number: (self.costs[number][::-1], number), reverse=True):
            least = min(shares, key=lambda share: batch_cost(self.costs[one] for one in (*share, number)))
            least.append(number)
        return [self.take(sorted(share)) for share in shares]

    def sub_batches(self, count: int, most: int = 0) -> "list[Batch]":
        """Divide into sub-batches that cost about the same, texts of similar width together.

        count (int): at most how many.
        most (int): what one may cost, 0 for no limit; there are more of them if they don't fit. A text that costs more
            on its own is one by itself.
        """
        order = sorted(range(len(self)), key=lambda number: self.costs[number].width)
        too_costly = {number for number in order if most and batch_cost([self.costs[number]]) > most}
        alone = [number for number in order if number in too_costly]
        rest = self.take(number for number in order if number not in too_costly)
        count = max(count - len(alone), len(cut(rest.costs, most)) if most else 1)
        return [*(rest.take(run) for run in cut_evenly(rest.costs, count)), *(self.take([number]) for number in alone)]


def own_example(item: Item) -> Example:
    """Make an Example of a text; one that exists is copied, as whoever made it may hold it for other epochs."""
    if isinstance(item, Example):
        return Example(item.predicted.copy(), item.reference)
    return item.example() if isinstance(item, Text) else item


def cut_evenly(costs: Sequence[Cost], count: int) -> list[range]:
    """Cut a row of texts into at most `count` runs, the costliest of which costs as little as possible."""
    low = max((batch_cost([cost]) for cost in costs), default=0)
    high = max(low, batch_cost(costs))
    return cut(costs, low + bisect_left(range(low, high), True, key=lambda most: len(cut(costs, most)) <= count))


def cut(costs: Sequence[Cost], most: int) -> list[range]:
    """Cut a row of texts into runs that cost no more than `most`, except for texts that cost more on their own."""
    runs, start, rows, width = [], 0, 0, 0
    for number, cost in enumerate(costs):
        rows, width = rows + cost.rows, max(width, cost.width)
        if number > start and rows * width > most:
            runs.append(range(start, number))
            start, (rows, width) = number, cost
    return [*runs, range(start, len(costs))] if costs else []


class CostBatcher:
    """A batcher for spaCy's training: batches that cost about the same, and no text left out.

    Texts are held until there are enough for several batches, and sorted by width, so that little is padded. The order
    of the batches is random, but the same for the same texts. A text that costs more than `size` on its own is a batch.

    size (int): what a batch costs, at most; the optimizer takes one step for each.
    unit (str): "words", or "wordpieces" for transformers: the number of spans times the longest of them.
    device_size (int): what the device is given at a time, at most; 0 for `size`. It changes memory and speed, but
        hardly the result: gradients are summed over the sub-batches of a batch.
    """

    def __init__(self, size: int, unit: Unit = "words", device_size: int = 0) -> None:
        """Check the arguments.

        RAISES (InputError): a size is out of its range, or there is no such unit.
        """
        if size < 1 or device_size < 0:
            raise InputError(f"batcher size {size}, device_size {device_size}: give at least 1 and 0")
        if unit not in Unit.__args__:  # type: ignore[attr-defined]
            raise InputError(f"batcher unit {unit!r}: give {' or '.join(Unit.__args__)}")  # type: ignore[attr-defined]
        self.size = size
        self.unit = unit
        self.device_size = device_size
        self.cost: Callable[[Item], Cost] | None = word_cost if unit == "words" else None

    def bind(self, wordpieces: Wordpieces | None) -> None:
        """Take what finds the wordpieces of the pipeline's transformer.

        RAISES (InputError): they are to be counted, and there is no transformer.
        """
        if self.unit == "wordpieces":
            if wordpieces is None:
                raise InputError("batches of wordpieces need a transformer, which the pipeline lacks; count words")
            self.cost = partial(wordpiece_cost, wordpieces=wordpieces)

    def __call__(
        self, items: Iterable[Item], zone: Callable[[], AbstractContextManager[Any]] = nullcontext
    ) -> Iterator[Batch]:
        """Yield batches of Examples, or of texts.

        zone (Callable): makes a block for the texts that are held at a time; none of them is used after it.
        RAISES (InputError): wordpieces are to be counted, but the batcher isn't bound to a pipeline.
        """
        if self.cost is None:
            raise InputError("batches of wordpieces need the transformer: train with the command `train`")
        items = iter(items)
        number = 0
        while True:
            with zone():
                held = self._hold(items, self.cost)
                if not held:
                    return
                batches = held.sub_batches(1, most=self.size)
                random.Random(number).shuffle(batches)
                yield from batches
                del held, batches
            number += 1

    def _hold(self, items: Iterator[Item], cost_of: Callable[[Item], Cost]) -> Batch:
        """Take texts until there are enough for several batches."""
        held = Batch([], [])
        total = 0
        for item in items:
            cost = cost_of(item)
            held.append(item)
            held.costs.append(cost)
            total += batch_cost([cost])
            if total >= WINDOW * self.size:
                break
        return held


def word_cost(item: Item) -> Cost:
    """Count the words of a text."""
    return Cost(len(item), 1)


def wordpiece_cost(item: Item, wordpieces: Wordpieces) -> Cost:
    """Count the spans that a transformer is given of a text, and the wordpieces of the longest."""
    pieces = wordpieces.of(item.predicted)
    return Cost(len(pieces.sizes), int(pieces.sizes.max(initial=0)))
