"""Draw F1 over the number of texts, a panel for each corpus with several, of what `benchmarks.crf` has measured.

python -m benchmarks.plot
"""

from html import escape
from itertools import groupby
from math import log
from pathlib import Path

from benchmarks.tables import read_result

OUT = Path("docs/crf.svg")
COLOURS = {"CRF": "#888888", "per-label": "#1f77b4", "per-label, vectors": "#d62728", "spaCy's ner": "#2ca02c"}
WIDTH, HEIGHT, LEFT, TOP = 230, 200, 45, 30  # of a panel and its margins, in pixels


def main() -> None:
    """Write the picture, whose points are medians where there are several seeds."""
    result = read_result("crf")
    names = list(result.columns)
    corpora = {name: list(rows) for name, rows in groupby(result.rows, key=lambda row: row[0])}
    corpora = {name: rows for name, rows in corpora.items() if len({row[1] for row in rows}) > 1}
    parts = []
    for column, (corpus, rows) in enumerate(corpora.items()):
        points = [
            (str(row[names.index("method")]), int(str(row[1]).replace(",", "")), middle_of(row[names.index("F1")]))
            for row in rows
        ]
        left = LEFT + column * (WIDTH + LEFT)
        parts.append(f'<g transform="translate({left},{TOP})">{panel(str(corpus), points)}</g>')
    for place, (method, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + place * 130}" y="{HEIGHT + 75}" fill="{colour}">● {escape(method)}</text>')
    size = f'width="{LEFT + len(corpora) * (WIDTH + LEFT)}" height="{HEIGHT + 90}"'
    style = 'font-family="sans-serif" font-size="11"'
    content = "\n".join(parts)
    OUT.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{content}\n</svg>\n', encoding="utf8")


def middle_of(cell: object) -> float:
    """Give a number, or the median of a cell that has a range."""
    return float(cell[0] if isinstance(cell, tuple | list) else cell)  # type: ignore[arg-type]


def panel(corpus: str, points: list[tuple[str, int, float]]) -> str:
    """Draw a corpus: texts to the right, on a scale of doublings, and F1 from the least to the most."""
    sizes = sorted({texts for _, texts, _ in points})
    least, most = min(f1 for *_, f1 in points), max(f1 for *_, f1 in points)

    def at(texts: int, f1: float) -> tuple[float, float]:
        right = log(texts / sizes[0]) / max(log(sizes[-1] / sizes[0]), 1e-9)
        return round(right * WIDTH, 1), round(HEIGHT * (1 - (f1 - least) / max(most - least, 1e-9)), 1)

    lines = [
        f'<text x="{WIDTH / 2}" y="-14" text-anchor="middle" font-weight="bold">{escape(corpus)}</text>',
        f'<path d="M0 0V{HEIGHT + 4}H{WIDTH}" fill="none" stroke="#444"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT + 38}" text-anchor="middle">texts</text>',
        *(f'<text x="-4" y="{at(sizes[0], f1)[1] + 4}" text-anchor="end">{f1:.2f}</text>' for f1 in (least, most)),
        *(f'<text x="{at(n, least)[0]}" y="{HEIGHT + 20}" text-anchor="middle">{n:,}</text>' for n in sizes),
    ]
    for method, colour in COLOURS.items():
        drawn = [at(texts, f1) for name, texts, f1 in sorted(points) if name == method]
        path = " ".join(f"{x},{y}" for x, y in drawn)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in drawn]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
