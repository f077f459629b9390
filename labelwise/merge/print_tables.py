"""Print the counts of a merge."""

from collections import Counter

from labelwise.base.console import print_counts, print_table
from labelwise.base.text import counted, figure
from labelwise.corpus.ledger import ANSWERS, Ledger, pairwise_f, split_gold

COLUMNS = ("gold", "entity", "dropped", "misaligned", "rejected", "complete", "partial", "none")


def print_ledger(ledger: Ledger, more: str) -> None:
    """Print outcomes of rows and spans, and of the labels with the most lost spans; `more` names the file of all."""
    names = ("rows", "texts", *ANSWERS, "superseded", "unused", "spans", "entities", "dropped")
    used = [name for name in names if any(counts[name] for counts in ledger.datasets.values())]
    rows = [[name, *(f"{counts[column]:,}" for column in used)] for name, counts in ledger.datasets.items()]
    print_table(["Dataset", *used], sorted(rows), more, whole="Dataset")
    print_counts(counted(ledger.rows.total(), "row read", "rows read"), ledger.rows)
    print_counts(counted(ledger.spans.total(), "span read", "spans read"), ledger.spans)
    print_counts("Texts", ledger.texts)
    print_counts("Texts that differ only in white space or Unicode composition", {"joined": ledger.same_texts})
    labels = {label: counts | Counter(split_gold(counts)) for label, counts in ledger.labels.items()}
    first = sorted(labels, key=lambda label: (-labels[label]["dropped"], labels[label]["gold"]))
    columns = [name for name in COLUMNS if any(counts[name] for counts in labels.values())]
    agreement = ["F1 of annotators"] if ledger.agreement else []
    rows = [
        [label, *(f"{labels[label][name]:,}" for name in columns), *(_agreement(ledger, label) for _ in agreement)]
        for label in first
    ]
    print_table(["Label", *columns, *agreement], rows, more)
    renamed = [(name, old, *to) for name, of in ledger.renamed.items() for old, new in of.items() for to in new.items()]
    print_counts("Spans whose label was renamed", {f"{name}: {old} to {new}": n for name, old, new, n in renamed})
    print_annotators(ledger)


def print_annotators(ledger: Ledger) -> None:
    """Print the agreement of each pair of annotators, over all labels."""
    rows = [
        [
            f"{one}, {other}",
            f"{counts['texts']:,}",
            f"{counts['spans']:,}",
            figure(pairwise_f(counts["both"], counts["spans"])),
        ]
        for (one, other), counts in sorted(ledger.pairs.items())
    ]
    print_table(["Annotators", "texts", "spans", "F1"], rows)


def _agreement(ledger: Ledger, label: str) -> str:
    counts = ledger.agreement.get(label, Counter())
    f = pairwise_f(counts["both"], counts["spans"])
    return f"{'-' if f is None else f'{f:.3f}'} ({counts['texts']:,})" if counts else ""
