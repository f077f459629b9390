"""Find annotations that contradict the others, and write work lists: what to fix first, label by label."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from labelwise.check.blind import BLIND
from labelwise.check.findings import KINDS
from labelwise.check.run import FindingGroup, Summary, check
from labelwise.check.worklists import TABLE, TASKS
from labelwise.commands.console import AddressOption, MemoryOption, figure, msg, print_table, user_errors
from labelwise.common.portable import obey
from labelwise.common.sections import read_section
from labelwise.common.wording import counted
from labelwise.report.check_page import write_check_page
from labelwise.train.recipe import Recipe

Option = typer.Option
SHOWN = 15  # rows of the table


class CheckSection(msgspec.Struct, frozen=True):
    """The section `check` of project.yml.

    folds (int): pipelines, each trained without a part of train; 0 for none, which finds less in train.
    steps (int): updates of each; 0 for what the config says.
    """

    folds: int = 3
    steps: Annotated[int, msgspec.Meta(ge=0)] = 400


def check_labels_cli(
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, Option(help="Folder for the table and the tasks of each label")],
    config: Annotated[Path, Option(help="spaCy config of the pipelines that give their opinion")],
    page: Annotated[Path | None, Option(help="HTML file for what was found, which a report beside it links to")] = None,
    project: Annotated[Path | None, Option(help="YAML file with a section `check`")] = None,
    most: Annotated[int, Option(help="Findings that are kept of each label")] = 500,
    model: Annotated[Path | None, Option(help="Trained pipeline, whose mistakes on dev say what to fix first")] = None,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    workers: Annotated[int, Option(help="Processes that each train a pipeline")] = 1,
    memory: MemoryOption = "",
    address: AddressOption = "",
) -> None:
    """Find annotations that contradict the others, and write work lists: what to fix first, label by label."""
    with user_errors("Nothing was checked"):
        section = read_section(project, "check", CheckSection)
        obey(config)
        summary = check(
            Recipe(config, corpus, seed=seed, max_steps=section.steps, resume=True),
            out,
            folds=section.folds,
            most=most,
            model=model,
            workers=workers,
            memory=memory,
            address=address,
            tell=msg.info,
        )
        if page:
            write_check_page(msgspec.to_builtins(summary), page)
    print_summary(summary, corpus)
    if page:
        msg.info(f"{page} shows it, and the report links to that: weasel run report")
    msg.good(f"{out / TABLE} lists the findings, {out / TASKS} has tasks for each label, best first")
    msg.info(f"They are of train and dev. {out / BLIND} has texts of test to annotate anew, drawn at random")


def print_summary(summary: Summary, corpus: Path) -> None:
    """Print what to fix, and what to know of the labels.

    corpus (Path): the folder that was checked.
    """
    rows = [
        [label, *(f"{found.get(kind, 0):,}" for kind in KINDS)] for label, found in sorted(summary.findings.items())
    ]
    print_table(["Label", *KINDS], rows)
    shown = [[_name(row), f"{row.explains:,}", f"{row.findings:,}"] for row in summary.groups[:SHOWN]]
    print_table(["Fix first", "mistakes on dev", "findings"], shown)
    rows = [
        [f"{one.label}: {one.word} ({one.what})", f"{one.taken_in:,}", f"{one.left_out:,}"]
        for one in summary.inconsistencies[:SHOWN]
    ]
    print_table([f"Inconsistencies ({len(rows)} of {len(summary.inconsistencies):,})", "in", "out"], rows)
    rows = [
        [f"{pair.label}: {pair.one}, {pair.other}", f"{pair.texts:,}", figure(pair.f) or "-", figure(pair.kappa) or "-"]
        for pair in summary.annotators[:SHOWN]
    ]
    print_table([f"Annotators ({len(rows)} of {len(summary.annotators):,})", "texts", "F", "kappa"], rows)
    if summary.annotators:
        msg.info(f"{corpus / 'disagreements.jsonl'} has the texts that they annotated otherwise, with who marked what")
    for label, count in summary.few.items():
        msg.warn(f"{label}: {counted(count, 'span')} in train; annotate more texts for it")
    for label, split in summary.only.items():
        msg.warn(f"{label}: all its spans are in {split}; annotate more texts for it, or declare another split")
    for label, count in sorted(summary.without_letters.items()):
        msg.info(f"{label}: {counted(count, 'span')} without letters and digits")


def _name(group: FindingGroup) -> str:
    """Say what a group of findings is about."""
    other = f", {group.proposed}" if group.proposed not in ("", group.label) else ""
    return f"{group.label}: {group.form} ({group.kind}{other})"
