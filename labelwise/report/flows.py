"""Geometry of flow charts (Sankey diagrams): counts become bars and ribbons, which a template draws as SVG."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

NODE_WIDTH, LABEL_WIDTH, RIBBON_WIDTH = 10.0, 190.0, 180.0
PITCH, GAP = 22.0, 6.0  # from one node's top to the next, at least, and between two
HEIGHT = 150.0  # of all that flows


class Node(NamedTuple):
    """One end of a flow: a bar with its name and its sum."""

    name: str
    total: int
    share: float
    x: float
    y: float
    height: float


class Ribbon(NamedTuple):
    """What flows from a source to a target, as a closed SVG path."""

    source: str
    target: str
    n: int
    path: str


class FlowChart(NamedTuple):
    """Sources on the left, targets on the right, and ribbons as wide as what flows (a Sankey diagram).

    named (bool): there is room for the names of sources.
    """

    named: bool
    width: float
    height: float
    sources: list[Node]
    targets: list[Node]
    ribbons: list[Ribbon]


def draw_flow(flows: Mapping[str, Mapping[str, int]], *, named: bool = True) -> FlowChart:
    """Lay out what flows from each source to each target; nodes keep the order in which they come.

    flows (Mapping): for each source, the targets with numbers; zeros are left out.
    named (bool): whether to leave room for the names of sources.
    """
    flows = {source: {name: n for name, n in targets.items() if n > 0} for source, targets in flows.items()}
    out = {source: sum(targets.values()) for source, targets in flows.items() if targets}
    into: Counter[str] = Counter()
    for targets in flows.values():
        into.update(targets)
    total = sum(out.values())
    heights = [sum(_advance(n, total) for n in sums.values()) for sums in (out, into)]
    height = max(*heights, PITCH)
    begin = LABEL_WIDTH if named else 0.0
    end = begin + NODE_WIDTH + RIBBON_WIDTH
    left = _stack(out, total, begin, (height - heights[0]) / 2)
    right = _stack(into, total, end, (height - heights[1]) / 2)
    ribbons = _ribbons(flows, left, right)
    width = end + NODE_WIDTH + LABEL_WIDTH
    return FlowChart(named, width, round(height, 1), [*left.values()], [*right.values()], ribbons)


def _thickness(n: int, total: int) -> float:
    return HEIGHT * n / total


def _advance(n: int, total: int) -> float:
    return max(_thickness(n, total) + GAP, PITCH)


def _stack(sums: Mapping[str, int], total: int, x: float, y: float) -> dict[str, Node]:
    """Stack nodes, each in the middle of its place."""
    nodes = {}
    for name, n in sums.items():
        thick, place = _thickness(n, total), _advance(n, total)
        nodes[name] = Node(name, n, n / total, x, round(y + (place - thick) / 2, 1), round(thick, 1))
        y += place
    return nodes


def _ribbons(
    flows: Mapping[str, Mapping[str, int]], left: Mapping[str, Node], right: Mapping[str, Node]
) -> list[Ribbon]:
    total = sum(node.total for node in left.values())
    begins = {name: node.y for name, node in left.items()}
    ends = {name: node.y for name, node in right.items()}
    ribbons = []
    for source, targets in flows.items():
        for name in (name for name in right if name in targets):
            thick = _thickness(targets[name], total)
            x0, x1 = left[source].x + NODE_WIDTH, right[name].x
            path = _ribbon(x0, begins[source], x1, ends[name], thick)
            ribbons.append(Ribbon(source, name, targets[name], path))
            begins[source] += thick
            ends[name] += thick
    return ribbons


def _ribbon(x0: float, y0: float, x1: float, y1: float, thick: float) -> str:
    middle = (x0 + x1) / 2
    thick = max(thick, 0.8)  # a single span among many must still be seen
    return (
        f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        f"v{thick:.1f}C{middle:.1f} {y1 + thick:.1f} {middle:.1f} {y0 + thick:.1f} {x0:.1f} {y0 + thick:.1f}z"
    )
