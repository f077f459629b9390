"""The rates at which the layers of a transformer learn: the lower a layer, the more slowly.

Howard and Ruder, Universal Language Model Fine-tuning for Text Classification, ACL 2018, section 3.2.
"""

import re
from collections.abc import Iterable


def layer_rates(names: Iterable[str], rate: float, decay: float) -> dict[str, float]:
    """Give each parameter its rate, by the number of its layer: "encoder.layer.3.output.dense.bias", "3.down_b".

    What is above the layers has the rate of the highest, and the embeddings have a lower one than the lowest.

    rate (float): of the highest layer, as a share of the optimizer's.
    decay (float): the rate of each layer, as a share of that above it.
    """
    found = {name: re.search(r"(?:^|\.)(\d+)\.", name) for name in names}
    numbers = {name: int(match[1]) for name, match in found.items() if match}
    last = max(numbers.values(), default=-1)
    for name in found:
        numbers.setdefault(name, -1 if "embeddings" in name else last)
    return {name: rate * decay ** (last - number) for name, number in numbers.items()}
