"""Draw what was measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import matplotlib.pyplot as plt

from benchmarks.measure import Measured


def draw_memory(path: Path, curves: Mapping[str, Measured], *, logarithmic: Literal["x", "y"]) -> None:
    """Draw memory over time to an SVG file, the same bytes for the same curves.

    logarithmic (str): the axis that is logarithmic.
    """
    _, axes = plt.subplots(figsize=(8, 4))
    for name, taken in curves.items():
        axes.plot([at for at, _ in taken.samples], [pss / 2**20 for _, pss in taken.samples], label=name)
    axes.set_xlabel("seconds")
    axes.set_ylabel("memory of all processes, MB (PSS)")
    axes.set(**{f"{logarithmic}scale": "log"})
    axes.legend()
    plt.rcParams["svg.hashsalt"] = "labelwise"
    plt.savefig(path, metadata={"Date": None})
