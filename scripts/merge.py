"""Merge data sets into one corpus of partitioned .spacy files."""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from wasabi import msg

from labelwise.books import Books
from labelwise.corpus import merge_datasets
from labelwise.datasets import SPLITS, load_datasets
from labelwise.merge import Alignment, Conflicts, Coverage, Duplicates, Overlap, Policies
from labelwise.output import staged
from labelwise.settings import Settings
from labelwise.tokenizer import TokenizerRules, read_rules
from scripts.console import print_counts, print_table, progress, user_errors

Option = typer.Option


def merge_cli(
    datasets: Annotated[list[Path], typer.Argument(metavar="DATASETS.yml...", help="Declarations of data sets")],
    out: Annotated[Path, typer.Argument(help="Folder for train, dev, test, labels and the manifest")],
    metrics: Annotated[Path | None, Option(help="JSON file for the books")] = None,
    lang: Annotated[str, Option(help="spaCy's code of the language")] = "en",
    tokenizer: Annotated[Path | None, Option(help="YAML file whose section `tokenizer` has further rules")] = None,
    duplicates: Annotated[Duplicates, Option(help="A data set answered a text twice")] = "latest",
    conflicts: Annotated[Conflicts, Option(help="One data set accepts a span, another rejects it")] = "accept-wins",
    overlap: Annotated[Overlap, Option(help="Accepted spans overlap: which is the entity")] = "longest",
    coverage: Annotated[Coverage, Option(help="What unmarked tokens mean where labels aren't covered")] = "missing",
    alignment: Annotated[Alignment, Option(help="A span doesn't fall on token boundaries")] = "drop",
    dev_ratio: Annotated[float, Option(help="Share of texts for dev, of data sets with split auto")] = 0.1,
    test_ratio: Annotated[float, Option(help="Share of texts for test, of data sets with split auto")] = 0.1,
    split_salt: Annotated[str, Option(help="Another salt gives another split")] = "labelwise",
    split_by: Annotated[str, Option(help="Key of meta; texts with one value there stay in one split")] = "",
    docs_per_partition: Annotated[int, Option(help="Texts in a partition, on average")] = 200,
    workers: Annotated[int, Option(help="Processes; 0 for one a core")] = 0,
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any row is malformed")] = False,
) -> None:
    """Merge data sets into one corpus of partitioned .spacy files."""
    with user_errors("Nothing was merged"):
        settings = Settings(
            lang=lang,
            tokenizer=read_rules(tokenizer) if tokenizer else TokenizerRules(),
            policies=Policies(duplicates, conflicts, overlap, coverage, alignment),
            dev_ratio=dev_ratio,
            test_ratio=test_ratio,
            split_salt=split_salt,
            split_by=split_by,
            docs_per_partition=docs_per_partition,
        )
        books = merge(datasets, out, settings, workers=workers, metrics=metrics, strict=strict)
    print_books(books)
    total = sum(books.texts[split] for split in SPLITS)
    msg.good(f"{total:,} texts with {books.spans['entity']:,} entities are in {out}")
    if lost := sum(n for name, n in books.spans.items() if name != "entity"):
        msg.info(f"{lost:,} spans aren't entities: see the table above, and {out / 'conflicts.jsonl'} for what lost")
    if problems := books.problems():
        msg.warn(f"{problems:,} rows can't be used", f"{out / 'problems.jsonl'} has file, line and reason of each")


def merge(
    declarations: list[Path],
    out: Path,
    settings: Settings,
    *,
    workers: int = 1,
    metrics: Path | None = None,
    strict: bool = False,
) -> Books:
    """Merge data sets; see the command's options.

    RAISES (InputError): a declaration, a setting or, with `strict`, a row is wrong.
    """
    datasets = load_datasets(declarations)
    workers = workers or os.cpu_count() or 1
    # Forked workers share what is loaded, spaCy above all.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("fork")) if workers > 1 else nullcontext()
    with pool as executor:
        books = merge_datasets(datasets, out, settings, executor=executor, progress=progress, strict=strict)
    if metrics:
        with staged(metrics) as path:
            path.write_text(json.dumps(msgspec.to_builtins(books.sorted()), indent=2, ensure_ascii=False) + "\n")
    return books


def print_books(books: Books) -> None:
    """Print where every row and span went, and the state of each label."""
    print_counts(f"Rows read: {books.rows_read:,}", books.rows)
    print_counts(f"Spans read: {books.spans_read:,}", books.spans)
    print_counts("Texts", books.texts)
    columns = [name for name in LABEL_COLUMNS if any(counts[name] for counts in books.labels.values())]
    rows = [[label, *(f"{counts[name]:,}" for name in columns)] for label, counts in books.labels.items()]
    print_table(["Label", *columns], rows)
    if books.stored_hash_differs:
        msg.info(f"{books.stored_hash_differs:,} rows have an _input_hash that isn't their text's: it was recomputed")


LABEL_COLUMNS = (
    "gold",
    "entity",
    "no token boundary",
    "same span",
    "nested",
    "crossing",
    "rejected",
    "complete",
    "partial",
    "none",
)

if __name__ == "__main__":
    typer.run(merge_cli)
