"""Draw results to SVG files, the same bytes for the same result; its digest is in their metadata."""

from pathlib import Path

import matplotlib.pyplot as plt

from benchmarks.measure import Result


def draw_shares(path: Path, result: Result, digest: str) -> None:
    """Draw F over the share of the annotation, a line for each method, and a square for groups of texts and labels.

    Of 3 groups, a third is annotated. Where everything is, all ways to train one recognizer are one.
    """
    f = {(str(annotated), str(method)): f for annotated, method, f, *_ in result.rows if f is not None}
    plt.rcParams["svg.hashsalt"] = "labelwise"
    _, axes = plt.subplots(figsize=(8, 4.5))
    for name in sorted({name for annotated, name in f if annotated.endswith("%")}):
        line = {int(annotated[:-1]): f[annotated, name] for annotated, of in f if of == name and annotated[-1] == "%"}
        line[100] = f["all", name.partition(",")[0]]
        (drawn,) = axes.plot(*zip(*sorted(line.items()), strict=True), marker="o", label=name)
        squares = {
            100 / int(key[0].split()[0]): value for key, value in f.items() if key[1] == name and "groups" in key[0]
        }
        axes.plot(list(squares), list(squares.values()), "s", color=drawn.get_color(), fillstyle="none")
    for groups in sorted({groups for groups, _ in f if "groups" in groups}):
        place = (100 / int(groups.split()[0]), 0.95)
        axes.annotate(groups, place, xycoords=axes.get_xaxis_transform(), ha="center", fontsize="small")
    axes.set(xlabel="share of the annotation, %", ylabel="F against all gold", xlim=(0, 103))
    axes.legend(loc="lower right")
    plt.savefig(path, metadata={"Date": None, "Description": digest})


def draw_curves(path: Path, result: Result, digest: str) -> None:
    """Draw F on dev, in percent, over seconds."""
    plt.rcParams["svg.hashsalt"] = "labelwise"
    _, axes = plt.subplots(figsize=(8, 4.5))
    for name, points in result.curves.items():
        axes.plot(*zip(*points, strict=True), marker=".", label=name)
    axes.set(xlabel="seconds since the command was started", ylabel="F on dev, %")
    axes.legend(loc="lower right")
    plt.savefig(path, metadata={"Date": None, "Description": digest})
