"""Show what became of each annotation of a line, a document or words, and why."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.base.errors import InputError
from labelwise.base.text import counted
from labelwise.corpus.import_checks import read_checks
from labelwise.corpus.manifest import read_manifest
from labelwise.merge.checks import print_checks
from labelwise.why.find import find
from labelwise.why.problems import find_problems
from labelwise.why.tell import tell

MAX_TEXTS = 20  # texts that are told of
DATASETS = ("corpus/tasks", "assets/prodigy", "assets/demo/prodigy")  # as in project.yml


def why_cli(
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    asked: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLACE|WORDS]...",
            help="A file with a line, such as assets/prodigy/org.jsonl:17, a document's name, or words of a text; "
            "without any, what import checks found",
            show_default=False,
        ),
    ] = None,
    datasets: Annotated[
        list[Path] | None,
        typer.Option(
            help=f"Declarations, or folders with one, whose sources are searched for words; else {', '.join(DATASETS)}",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[bool, typer.Option("--problems", help="List each row and span that can't be used")] = False,
) -> None:
    """Show what became of each annotation of a line, a document or words, and why."""
    with user_errors("Nothing was found"):
        words = " ".join(asked or ()).strip()
        if words and problems:
            raise InputError("give a file and line, a document or words, or else --problems")
        settings = read_manifest(corpus, stopped=True).settings
        if not words and not problems:
            found = read_checks(corpus)
            print_checks(found)
            msg.info(f"{corpus}: import checks found {counted(len(found), 'problem')}")
            return
        if problems:
            listed = 0
            for line in find_problems(corpus):
                typer.echo(line)
                listed += 1
            msg.good(counted(listed, "row or span", "rows or spans"))
            return
        texts = find(corpus, words, datasets or [path for path in map(Path, DATASETS) if path.is_dir()])
        for one in islice(texts, MAX_TEXTS):
            typer.echo("\n".join(tell(one, settings)))
        if next(texts, None):
            msg.info(f"There are more than {MAX_TEXTS} texts; give a line, or more words")


if __name__ == "__main__":
    run(why_cli)
