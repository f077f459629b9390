"""Show what happened to each annotation of a line, a document or words, and why."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.base.errors import InputError
from labelwise.base.sections import ReportSection
from labelwise.base.settings import find_project, read_section
from labelwise.base.text import counted
from labelwise.corpus.import_checks import read_checks
from labelwise.corpus.manifest import read_manifest, unchanged
from labelwise.merge.checks import print_checks
from labelwise.why.account import without_names
from labelwise.why.find import find, find_shown, find_texts
from labelwise.why.predicted import explain
from labelwise.why.tell import tell, tell_predicted, tell_problems

MAX_TEXTS = 20  # shown texts
DATASETS = ("corpus/tasks", "assets/prodigy", "assets/demo/prodigy")  # as in project.yml


def why_cli(
    corpus: Annotated[Path, typer.Argument(help="Folder of the merged corpus")],
    asked: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLACE|WORDS]...",
            help="A file with a line, such as assets/prodigy/org.jsonl:17, a document's name, or words of a text; "
            "default: the findings of import checks",
            show_default=False,
        ),
    ] = None,
    datasets: Annotated[
        list[Path] | None,
        typer.Option(
            help=f"Declarations, or folders with one: sources to search for words; default: {', '.join(DATASETS)}",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[bool, typer.Option("--problems", help="List each row and span that can't be used")] = False,
    predicted: Annotated[
        str | None,
        typer.Option(
            help="Name of a trained pipeline, such as cpu: list the spans that it predicts for a text, or for the text "
            "at a place, each with the annotated spans that speak most for it",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(help="With --predicted, only spans over the character at this offset", show_default=False),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            help="project.yml whose section report says whether --predicted names annotators; by default ./project.yml",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what happened to each annotation of a line, a document or words, and why."""
    with user_errors("Nothing was found"):
        words = " ".join(asked or ()).strip()
        if words and problems:
            raise InputError("give a file and line, a document or words, or else --problems")
        settings = read_manifest(corpus, stopped=True).settings
        if predicted:
            section = read_section(project or find_project(), "report", ReportSection)
            print_predicted(corpus, words, predicted, at, settings, people=section.annotators)
            return
        if not words and not problems:
            checks = read_checks(corpus)
            print_checks(checks)
            msg.info(f"{corpus}: import checks found {counted(len(checks), 'problem')}")
            return
        if problems:
            listed = 0
            for line in tell_problems(corpus):
                typer.echo(line)
                listed += 1
            msg.good(counted(listed, "row or span", "rows or spans"))
            return
        texts = find(corpus, words, datasets or [path for path in map(Path, DATASETS) if path.is_dir()])
        for account in islice(texts, MAX_TEXTS):
            typer.echo("\n".join(tell(account, settings)))
        if next(texts, None):
            msg.info(f"There are more than {MAX_TEXTS} texts; give a line, or more words")


def print_predicted(
    corpus: Path, asked: str, pipeline: str, at: int | None, settings: Mapping[str, Any], *, people: bool
) -> None:
    """Print the spans that a pipeline predicts for a text, each with the annotated spans that speak most for it.

    at (int | None): see `predicted.explain`.
    people (bool): name annotators.
    RAISES (InputError): if nothing is asked or found; see `predicted.explain`.
    """
    if not asked:
        raise InputError("--predicted: give a text in quotes, or a file and line")
    with unchanged(corpus):
        texts = find_shown(corpus, asked)
        predicted = explain(Path("training", pipeline, "model-best"), corpus, texts[:MAX_TEXTS], at)
        keys = {one.key for spans in predicted for span in spans for one in span.speaking}
        accounts = {one.key: one if people else without_names(one) for one in find_texts(corpus, keys)}
    for text, spans in zip(texts, predicted, strict=False):
        typer.echo("\n".join(tell_predicted(text, spans, accounts, settings)))
    if len(texts) > MAX_TEXTS:
        msg.info(f"There are more than {MAX_TEXTS} texts; give a line")


if __name__ == "__main__":
    run(why_cli)
