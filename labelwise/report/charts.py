"""Geometry of charts: numbers become coordinates, ticks and paths, which a template draws as SVG.

Everything here is pure, and knows nothing of colours, fonts or HTML. Coordinates are rounded, so that equal numbers
give equal bytes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 360.0, 190.0  # of a line chart
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 10.0, 26.0  # its margins


class Tick(NamedTuple):
    """A mark on an axis: its coordinate, and the text beside it."""

    at: float
    text: str


class Line(NamedTuple):
    """A series as an SVG path, with its last point, if it has any, its last value and its highest."""

    name: str
    path: str
    end: tuple[float, float] | None
    last: float
    highest: float


class LineChart(NamedTuple):
    """Lines in one frame; the y axis begins at 0."""

    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def nice_step(highest: float, most: int) -> float:
    """Choose 1, 2 or 5 times a power of ten, so that an axis up to `highest` has at most `most` steps."""
    if not highest > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest / most))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * most >= highest * (1 - 1e-9))


def short_number(value: float) -> str:
    """Write a number in a few characters, such as 1.5k for 1500; a dash if it is NaN."""
    if math.isnan(value):
        return "–"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def draw_lines(
    xs: Sequence[float], series: Mapping[str, Sequence[float]], *, highest: float | None = None
) -> LineChart:
    """Lay out lines over one x axis; NaN breaks a line.

    highest (float | None): the end of the y axis; None for one that suits the highest value.
    """
    top = highest or max((y for ys in series.values() for y in ys if not math.isnan(y)), default=0.0)
    y_step = nice_step(top, 5)
    y_end = highest or math.ceil(top / y_step * (1 - 1e-9)) * y_step or 1.0
    x_last = max((x for x in xs if not math.isnan(x)), default=0.0)
    x_step = nice_step(x_last, 5)

    def place(x: float, y: float) -> tuple[float, float]:
        """Give the place of a point in the chart."""
        return (
            round(LEFT + (WIDTH - LEFT - RIGHT) * x / (x_last or 1.0), 1),
            round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / y_end, 1),
        )

    lines = []
    for name, ys in series.items():
        points = [None if math.isnan(x) or math.isnan(y) else place(x, y) for x, y in zip(xs, ys, strict=True)]
        known = [y for y in ys if not math.isnan(y)]
        end = next((point for point in reversed(points) if point), None)
        nan = math.nan
        lines.append(Line(name, _path(points), end, known[-1] if known else nan, max(known, default=nan)))
    return LineChart(
        lines,
        [Tick(place(x, 0)[0], short_number(x)) for x in _ticks(x_last, x_step)],
        [Tick(place(0, y)[1], short_number(y)) for y in _ticks(y_end, y_step)],
    )


def _ticks(end: float, step: float) -> list[float]:
    return [index * step for index in range(int(end / step * (1 + 1e-9)) + 1)]


def _path(points: Sequence[tuple[float, float] | None]) -> str:
    parts, pen = [], "M"
    for point in points:
        if point:
            parts.append(f"{pen}{point[0]:g} {point[1]:g}")
        pen = "L" if point else "M"
    return "".join(parts)
