"""Draw what was measured."""

from collections.abc import Mapping, Sequence
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


def draw_shares(
    path: Path, lines: Mapping[str, Mapping[float, float]], points: Mapping[str, Mapping[str, float]]
) -> None:
    """Draw F over the share of the annotation to an SVG file, a line for each method; the same bytes for the same F.

    lines (Mapping): F by percentage.
    points (Mapping): F by number of groups, such as "3 groups"; of these, a third is annotated.
    """
    _, axes = plt.subplots(figsize=(8, 4.5))
    for name, line in sorted(lines.items()):
        (drawn,) = axes.plot(*zip(*sorted(line.items()), strict=True), marker="o", label=name)
        for groups, f in points.get(name, {}).items():
            share = 100 / int(groups.split()[0])
            axes.plot([share], [f], marker="s", color=drawn.get_color(), fillstyle="none", linestyle="")
    for groups in sorted({groups for found in points.values() for groups in found}):
        place = (100 / int(groups.split()[0]), 0.95)
        axes.annotate(groups, place, xycoords=axes.get_xaxis_transform(), ha="center", fontsize="small")
    axes.set(xlabel="share of the annotation, %", ylabel="F against all gold", xlim=(0, 103))
    axes.legend(loc="lower right")
    plt.rcParams["svg.hashsalt"] = "labelwise"
    plt.savefig(path, metadata={"Date": None})


def draw_curves(path: Path, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw F on dev, in percent, over seconds to an SVG file; the same bytes for the same curves."""
    _, axes = plt.subplots(figsize=(8, 4.5))
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker=".", label=name)
    axes.set(xlabel="seconds since the command was started", ylabel="F on dev, %")
    axes.legend(loc="lower right")
    plt.rcParams["svg.hashsalt"] = "labelwise"
    plt.savefig(path, metadata={"Date": None})
