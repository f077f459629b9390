"""Merge datasets into one corpus of partitioned .spacy files."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, progress, run, user_errors
from labelwise.base.text import counted
from labelwise.base.workers import choose_workers
from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.ledger import describe_gold
from labelwise.corpus.manifest import MANIFEST, SPLITS
from labelwise.datasets.declarations import list_sources
from labelwise.datasets.declare import declare
from labelwise.datasets.undeclared import Undeclared
from labelwise.datasets.untracked import check_kept, check_tracked
from labelwise.merge.merge_data import merge_data
from labelwise.merge.print_tables import print_ledger
from labelwise.merge.rules.settings import read_settings

Option = typer.Option


def merge_cli(
    datasets: Annotated[
        list[Path], typer.Argument(metavar="DATASETS.yml...", help="Declarations, or folders with one")
    ],
    out: Annotated[Path, typer.Argument(help="Folder for train, dev, test, labels and the manifest")],
    decisions: Annotated[Path | None, Option(help="Folder of imported decisions")] = None,
    metrics: Annotated[Path | None, Option(help="JSON file for the ledger")] = None,
    project: Annotated[Path | None, Option(help="YAML file with a section `merge`")] = None,
    workers: Annotated[int, Option(help="Processes; 0 for one per usable core")] = 0,
    strict: Annotated[bool, Option("--strict", help="Fail without output if a row or a span can't be used")] = False,
) -> None:
    """Merge datasets into one corpus of partitioned .spacy files."""
    with ExitStack() as last:
        with user_errors("Nothing was merged"):
            settings = read_settings(project)
            for folder in filter(Path.is_dir, datasets):
                if project:  # convert-brat checks it, too, but DVC may have had its tasks
                    check_kept(folder, project.parent)
                last.callback(show, [], folder, declare(folder))
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
        show(ledger.checks)
        if any(check.stops for check in ledger.checks):
            msg.fail(
                "Merge stopped: see the problems above",
                f"Add the suggested lines and run it again. `python -m scripts.why {out} FILE:LINE` explains a line",
            )
            raise typer.Exit(1)
        texts = counted(sum(ledger.texts[split] for split in SPLITS), "text")
        msg.good(f"{out}: {texts}, {counted(ledger.spans['entity'], 'span')} as entities")
        if description := describe_gold(ledger.labels):
            command = f"python -m scripts.export {out} to-annotate --format prodigy --dropped"
            msg.info(f"{description}. To review the dropped ones in Prodigy: {command}")


def show(checks: Sequence[ImportCheck], folder: Path = Path(), undeclared: Sequence[Undeclared] = ()) -> None:
    """Print import checks, and the files of a folder that can't be declared."""
    from labelwise.merge.checks import check_undeclared, print_checks  # they import pyarrow, which workers don't need

    print_checks([*checks, *check_undeclared(folder, undeclared)])


if __name__ == "__main__":
    run(merge_cli)
