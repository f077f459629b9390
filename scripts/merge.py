"""Merge data sets into one corpus of partitioned .spacy files."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from wasabi import msg

from labelwise.books import Books
from labelwise.corpus import PROBLEMS, merge_datasets
from labelwise.datasets import SPLITS, load_datasets
from labelwise.errors import InputError
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
    if lost := sum(books.spans[reason] for reason in CONFLICTS):
        msg.info(f"{lost:,} spans lost against others, or have no token boundaries: {out / 'conflicts.jsonl'}")
    if problems := books.problems():
        msg.warn(f"{problems:,} rows or spans can't be used", f"{out / PROBLEMS} has data set, line and reason of each")
    for title, remedy in warnings(books, settings):
        msg.warn(title, remedy)


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
    if workers < 0:
        raise InputError(f"--workers {workers}: give a number of processes, or 0 for one a core")
    workers = workers or os.cpu_count() or 1
    # Forked workers share what is loaded, spaCy above all.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("fork")) if workers > 1 else nullcontext()
    with pool as executor:
        books = merge_datasets(datasets, out, settings, executor=executor, progress=progress, strict=strict)
    if metrics:
        with staged(metrics) as path:
            content = json.dumps(msgspec.to_builtins(books.sorted()), indent=2, ensure_ascii=False)
            path.write_text(content + "\n", encoding="utf8")
    return books


def warnings(books: Books, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what will be a surprise later, each with a remedy."""
    for name, spans in books.undeclared.items():
        dataset, _, label = name.partition(": ")
        yield (
            f"{spans:,} spans of data set {dataset!r} have the label {label!r}",
            "It isn't among its `labels`: mend them",
        )
    for split, ratio in (("train", "both ratios"), ("dev", "dev_ratio"), ("test", "test_ratio")):
        if not books.texts[split]:
            yield f"No text is in {split}", f"Mend {ratio}, or declare a data set with split: {split}"
    partly, train = books.partly["train"], books.texts["train"]
    if partly and settings.policies.coverage == "missing":
        yield (
            f"{partly:,} of {train:,} texts in train aren't complete for all labels",
            "What is unmarked there may be an entity, so only the other texts teach what is none. If they are few, the "
            "model will see entities everywhere. If unmarked means no entity, set coverage to outside",
        )
    if books.without_split_by:
        yield f"{books.without_split_by:,} texts have no {settings.split_by!r} in their meta", "They were split by text"


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


CONFLICTS = ("accept/reject", "same span", "nested", "crossing", "no token boundary")
LABEL_COLUMNS = (
    "gold",
    "entity",
    "realigned",
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
