"""Merge data sets into one corpus of partitioned .spacy files."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelwise.console import msg, print_counts, print_table, progress, run, user_errors
from labelwise.corpus.ledger import Ledger, pairwise_f, split_gold, tell_gold
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.tokenizer import has_rules
from labelwise.merge.advice import doubts_about_files, warnings
from labelwise.merge.commit import first_problem
from labelwise.merge.partition import LOST_SPANS, PROBLEMS
from labelwise.merge.rules.settings import Settings, load_tokenizer, read_settings
from labelwise.merge.run import merge_data
from labelwise.parallel import measure_peak
from labelwise.sources.assets import find_untracked
from labelwise.sources.declarations import read_all_entries
from labelwise.sources.declare import declare, print_undeclared
from labelwise.text import counted

Option = typer.Option


def merge_cli(
    datasets: Annotated[
        list[Path], typer.Argument(metavar="DATASETS.yml...", help="Declarations, or folders with one")
    ],
    out: Annotated[Path, typer.Argument(help="Folder for train, dev, test, labels and the manifest")],
    decisions: Annotated[Path | None, Option(help="Folder of the decisions that `decide` has put there")] = None,
    metrics: Annotated[Path | None, Option(help="JSON file for the ledger")] = None,
    project: Annotated[Path | None, Option(help="YAML file with sections `merge` and `tokenizer`")] = None,
    workers: Annotated[int, Option(help="Processes; 0 for one per core")] = 0,
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any row or span is bad")] = False,
) -> None:
    """Merge data sets into one corpus of partitioned .spacy files."""
    with ExitStack() as last:
        with user_errors("Nothing was merged"):
            settings = read_settings(project)
            for folder in filter(Path.is_dir, datasets):
                last.callback(print_undeclared, folder, declare(folder))
            with measure_peak() as peak:
                ledger = merge_data(
                    datasets,
                    out,
                    settings,
                    workers=workers,
                    decisions=decisions,
                    metrics=metrics,
                    strict=strict,
                    progress=progress,
                )
        print_ledger(ledger)
        total = sum(ledger.texts[split] for split in SPLITS)
        entities = counted(ledger.spans["entity"], "span")
        msg.good(f"{out} has {counted(total, 'text')}, and {entities} as entities")
        msg.info(f"Memory: {peak.bytes / 2**20:,.0f} MB at most, in all processes")
        print_warnings(ledger, settings, out)
        declared = list(read_all_entries(datasets))
        files = {path: None for file, entry in declared for path in (file, *(file.parent / one for one in entry.paths))}
        for doubt in doubts_about_files(ledger, declared, find_untracked(files, out, project) if project else ()):
            msg.warn(doubt.what, doubt.remedy)


def print_warnings(ledger: Ledger, settings: Settings, out: Path) -> None:
    """Print what can be learnt of the accepted spans, and the warnings."""
    if told := tell_gold(ledger.labels):
        msg.info(f"{told}.")
    if ledger.lost_spans:
        msg.info(f"Each that isn't an entity, and why: {out / LOST_SPANS}")
    nlp: Any = load_tokenizer(settings).nlp
    if (settings.tokenizer.infixes or settings.tokenizer.no_exceptions) and not has_rules(nlp):
        name = type(nlp.tokenizer).__name__
        msg.info(f"The infixes and no_exceptions of project.yml aren't used: {name} has no rules to add to")
    table = Table("Warning", "What to do", box=box.SIMPLE, pad_edge=False, show_lines=True)
    for doubt in warnings(ledger, settings):
        table.add_row(Text(doubt.what), Text(doubt.remedy))
    if ledger.problems:
        table.add_row(Text(f"The first that can't be used: {first_problem(out / PROBLEMS)}"), Text("Correct it."))
    if table.rows:
        Console().print(table)


def print_ledger(ledger: Ledger) -> None:
    """Print where every row and span went, and the state of each label."""
    print_counts(f"Rows read: {ledger.rows_read:,}", ledger.rows)
    print_counts(f"Spans read: {ledger.spans_read:,}", ledger.spans)
    print_counts("Texts", ledger.texts)
    labels = {label: counts | Counter(split_gold(counts)) for label, counts in ledger.labels.items()}
    columns = [name for name in LABEL_COLUMNS if any(counts[name] for counts in labels.values())]
    rows = [[label, *(f"{counts[name]:,}" for name in columns)] for label, counts in labels.items()]
    print_table(["Label", *columns], rows)
    print_counts("Spans whose label was renamed", ledger.renamed)
    print_agreement(ledger)


def print_agreement(ledger: Ledger) -> None:
    """Print how far annotators agree, label by label, in the order of the labels."""
    rows = []
    agreement = ledger.agreement
    for label in ledger.labels:
        if counts := agreement.get(label):
            f = pairwise_f(counts["both"], counts["spans"])
            rows.append([label, f"{counts['texts']:,}", "-" if f is None else f"{f:.3f}"])
    print_table(["Agreement where texts were annotated twice", "Texts", "F1"], rows)


LABEL_COLUMNS = ("gold", "entity", "lost", "no token boundary", "rejected", "complete", "partial", "none")


if __name__ == "__main__":
    run(merge_cli)
