"""Draw F1 against CPU seconds or minutes of annotation, as SVG: `python -m benchmarks.tables` writes it into docs/.

A line is a method, a point its median with its range. Seconds have a logarithmic scale.
"""

from collections import defaultdict
from html import escape
from math import ceil, floor, log10

from benchmarks.measure import Cell, Result

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 50, 230, 20, 45
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2")
AXES = {"method": "CPU seconds of training", "annotated": "minutes"}  # the column of a point's place, by that of lines
STEPS = (0.02, 0.1)  # between two lines of the grid: of little and much space
NAME_HEIGHT = 16


def draw(result: Result) -> str:
    """Draw the first corpus."""
    names = [*result.columns]
    of_line, of_place = next(axes for axes in AXES.items() if axes[0] in names)
    scale = log10 if of_line == "method" else float
    by_method: dict[str, list[tuple[float, tuple[float, float, float]]]] = defaultdict(list)
    rows = [dict(zip(names, row, strict=True)) for row in result.rows]
    for cells in (row for row in rows if row.get("corpus") == rows[0].get("corpus")):
        by_method[str(cells[of_line])].append((_number(cells[of_place]), _spread(cells["F1"])))
    seconds = [x for points in by_method.values() for x, _ in points]
    scores = [y for points in by_method.values() for _, spread in points for y in spread]
    x_from, x_to = scale(min(seconds)), scale(max(seconds))
    x_from, x_to = x_from - (x_to - x_from) / 20, x_to + (x_to - x_from) / 20
    step = STEPS[max(scores) - min(scores) > STEPS[1]]
    y_from, y_to = step * floor(min(scores) / step), step * ceil(max(scores) / step)

    def place_x(value: float) -> float:
        return LEFT + (scale(value) - x_from) / (x_to - x_from) * (WIDTH - LEFT - RIGHT)

    def place_y(value: float) -> float:
        return TOP + (y_to - value) / (y_to - y_from) * (HEIGHT - TOP - BOTTOM)

    right, low = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{of_place}</text><text x="8" y="14">F1</text>',
    ]
    for number in range(round((y_to - y_from) / step) + 1):
        y, score = place_y(y_from + number * step), f"{y_from + number * step:.{len(str(step)) - 2}f}"
        lines.append(f'<path d="M{LEFT} {y:.0f}H{right}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{score}</text>')
    round_numbers = [n * 10**power for power in range(5) for n in (1, 2, 5)]
    for tick in round_numbers if scale is log10 else sorted({*seconds}):
        if x_from <= scale(tick) <= x_to:
            lines.append(f'<path d="M{place_x(tick):.0f} {low}v5" stroke="black"/>')
            lines.append(f'<text x="{place_x(tick):.0f}" y="{low + 19}" text-anchor="middle">{tick:,}</text>')
    # The names stand to the right of the lines' ends, from top to bottom, without overlap.
    free = 0.0
    for color, (name, points) in zip(
        COLORS, sorted(by_method.items(), key=lambda point: -max(point[1])[1][0]), strict=False
    ):
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
