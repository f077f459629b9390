"""Export spans to an annotation tool: brat, Prodigy, Label Studio or doccano."""

from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.base.errors import InputError
from labelwise.base.settings import encode_yaml, find_project, read_section
from labelwise.base.text import counted
from labelwise.corpus.manifest import is_corpus
from labelwise.datasets.own_data import data_of
from labelwise.export.export_corpus import ExportFormat, export, export_review
from labelwise.export.originals import Originals
from labelwise.merge.rules.settings import read_settings
from labelwise.sources.brat import BratOptions


def export_cli(
    source: Annotated[
        Path,
        typer.Argument(help="Merged corpus, folder of convert-brat's tasks, or predictions (JSONL file or folder)"),
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write; an earlier export there is replaced")],
    format: Annotated[ExportFormat, typer.Option(help="The tool's format; `texts` has no spans")] = "brat",
    splits: Annotated[str, typer.Option(help="Splits of the corpus, separated by commas")] = "train,dev,test",
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Only dropped spans, each with the kept one; format prodigy")
    ] = False,
    disagreements: Annotated[
        bool, typer.Option("--disagreements", help="Only disagreements between annotators; format prodigy")
    ] = False,
    originals: Annotated[
        Path | None,
        typer.Option(help="brat corpus whose relations, events, attributes and notes are kept; by default DATA/brat"),
    ] = None,
    accept_changed: Annotated[
        bool, typer.Option("--accept-changed", help="Continue if an original in brat is missing or has changed")
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            help="project.yml with section brat and tokenizer; default: ./project.yml, with the corpus's tokenizer"
        ),
    ] = None,
) -> None:
    """Export spans to an annotation tool: brat, Prodigy, Label Studio or doccano."""
    documents = None
    with user_errors("Nothing was exported"):
        if dropped or disagreements:
            if format != "prodigy":
                raise InputError("--dropped and --disagreements are tasks for Prodigy; give --format prodigy")
            reviewed = export_review(source, out, splits.split(","), dropped=dropped, disagreements=disagreements)
            for name, tasks in reviewed.tasks.items():
                msg.good(f"{counted(tasks, 'task')}: {out / name}")
            if texts := reviewed.without_text:
                msg.warn(
                    f"{counted(texts, 'text')} left out: the corpus doesn't have them",
                    "`python -m scripts.why` finds a text by its words, or by file and line",
                )
            return
        tokens_of = project or (None if is_corpus(source) else find_project())
        settings = read_settings(tokens_of) if tokens_of else None
        if format == "brat":
            project = project or find_project()
            brat = originals or (project.parent / data_of(project) / "brat" if project else None)
            documents = Originals(brat, read_section(project, "brat", BratOptions), accept_changed=accept_changed)
        done = export(source, out, format, splits.split(","), settings=settings, originals=documents)
    rows = counted(done.rows, "row" if format in ("prodigy-by-label", "prodigy-binary") else "text")
    verdicts = f", and {counted(done.verdicts, 'verdict')} on single spans, {done.rejects:,} of them rejected"
    msg.good(f"{rows} with {counted(done.spans, 'span')}{verdicts if done.verdicts else ''}: {out}")
    for warning in done.warnings:
        msg.warn(*warning)
    if done.rename:
        msg.warn(
            f"Renamed, because brat's labels have no white space: {', '.join(done.rename.values())}",
            "To get the names back with the files, put this into the section `brat` of project.yml:",
        )
        typer.echo(indent(encode_yaml({"rename": done.rename}), "  ").rstrip())
    if done.ordered_by:
        msg.info(f"Order: {done.ordered_by}")


if __name__ == "__main__":
    run(export_cli)
