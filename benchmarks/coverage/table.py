"""Tables in Markdown, and a plot, of the results that are there."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.coverage.data import ANNOTATED
from benchmarks.coverage.domains import MIXED, PUBLIC
from benchmarks.coverage.methods import METHODS
from benchmarks.coverage.results import Row, read
from benchmarks.plot import draw_shares

Key = tuple[str, str, str]  # corpus, what is annotated, method


def print_tables(plot: Path) -> None:
    """Print a table for each corpus, and draw the scores of wnut.

    plot (Path): an SVG file.
    """
    groups: dict[Key, list[Row]] = {}
    for row in read():
        groups.setdefault((row["corpus"], row.get("annotated", ""), row["method"]), []).append(row)
    for corpus in ("wnut", "materials", "wnut, MiniLM"):
        head = ["annotated", "method", "F", "macro F", "F of each seed", "seconds", "peak memory, MB"]
        found = [(key, groups[key]) for key in keys(corpus) if key in groups]
        print_table(corpus, head, [[*key[1:], *figures(rows)] for key, rows in found])
    print_nested(groups)
    print_prodigy(groups)
    print_mixed(groups)
    draw_shares(plot, *curves(groups))


def keys(corpus: str) -> list[Key]:
    """List all that a corpus can have results for, in the order of the table."""
    return [(corpus, annotated, method) for annotated in ANNOTATED for method in METHODS]


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table, if it has rows."""
    if rows:
        print(f"\n{title}\n")
        for cells in (head, *rows):
            print("|", " | ".join(str(cell) for cell in cells), "|")
            if cells is head:
                print("|" + "---|" * len(head))


def figures(rows: Sequence[Row]) -> list[str]:
    """Return means over the seeds, each seed's F, and what a training took."""
    if rows[0]["f"] is None:
        return ["no text is left", "", "", "", ""]
    each = [f"{row['f']:.3f}" for row in sorted(rows, key=lambda row: row["seed"])]
    means = [f"{mean(row[name] for row in rows):.3f}" for name in ("f", "macro")]
    memory = f"{mean(row['peak'] for row in rows) / 2**20:.0f}"
    return [*means, " ".join(each), f"{mean(row['seconds'] for row in rows):.0f}", memory]


def print_nested(groups: dict[Key, list[Row]]) -> None:
    """Print how LitBank's nested entities are found."""
    rows = []
    for name in ("per-label", "ner"):
        for row in groups.get(("litbank", "all", name), ()):
            spans = [f"{row[key]:.3f}" if key in row else "" for key in ("all_spans", "all_spans_macro")]
            lost = f"{row['gold'] - row['flat_gold']:,} of {row['gold']:,}"
            rows.append([name, f"{row['f']:.3f}", f"{row['macro']:.3f}", *spans, lost, row["seed"]])
    head = ["method", "F, entities", "macro F", "F, all spans", "macro F", "gold that flat entities can't hold", "seed"]
    print_table("litbank", head, rows)


def print_prodigy(groups: dict[Key, list[Row]]) -> None:
    """Print how one model over two data sets compares with two models."""
    found = [(name, groups[key]) for name in PUBLIC if (key := ("prodigy", "", name)) in groups]
    head = ["method", "F", "macro F", "F of each seed", "seconds", "peak memory, MB"]
    print_table("prodigy", head, [[name, *figures(rows)] for name, rows in found])


def print_mixed(groups: dict[Key, list[Row]]) -> None:
    """Print how many spans of a corpus's foreign labels one model of three corpora predicts."""
    rows = []
    for name in MIXED:
        for row in groups.get(("mixed", "", name), ()):
            for corpus, counts in row["foreign"].items():
                rates = [f"{counts[kind]:.2f}" for kind in ("spans_per_1000", "entities_per_1000")]
                rows.append([name, corpus, *rates, f"{counts['words']:,}", "yes" if corpus in row["warned"] else "no"])
    print_table("mixed", ["labels of the others", "tested on", "spans", "entities", "words", "warning"], rows)


def curves(groups: dict[Key, list[Row]]) -> tuple[dict[str, dict[float, float]], dict[str, dict[str, float]]]:
    """Return F on wnut by the percentage that is annotated, and by the groups, for each method.

    Where everything is annotated, all ways to train one recognizer are one.
    """
    lines: dict[str, dict[float, float]] = {}
    points: dict[str, dict[str, float]] = {}
    for (corpus, annotated, name), rows in groups.items():
        if corpus == "wnut" and rows[0]["f"] is not None:
            f = mean(row["f"] for row in rows)
            if annotated.endswith("%"):
                lines.setdefault(name, {})[float(annotated[:-1])] = f
            elif annotated.endswith("groups"):
                points.setdefault(name, {})[annotated] = f
    for name, line in lines.items():
        if full := groups.get(("wnut", "all", METHODS[name].recognizer)):
            line[100.0] = mean(row["f"] for row in full)
    return lines, points
