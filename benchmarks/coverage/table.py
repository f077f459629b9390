"""Tables of the results that are there, as files of benchmarks/results."""

from collections.abc import Sequence
from statistics import mean

from benchmarks.coverage.data import ANNOTATED
from benchmarks.coverage.domains import MIXED, PUBLIC
from benchmarks.coverage.methods import METHODS
from benchmarks.coverage.results import Row, read
from benchmarks.measure import Cell, write_result

Key = tuple[str, str, str]  # corpus, what is annotated, method
FIGURES = {"F": ".3f", "macro F": ".3f", "F of each seed": "", "seconds": ",.0f", "memory, MB": ",.0f"}


def write_tables() -> None:
    """Write a table for each corpus that there are results of."""
    groups: dict[Key, list[Row]] = {}
    for row in read():
        groups.setdefault((row["corpus"], row.get("annotated", ""), row["method"]), []).append(row)
    for corpus in ("wnut", "materials", "wnut, MiniLM"):
        keys = [(corpus, annotated, method) for annotated in ANNOTATED for method in METHODS]
        rows = [[*key[1:], *figures(groups[key])] for key in keys if key in groups]
        write(corpus, {"annotated": "", "method": "", **FIGURES}, rows)
    write(
        "prodigy", {"method": "", **FIGURES}, [[name, *figures(rows)] for name, rows in of("prodigy", groups, PUBLIC)]
    )
    columns = {"method": "", "F, entities": ".3f", "macro F": ".3f", "F, all spans": ".3f", "macro F, all spans": ".3f"}
    litbank = [nested(name, rows) for name, rows in of("litbank", groups, ("per-label", "ner"), "all")]
    write("litbank", columns | {"F, entities, of each seed": ""}, litbank)
    columns = {
        "labels of the others": "",
        "tested on": "",
        "spans": ".2f",
        "entities": ".2f",
        "words": ",",
        "warning": "",
    }
    write("mixed", columns, [row for name, rows in of("mixed", groups, MIXED) for row in foreign(name, rows[0])])


def of(
    corpus: str, groups: dict[Key, list[Row]], methods: Sequence[str], annotated: str = ""
) -> list[tuple[str, list[Row]]]:
    """List the methods that there are results of, each with those."""
    return [(name, groups[key]) for name in methods if (key := (corpus, annotated, name)) in groups]


def write(corpus: str, columns: dict[str, str], rows: list[list[Cell]]) -> None:
    """Write a table, if it has rows."""
    name = "minilm" if "MiniLM" in corpus else corpus
    if rows:
        write_result(f"coverage_{name}", columns, rows, command=f"python -m benchmarks.coverage --corpus {name}")


def figures(rows: Sequence[Row]) -> list[Cell]:
    """Return means over the seeds, each seed's F, and what a training took."""
    if rows[0]["f"] is None:
        return [None, None, "no text is left", None, None]
    means = [mean(row[name] for row in rows) for name in ("f", "macro")]
    return [*means, of_each(rows), mean(row["seconds"] for row in rows), mean(row["peak"] for row in rows) / 2**20]


def of_each(rows: Sequence[Row]) -> str:
    """Write F of each seed."""
    return " ".join(f"{row['f']:.3f}" for row in sorted(rows, key=lambda row: row["seed"]))


def nested(name: str, rows: Sequence[Row]) -> list[Cell]:
    """Return how LitBank's nested entities are found."""
    kinds = ("f", "macro", "all_spans", "all_spans_macro")
    return [name, *(mean(row[kind] for row in rows) if kind in rows[0] else None for kind in kinds), of_each(rows)]


def foreign(name: str, row: Row) -> list[list[Cell]]:
    """Return how many spans of a corpus's foreign labels one model of three corpora predicts, in a thousand words."""
    return [
        [
            *(name, corpus, counts["spans_per_1000"], counts["entities_per_1000"], counts["words"]),
            "yes" if corpus in row["warned"] else "no",
        ]
        for corpus, counts in row["foreign"].items()
    ]
