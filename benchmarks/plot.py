"""Draw F1 against CPU seconds, from a result of `f1`, as SVG: `python -m benchmarks.tables` writes it into docs/.

A line is a method, a point its median with the least and the most, the seconds of a training to the right.
"""

from collections import defaultdict
from html import escape
from math import ceil, floor, log10

from benchmarks.measure import Cell, Result

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 50, 230, 20, 45
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2")
STEP = 0.1  # between two lines of the grid
NAME_HEIGHT = 16


def draw(result: Result) -> str:
    """Return the picture."""
    names = [*result.columns]
    found: dict[str, list[tuple[float, tuple[float, float, float]]]] = defaultdict(list)
    for row in result.rows:
        cells = dict(zip(names, row, strict=True))
        found[str(cells["method"])].append((_number(cells["CPU seconds of training"]), _spread(cells["F1"])))
    seconds = [x for points in found.values() for x, _ in points]
    scores = [y for points in found.values() for _, spread in points for y in spread]
    x_from, x_to = log10(min(seconds)) - 0.05, log10(max(seconds)) + 0.05
    y_from, y_to = STEP * floor(min(scores) / STEP), STEP * ceil(max(scores) / STEP)

    def place_x(value: float) -> float:
        return LEFT + (log10(value) - x_from) / (x_to - x_from) * (WIDTH - LEFT - RIGHT)

    def place_y(value: float) -> float:
        return TOP + (y_to - value) / (y_to - y_from) * (HEIGHT - TOP - BOTTOM)

    right, low = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 8}">CPU seconds of training</text><text x="8" y="14">F1</text>',
    ]
    for number in range(round((y_to - y_from) / STEP) + 1):
        y = place_y(y_from + number * STEP)
        lines.append(f'<path d="M{LEFT} {y:.0f}H{right}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{y_from + number * STEP:.1f}</text>')
    for tick in (n * 10**power for power in range(5) for n in (1, 2, 5)):
        if x_from <= log10(tick) <= x_to:
            lines.append(f'<path d="M{place_x(tick):.0f} {low}v5" stroke="black"/>')
            lines.append(f'<text x="{place_x(tick):.0f}" y="{low + 19}" text-anchor="middle">{tick:,}</text>')
    # The names stand to the right of the lines' ends, from top to bottom, as far apart as they need.
    free = 0.0
    for color, (name, points) in zip(COLORS, sorted(found.items(), key=lambda one: -max(one[1])[1][0]), strict=False):
        points.sort()
        lines.append(f'<g stroke="{color}" fill="{color}">')
        path = "L".join(f"{place_x(x):.0f} {place_y(y):.0f}" for x, (y, *_) in points)
        lines.append(f'<path d="M{path}" fill="none" stroke-width="2"/>')
        for x, (middle, least, most) in points:
            lines.append(f'<path d="M{place_x(x):.0f} {place_y(least):.0f}V{place_y(most):.0f}" stroke-width="2"/>')
            lines.append(f'<circle cx="{place_x(x):.0f}" cy="{place_y(middle):.0f}" r="4"/>')
        free = max(free + NAME_HEIGHT, place_y(points[-1][1][0]) + 4)
        lines.append(f'<text x="{right + 8}" y="{free:.0f}" stroke="none">{escape(name)}</text></g>')
    return "\n".join([*lines, "</svg>\n"])


def _number(cell: Cell) -> float:
    assert isinstance(cell, int | float)
    return cell


def _spread(cell: Cell) -> tuple[float, float, float]:
    return cell if isinstance(cell, tuple) else (_number(cell),) * 3
