"""Merge data sets into one corpus of partitioned .spacy files."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_warnings, progress, run, user_errors
from labelwise.base.text import counted
from labelwise.base.workers import choose_workers
from labelwise.corpus.ledger import describe_gold
from labelwise.corpus.manifest import MANIFEST, SPLITS
from labelwise.datasets.declarations import list_sources
from labelwise.datasets.declare import declare, print_undeclared
from labelwise.datasets.untracked import check_kept, check_tracked
from labelwise.merge.advice import warnings, warnings_about_files
from labelwise.merge.rules.settings import read_settings
from labelwise.merge.run import merge_data
from labelwise.merge.summary import print_doubts, print_ledger

Option = typer.Option


def merge_cli(
    datasets: Annotated[
        list[Path], typer.Argument(metavar="DATASETS.yml...", help="Declarations, or folders with one")
    ],
    out: Annotated[Path, typer.Argument(help="Folder for train, dev, test, labels and the manifest")],
    decisions: Annotated[Path | None, Option(help="Folder of the decisions that `decide` has put there")] = None,
    metrics: Annotated[Path | None, Option(help="JSON file for the ledger")] = None,
    project: Annotated[Path | None, Option(help="YAML file with a section `merge`")] = None,
    workers: Annotated[int, Option(help="Processes; 0 for one per core that they may use")] = 0,
    strict: Annotated[bool, Option("--strict", help="Fail, and write nothing, if any row or span is bad")] = False,
) -> None:
    """Merge data sets into one corpus of partitioned .spacy files."""
    with ExitStack() as last:
        with user_errors("Nothing was merged"):
            settings = read_settings(project)
            for folder in filter(Path.is_dir, datasets):
                if project:  # convert-brat checks it, too, but DVC may have had its tasks
                    check_kept(folder, project.parent)
                last.callback(print_undeclared, folder, declare(folder))
            if project:
                check_tracked(list_sources(datasets), out / MANIFEST, project)
            ledger = merge_data(
                datasets,
                out,
                settings,
                workers=choose_workers(workers),
                decisions=decisions,
                metrics=metrics,
                strict=strict,
                progress=progress,
            )
        print_ledger(ledger, f"{metrics or out}")
        print_doubts(ledger.doubts)
        if any(doubt.stops for doubt in ledger.doubts):
            msg.fail(
                f"Nothing can be trained from {out}: data wasn't read as intended",
                f"Declare what it is, and merge again; `python -m scripts.why {out} PLACE` says what became of a line",
            )
            raise typer.Exit(1)
        texts = counted(sum(ledger.texts[split] for split in SPLITS), "text")
        msg.good(f"{out} has {texts}, and {counted(ledger.spans['entity'], 'span')} as entities")
        if said := describe_gold(ledger.labels):
            msg.info(f"{said}. To look in Prodigy at those that aren't entities, export them with --lost.")
        print_warnings([*warnings(ledger, settings), *warnings_about_files(ledger, datasets, out)])


if __name__ == "__main__":
    run(merge_cli)
