"""Learning rates of a transformer's layers: the lower a layer, the lower its rate.

Howard and Ruder, Universal Language Model Fine-tuning for Text Classification, ACL 2018, section 3.2.
"""

import re
from collections.abc import Iterable


def layer_rates(names: Iterable[str], rate: float, decay: float) -> dict[str, float]:
    """Return each parameter's rate, by the number of its layer: "encoder.layer.3.output.dense.bias", "3.down_b".

    Parameters above the layers have the highest layer's rate; embeddings count as one below the lowest.

    rate (float): highest layer's share of the optimizer's rate.
    decay (float): ratio of a layer's rate to that of the layer above.
    """
    matches = {name: re.search(r"(?:^|\.)(\d+)\.", name) for name in names}
    numbers = {name: int(match[1]) for name, match in matches.items() if match}
    last = max(numbers.values(), default=-1)
    for name in matches:
        numbers.setdefault(name, -1 if "embeddings" in name else last)
    return {name: rate * decay ** (last - number) for name, number in numbers.items()}
